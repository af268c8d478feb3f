package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	browserlog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// chromium is one browser for all tests, which costs a second of work to start. The first test that
// needs it starts it.
var chromium struct {
	once sync.Once
	ctx  context.Context
	err  error
	stop func()
}

// shell is Chromium without windows, tabs and menus, which nobody sees here, and which take half of
// the time.
const shell = "chromium-headless-shell"

// startChromium starts it, with its files in bin.
func startChromium() {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox, // root has none, and nothing here is foreign
		chromedp.UserDataDir(filepath.Join(bin, "chromium")),
		chromedp.WindowSize(1280, 900),
		chromedp.WSURLReadTimeout(2*time.Minute), // a busy machine starts it slowly
	)
	if path, err := exec.LookPath(shell); err == nil { // any Chromium will do
		options = append(options, chromedp.ExecPath(path))
	}
	allocated, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancelBrowser := chromedp.NewContext(allocated, chromedp.WithErrorf(func(format string, args ...any) {
		// The browser tells more than the library knows; nothing here needs it.
		if text := fmt.Sprintf(format, args...); !strings.Contains(text, "unhandled") {
			fmt.Fprintln(os.Stderr, text)
		}
	}))
	chromium.ctx, chromium.err = ctx, chromedp.Run(ctx)
	chromium.stop = func() {
		if err := chromedp.Cancel(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "the browser did not end well:", err)
		}
		cancelBrowser()
		cancel()
	}
}

// stopChromium ends it, if it was started.
func stopChromium() {
	if chromium.stop != nil {
		chromium.stop()
	}
}

// browser is a real Chromium, as somebody sees it who opens it for the first time: it shares no
// cookies, storage, cache or connections with the browser of another test.
type browser struct {
	t   *testing.T
	ctx context.Context // of its first window, which stays empty
	who cdp.BrowserContextID
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	chromium.once.Do(startChromium)
	if chromium.err != nil {
		t.Fatalf("the browser does not start: %v; make test installs one", chromium.err)
	}
	b := &browser{t: t}
	ctx := cdp.WithExecutor(chromium.ctx, chromedp.FromContext(chromium.ctx).Browser)
	var err error
	if b.who, err = target.CreateBrowserContext().Do(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := target.DisposeBrowserContext(b.who).Do(ctx); err != nil {
			t.Errorf("the browser does not forget: %v", err)
		}
	})
	b.ctx = b.window()
	return b
}

// window opens an empty window.
func (b *browser) window() context.Context {
	b.t.Helper()
	made, err := target.CreateTarget("about:blank").WithNewWindow(true).WithBrowserContextID(b.who).
		Do(cdp.WithExecutor(chromium.ctx, chromedp.FromContext(chromium.ctx).Browser))
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(chromium.ctx, chromedp.WithTargetID(made))
	b.t.Cleanup(cancel)
	// The first call attaches to it, as long as the context of that call lives.
	if err := chromedp.Run(ctx); err != nil {
		b.t.Fatal(err)
	}
	return ctx
}

// tab is a page of the dashboard. What it should not do fails the test at the end.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu    sync.Mutex
	wrong []string
}

// open opens a page of the dashboard, such as "#/rules".
func (b *browser) open(base, place string) *tab {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithExistingBrowserContext(b.who))
	b.t.Cleanup(cancel)
	p := &tab{t: b.t, ctx: ctx, base: base}
	chromedp.ListenTarget(ctx, p.watch)
	// The first call makes the tab, which lives as long as the context of that call.
	if err := chromedp.Run(ctx); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(p.finish)
	p.run("open "+place, network.Enable(), browserlog.Enable(), chromedp.Navigate(base+"/"+place))
	p.front() // a tab in the background is not updated
	p.waitFor("main h1")
	return p
}

// watch takes note of what no page should do: errors on the console, and requests to
// anybody else.
func (p *tab) watch(event any) {
	var wrong string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		wrong = e.ExceptionDetails.Error()
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			for _, a := range e.Args {
				wrong += string(a.Value) + a.Description + " "
			}
		}
	case *browserlog.EventEntryAdded:
		// That a call was denied is in there, too; the page shows it to people.
		if e.Entry.Level == browserlog.LevelError && e.Entry.Source != browserlog.SourceNetwork {
			wrong = fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, p.base+"/") {
			wrong = "it asks for " + e.Request.URL
		}
	case *page.EventJavascriptDialogOpening:
		wrong = "it opens a dialog: " + e.Message
		go chromedp.Run(p.ctx, page.HandleJavaScriptDialog(true))
	}
	if wrong != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.wrong = append(p.wrong, wrong)
	}
}

// finish reports what went wrong, and keeps a picture of it.
func (p *tab) finish() {
	p.mu.Lock()
	wrong := p.wrong
	p.mu.Unlock()
	for _, w := range wrong {
		p.t.Errorf("the page: %s", w)
	}
	if !p.t.Failed() {
		return
	}
	var png []byte
	ctx, cancel := context.WithTimeout(p.ctx, 10*time.Second)
	defer cancel()
	if err := chromedp.Run(ctx, picture(&png)); err != nil {
		p.t.Logf("there is no picture: %v", err)
		return
	}
	dir, err := os.MkdirTemp("", "weir-dashboard-")
	if err != nil {
		p.t.Log(err)
		return
	}
	name := filepath.Join(dir, strings.ReplaceAll(p.t.Name(), "/", "-")+".png")
	if err := os.WriteFile(name, png, 0o600); err != nil {
		p.t.Log(err)
		return
	}
	p.t.Logf("what it looked like is in %s", name)
}

