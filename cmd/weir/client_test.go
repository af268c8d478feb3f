package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clients"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	filerepo "github.com/weirhq/weir/internal/rules/repo/file"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

func TestMain(m *testing.M) {
	for _, name := range append(clientVariables, "token") {
		os.Unsetenv(variable(name))
	}
	os.Exit(testkit.Run(m))
}

const loginAndAPI = `# who may do what
rules:
  - id: login # guessing
    description: stop password guessing
    match: {method: POST, path: /api/login}
    key: ip
    algorithm: fixed_window
    limit: 5/1m
    on_failure: local
    deny: {code: 10007, message: too many logins}

  - id: api
    match: {path: /api/**}
    key: user
    limit: 100/1m
`

const adminToken = "an-admin-token-of-32-characters!"
const readToken = "a-token-to-read-with-0123456789"

// running is a weir in this process: the real rules, engine, store and API.
type running struct {
	*httptest.Server
	repo    *filerepo.Repository
	handler http.Handler
	now     weir.Micros
}

// serveRules starts one with a document of rules, and with tokens if there are any.
func serveRules(t *testing.T, document string, tokens string) *running {
	t.Helper()
	r := newRunning(t, document, tokens)
	r.Server = httptest.NewServer(r.handler)
	t.Cleanup(r.Close)
	return r
}

func newRunning(t *testing.T, document, tokens string) *running {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	writeFile(t, path, document)
	r := &running{now: weir.MicrosOf(time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC))}
	clock := func() weir.Micros { return r.now }
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{Clock: clock}), Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	if r.repo, err = filerepo.Open(path, filerepo.Options{}); err != nil {
		t.Fatal(err)
	}
	install := func(v repo.Version) error {
		set, err := rule.Usable("", v.Source)
		if err != nil {
			return err
		}
		table, err := rule.Compile(set, rule.Options{})
		if err == nil {
			e.Install(table, v.Number)
		}
		return err
	}
	first, err := r.repo.Current(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := install(first); err != nil {
		t.Fatal(err)
	}
	var list *trust.List
	if tokens != "" {
		if list, err = trust.ParseTokens([]byte(tokens)); err != nil {
			t.Fatal(err)
		}
	}
	registry := clients.New(clients.Options{Logger: slog.New(slog.DiscardHandler)})
	testkit.OK(t, registry.Look(t.Context()))
	r.handler, err = httpapi.New(httpapi.Options{
		Service: manage.Service{Engine: e, Rules: r.repo, Apply: install, Tokens: func() *trust.List { return list }, Clients: registry, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// file makes a file for a test, and returns its name.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	writeFile(t, path, content)
	return path
}

// outcome is how a command ended.
type outcome struct {
	code           int
	stdout, stderr string
}

// command runs weir as main does.
func command(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(args, strings.NewReader(stdin), &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

// want checks how a command ended. The texts are regular expressions, "" for none at
// all, "*" for any.
func (o outcome) want(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code %d, want %d\n%s%s", o.code, code, o.stdout, o.stderr)
	}
	for _, c := range []struct{ name, got, want string }{{"standard output", o.stdout, stdout}, {"standard error", o.stderr, stderr}} {
		switch {
		case c.want == "*":
		case c.want == "" && c.got != "":
			t.Errorf("%s should be empty:\n%s", c.name, c.got)
		case !regexp.MustCompile("(?m)" + c.want).MatchString(c.got):
			t.Errorf("%s does not match %q:\n%s", c.name, c.want, c.got)
		}
	}
}

// on runs a command against the server.
func (r *running) on(t *testing.T, args ...string) outcome {
	t.Helper()
	return command(t, "", append(args, "--server", r.URL)...)
}

func (r *running) number(t *testing.T) int64 {
	t.Helper()
	v, err := r.repo.Current(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return v.Number
}

func (r *running) source(t *testing.T) string {
	t.Helper()
	v, err := r.repo.Current(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return string(v.Source)
}

// nobody is where no server is: a port that was free a moment ago may be somebody's.
const nobody = "http://127.0.0.1:1"

func TestNobodyAnswers(t *testing.T) {
	for _, verb := range [][]string{{"check"}, {"rules", "list"}, {"rules", "get"}, {"rules", "delete", "x"}, {"rules", "history"}, {"rules", "rollback", "1"}, {"bench"}} {
		command(t, "", append(verb, "--server", nobody)...).want(t, 1, "",
			`^weir: no weir at `+nobody+`; start one with weir serve, or set --server: dial tcp .*connection refused\n\z`)
	}
}

func TestSomebodyElseAnswers(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"404": http.NotFound,
		"a page": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "<html>\x1b[31mwelcome")
		},
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		},
		"a broken problem": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(500)
			io.WriteString(w, "{")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(answer)
			defer s.Close()
			command(t, "", "check", "--server", s.URL).want(t, 1, "", `^weir: http://\S+ answered with status \d+, but the response is not from weir; check --server\n\z`)
		})
	}
}

// What a server says cannot take a terminal over.
func TestAnswersAreHarmless(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(500)
		io.WriteString(w, `{"detail":"Bad \u001b]0;x\u0007 news\nweir: all is well."}`)
	}))
	defer s.Close()
	command(t, "", "check", "--server", s.URL).want(t, 1, "", "^weir: bad \uFFFD]0;x\uFFFD news\uFFFDweir: all is well\n\\z")
}

func TestSlowServer(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	command(t, "", "check", "--server", s.URL, "--timeout", "30ms").want(t, 1, "",
		`^weir: http://\S+ did not answer within 30ms; check that it is running, or wait longer with --timeout\n\z`)
}

func TestEndlessAnswer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		block := bytes.Repeat([]byte(" "), 1<<20)
		for r.Context().Err() == nil {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	defer s.Close()
	command(t, "", "rules", "list", "--server", s.URL, "--timeout", "60s").want(t, 1, "", `is larger than 32 MiB, so it is not from weir`)
}

func TestTokens(t *testing.T) {
	r := serveRules(t, loginAndAPI, "alice admin "+adminToken+"\nbob read "+readToken)
	r.on(t, "rules", "list").want(t, 1, "", `^weir: http://\S+ requires a token; set --token-file or WEIR_TOKEN$`)
	r.on(t, "rules", "list", "--token-file", file(t, "token", "not-the-token-of-anybody\n")).want(t, 1, "", `^weir: http://\S+ does not accept this token`)
	r.on(t, "rules", "list", "--token-file", file(t, "token", readToken+"\n")).want(t, 0, "login", "")
	r.on(t, "rules", "delete", "login", "--token-file", file(t, "token", readToken)).want(t, 1, "", `^weir: .*right admin$`)
	r.on(t, "rules", "list", "--token-file", file(t, "token", "short")).want(t, 1, "", `token: line 1: the token has fewer than 16 characters`)
	r.on(t, "rules", "list", "--token-file", "nowhere").want(t, 1, "", `nowhere: no such file`)
	t.Setenv("WEIR_TOKEN", readToken)
	r.on(t, "rules", "list").want(t, 0, "login", "")
	// A file that is named beats the environment.
	r.on(t, "rules", "delete", "login", "--token-file", file(t, "token", adminToken)).want(t, 0, "^version 2: ", "*")
	r.on(t, "rules", "history").want(t, 0, `^2 .* alice +\S`, "")
	t.Setenv("WEIR_TOKEN", "two words")
	r.on(t, "rules", "list").want(t, 2, "", "WEIR_TOKEN has characters")
}

func TestTokenStaysWithItsServer(t *testing.T) {
	seen := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case seen <- r.Header.Get("Authorization"):
		default:
		}
	}))
	defer other.Close()
	s := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	t.Setenv("WEIR_TOKEN", adminToken)
	command(t, "", "rules", "list", "--server", s.URL).want(t, 1, "", "answered with status 307")
	if len(seen) > 0 {
		t.Errorf("another server was sent %q", <-seen)
	}
}

func TestEnvironment(t *testing.T) {
	r := serveRules(t, loginAndAPI, "")
	t.Setenv("WEIR_SERVER", r.URL)
	command(t, "", "rules", "list").want(t, 0, "login", "")
	command(t, "", "rules", "list", "--server", nobody).want(t, 1, "", "no weir at http://127.0.0.1:1;")
	t.Setenv("WEIR_TIMEOUT", "soon")
	command(t, "", "rules", "list").want(t, 2, "", `WEIR_TIMEOUT: "soon" is invalid; write it as for --timeout`)
}

func TestClientUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"check", "--server", "localhost:8080"}, `--server: "localhost:8080" is not a URL; write http://localhost:8080`},
		{[]string{"check", "--server", "ftp://x"}, "--server: not the URL of a server"},
		{[]string{"check", "--server", "http://"}, "--server: not the URL of a server"},
		{[]string{"check", "--server", "http://a:b@x"}, "--server: a user name and password are not supported"},
		{[]string{"check", "--server", "http://x/?y"}, "has a query or a fragment"},
		{[]string{"check", "--output", "xml"}, `--output: "xml" is unknown; write text or json`},
		{[]string{"check", "--timeout", "-1s"}, "--timeout: -1s is not positive"},
		{[]string{"check", "--cert", "x"}, "--cert and --key must be set together"},
		{[]string{"check", "--ca", "x"}, "--ca, --cert and --key need a server with https://"},
		{[]string{"check", "--ip", "x"}, `--ip: "x" is not an IP address`},
		{[]string{"check", "--cost", "-1"}, "--cost: -1 is negative"},
		{[]string{"check", "--api-key", "x", "--api-key-file", "y"}, "exclude each other"},
		{[]string{"check", "now"}, `"now" is unexpected`},
		{[]string{"rules", "get", "a", "b"}, "weir rules get takes at most the id of a rule, not 2 arguments"},
		{[]string{"rules", "get", ""}, "the id of a rule is empty"},
		{[]string{"rules", "delete"}, "weir rules delete takes the id of a rule, not 0 arguments"},
		{[]string{"rules", "delete", " "}, "the id of a rule is empty"},
		{[]string{"rules", "put"}, "weir rules put takes one rules file"},
		{[]string{"rules", "put", ""}, "one rules file (- for standard input) is empty"},
		{[]string{"overrides", "add", "api", "", "5/1m"}, "an argument is empty"},
		{[]string{"clients", "delete"}, "weir clients delete takes at least one client, not 0 arguments"},
		{[]string{"rules", "history", "x"}, `"x" is not a version number; weir rules history lists them`},
		{[]string{"rules", "rollback", "0"}, `"0" is not a version number`},
		{[]string{"rules", "rollback", "1", "--if-version", "x"}, "--if-version"},
		{[]string{"rules", "lst"}, `"lst" is unknown; did you mean "list"?`},
		{[]string{"completion"}, "weir completion takes one shell: bash, zsh, fish, powershell"},
		{[]string{"completion", "csh"}, `"csh" is not a known shell`},
		{[]string{"bench", "--concurrency", "0"}, "--concurrency: 0 is out of range; write 1 to 1024"},
		{[]string{"bench", "--concurrency", "1025"}, "--concurrency: 1025 is out of range; write 1 to 1024"},
		{[]string{"bench", "--keys", "10000001"}, "--keys: 10000001 is out of range"},
		{[]string{"bench", "--duration", "11m"}, "--duration: 11m0s is out of range"},
		{[]string{"bench", "--count", "-1"}, "--count: -1 is negative"},
		{[]string{"bench", "--keys", "0"}, "--keys: 0 is out of range"},
		{[]string{"bench", "--url", "x"}, "--url: not an HTTP URL"},
		{[]string{"bench", "--url", "http://x", "--user", "y"}, "--user and --url exclude each other"},
		{[]string{"bench", "--ip", "10.0.0.{n}"}, `--ip: "10.0.0.999" is not an IP address`},
		{[]string{"gateway", "--upstream", "x"}, `weir: --upstream: route "/"`},
		{[]string{"gateway", "--upstream", "http://127.0.0.1:1", "--adaptive", "x"}, `weir: --adaptive: "x" is not`},
		{[]string{"serve", "--queue", "x"}, `weir: --queue: "x" is invalid`},
		{[]string{"bench", "--path", "{n}"}, `--path: "0" does not begin with a slash`},
	} {
		got := command(t, "", c.args...)
		if got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, c.want) || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("weir %s: exit code %d, %q, want %q", strings.Join(c.args, " "), got.code, got.stderr, c.want)
		}
	}
}