func (p *tab) run(what string, actions ...chromedp.Action) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 2*time.Minute)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// picture is of what can be seen. A tab behind another one is never drawn.
func picture(png *[]byte) chromedp.Action {
	return chromedp.Tasks{page.BringToFront(), chromedp.CaptureScreenshot(png)}
}

// eval computes an expression on the page. A page that is being replaced has no answer
// yet.
func (p *tab) eval(expression string, into any) error {
	ctx, cancel := context.WithTimeout(p.ctx, 2*time.Minute)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate(expression, into))
}

// literal is a text as a script writes it.
func literal(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted)
}

// id is the selector of what the page names for tests.
func id(name string) string { return "[data-testid=" + literal(name) + "]" }

// waitFor waits until something is on the page.
func (p *tab) waitFor(selector string) {
	p.t.Helper()
	waitFor(p.t, selector, func() bool { return p.count(selector) > 0 })
}

func (p *tab) count(selector string) (n int) {
	if p.eval("document.querySelectorAll("+literal(selector)+").length", &n) != nil {
		return 0
	}
	return n
}

// text is what people read there; a space that keeps a number with its unit is a space.
func (p *tab) text(selector string) (text string) {
	p.eval("[...document.querySelectorAll("+literal(selector)+")].map(e => e.innerText).join('\\n')", &text)
	return strings.ReplaceAll(text, "\u00a0", " ")
}

func (p *tab) value(selector string) (text string) {
	p.eval("document.querySelector("+literal(selector)+")?.value ?? ''", &text)
	return text
}

// see waits until people can read something somewhere.
func (p *tab) see(selector, text string) {
	p.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !strings.Contains(p.text(selector), text) {
		if time.Now().After(deadline) {
			p.t.Fatalf("%s never says %q; it says %q", selector, text, p.text(selector))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// press clicks as people do: with the mouse, in the middle of what can be seen. What moves
// away just then, because something above it has come, is pressed again; what is hit instead
// does not notice.
func (p *tab) press(selector string) {
	p.t.Helper()
	waitFor(p.t, selector+", which can be pressed", func() bool {
		if p.count(selector+":not(:disabled)") == 0 {
			return false
		}
		p.run("press "+selector,
			chromedp.Evaluate(fmt.Sprintf(guard, literal(selector)), nil),
			chromedp.Click(selector, chromedp.ByQuery, chromedp.NodeVisible))
		var missed bool // not if the page was replaced; while it is being replaced, there is an error
		return p.eval("window.pressing?.hit === false", &missed) != nil || !missed
	})
}

// guard lets a press of the mouse reach only what a selector names.
const guard = `{
	if (!window.pressing)
		for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click'])
			document.addEventListener(type, e => {
				const now = window.pressing
				if (type === 'pointerdown' && now.hit === undefined) now.hit = e.target.closest(now.selector) != null
				if (now.hit === false) {
					e.stopImmediatePropagation()
					e.preventDefault()
				}
			}, true)
	window.pressing = {selector: %s}
}`

// What lies over a link for a moment is not pressed in its place.
func TestPressOnlyWhatIsNamed(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	page := b.open(p.URL, "")
	page.waitFor(`a[href="#/rules"]`)
	page.run("cover the page", chromedp.Evaluate(`{
		window.pressed = 0
		const cover = document.createElement('div')
		cover.style = 'position: fixed; inset: 0; z-index: 1000'
		cover.addEventListener('pointerdown', () => window.pressed++)
		window.addEventListener('pointerup', () => cover.remove(), true)
		document.body.append(cover)
	}`, nil))
	page.press(`a[href="#/rules"]`)
	page.see("main h1", "Rules")
	var pressed int
	if err := page.eval("window.pressed", &pressed); err != nil || pressed != 0 {
		t.Errorf("what lay over it was pressed %d times, %v", pressed, err)
	}
}

// fill replaces what stands in a field, and leaves the field.
func (p *tab) fill(selector, text string) {
	p.t.Helper()
	p.waitFor(selector)
	// The page may draw the field again at any moment, so it is found and focused in one step.
	var focused bool
	waitFor(p.t, "the focus of "+selector, func() bool {
		err := p.eval("(() => {const e = document.querySelector("+literal(selector)+"); e?.focus(); e?.select(); return e != null && document.activeElement === e})()", &focused)
		return err == nil && focused
	})
	p.run("fill "+selector,
		chromedp.ActionFunc(func(ctx context.Context) error { return input.InsertText(text).Do(ctx) }),
		chromedp.Evaluate("document.querySelector("+literal(selector)+").blur()", nil))
}

// choose takes one of a list.
func (p *tab) choose(selector, value string) {
	p.t.Helper()
	p.waitFor(selector)
	p.run("choose "+value, chromedp.Evaluate(fmt.Sprintf(
		"{const e = document.querySelector(%s); e.value = %s; e.dispatchEvent(new Event('change', {bubbles: true}))}", literal(selector), literal(value)), nil))
}

// goTo follows a link within the page.
func (p *tab) goTo(parts ...string) {
	p.t.Helper()
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	p.run("go", chromedp.Evaluate("location.hash = "+literal("#/"+strings.Join(parts, "/")), nil))
}

// look makes the window a phone's or a desk's, by day or by night.
func (p *tab) look(width, height int64, scheme string) {
	p.t.Helper()
	p.run("look", chromedp.EmulateViewport(width, height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}
