package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/server/httpapi"
)

// What a person does with the clients of a running weir.
func TestClients(t *testing.T) {
	s := serveRules(t, loginAndAPI, "alice admin "+adminToken+"\nshop clients "+readToken)
	t.Setenv("WEIR_SERVER", s.URL)
	t.Setenv("WEIR_TOKEN", readToken)
	const ann = "client user:ann, tier pro, parent org:acme, limits api: 500/1m, note \"4711\", changed by shop at "
	for _, c := range []struct {
		args string
		code int
		want string // in what it prints
	}{
		{"clients get user:ann", 1, "weir clients list shows them"},
		{"clients set org:acme --starts 15 --zone Europe/Berlin --limit api=", 0, "client org:acme, zone Europe/Berlin, starts 15, changed"},
		{"clients set user:ann --parent org:acme --tier pro --note 4711 --limit api=5/1m", 0, "client user:ann"},
		{"clients set user:ann --limit api=500/1m --limit reports=", 0, ann},
		{"clients set api_key:ann-key-1 --parent user:ann", 0, "client api_key:sha256:"},
		{"clients get api_key:ann-key-1", 0, "\n" + ann},
		{"clients set user:ann --limit api=5/1m --limit api=9/1h", 0, `limits api: {"limits":["5/1m","9/1h"]}`},
		{"clients set user:ann --note= --limit api=", 0, "client user:ann, tier pro, parent org:acme, changed"},
		{"clients block user:ann", 0, ", blocked"},
		{"clients list --kind user", 0, "user:ann  org:acme  pro           blocked  "},
		{"clients list --parent user:ann --limit 1", 0, "api_key:sha256:"},
		{"clients list --limit 1", 0, "--after api_key:sha256:"},
		{"clients list --tier gold", 0, "no clients"},
		{"clients unblock user:ann", 0, "parent org:acme, changed"},
		{"clients set team:x --parent org:acme", 0, "team:x"},
		{"clients move user:ann team:x", 0, "parent team:x"},
		{"clients move user:nobody team:x", 1, "no such client"},
		{"clients block user:nobody", 1, "no such client"},
		{"clients delete api_key:ann-key-1 user:ann", 0, "deleted 2 clients"},
		{"clients delete user:ann", 1, "user:ann: there is no such client"},
		{"clients export", 0, `{"client":"org:acme","zone":"Europe/Berlin","starts":15}` + "\n"},
		{"clients set ann", 2, "write a client as"},
		{"clients set user:ann --limit api", 2, "write for example --limit api=500/1m"},
		{"clients set user:ann --limit api=5", 1, "limits"},
		{"clients move user:ann", 2, "takes a client and its new parent"},
		{"clients get user:ann --output yaml", 2, "text or json"},
		{"clients get org:acme --output json", 0, `"client": "org:acme"`},
	} {
		got := command(t, "", strings.Fields(c.args)...)
		if got.code != c.code || !strings.Contains(got.stdout+got.stderr, c.want) {
			t.Errorf("weir %s: %d\n%s%s", c.args, got.code, got.stdout, got.stderr)
		}
	}
}

// The commands of the guide do what it says, one after the other.
func TestClientsGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../examples/clients.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEIR_SERVER", serveRules(t, loginAndAPI, "").URL)
	t.Chdir(filepath.Dir(file(t, "clients.ndjson", string(example))))
	_, section, _ := strings.Cut(string(guide), "\n## Change clients at run time\n")
	section, _, _ = strings.Cut(section, "\n## ")
	commands := regexp.MustCompile("(?m)^    weir (.*)$").FindAllStringSubmatch(section, -1)
	if len(commands) < 10 {
		t.Fatalf("there are %d commands", len(commands))
	}
	var last outcome
	for _, c := range commands {
		var args []string
		for _, word := range regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(c[1], -1) {
			args = append(args, strings.Trim(word, `"`))
		}
		if last = command(t, "", args...); last.code != 0 {
			t.Errorf("weir %s: %s", c[1], last.stderr)
		}
	}
	if want := strings.Count(string(example), "\n"); strings.Count(last.stdout, "\n") != want || strings.Contains(last.stdout, "carol") {
		t.Errorf("at the end there are\n%s", last.stdout)
	}
}

// A file of any size and order is imported in steps, with the errors of each line, and again without effect.
func TestClientsImport(t *testing.T) {
	s := serveRules(t, loginAndAPI, "")
	t.Setenv("WEIR_SERVER", s.URL)
	var lines strings.Builder
	const n = 1500 // of each kind, keys before the users to whom they belong
	for i := range n {
		fmt.Fprintf(&lines, `{"client":"api_key:key-%d","parent":"user:%d"}`+"\n", i, i)
	}
	for i := range n {
		fmt.Fprintf(&lines, `{"client":"user:%d","parent":"org:acme"}`+"\n", i)
	}
	lines.WriteString(`{"client":"org:acme"}` + "\n")
	all := lines.String()
	long := file(t, "clients.ndjson", all)
	some := file(t, "clients.yaml", "clients:\n  - {client: \"user:1\", parent: \"org:acme\"}\n  - {client: \"org:acme\", tier: pro}\n  - {client: \"user:new\", parent: \"org:other\"}\n")
	parts := `{"client":"org:parts"}` + "\n" // a second part, whose parent is in the first
	for i := range n {
		parts += fmt.Sprintf(`{"client":"user:part-%d","parent":"org:parts"}`+"\n", i)
	}
	parts = file(t, "parts.ndjson", parts+`{"client":"org:lost","parent":"org:parts"}`)
	few := file(t, "few.json", `{"clients": [{"client": "user:1", "parent": "org:acme"}, {"client": "org:acme", "tier": "pro"}]}`)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"clients import " + long + " --dry-run", 0, "dry run: 3,001 added, 0 changed, 0 deleted, 0 unchanged"},
		{"clients import " + parts + " --dry-run", 1, fmt.Sprintf("%s:%d: parent", parts, n+2)},
		{"clients import " + parts + " --dry-run", 1, "dry run: 1,501 added, 0 changed, 0 deleted, 0 unchanged"},
		{"clients list", 0, "no clients"},
		{"clients import " + long, 0, "3,001 added, 0 changed, 0 deleted, 0 unchanged"},
		{"clients import " + long, 0, "0 added, 0 changed, 0 deleted, 3,001 unchanged"},
		{"clients import " + some + " --dry-run", 1, some + ":3: warning: tier \"pro\": no rule has it"},
		{"clients import " + some, 1, some + ":4: parent"},
		{"clients import " + some + " --dry-run", 1, some + ":4: parent"},
		{"clients import " + some + " --prune", 1, some + ":4:1: error: parent: org:other is not in the file"},
		{"clients import " + few + " --prune --dry-run", 0, "dry run: 0 added, 0 changed, 2,999 deleted, 2 unchanged"},
		{"clients import " + few + " --prune", 0, "0 added, 0 changed, 2,999 deleted, 2 unchanged"},
		{"clients import " + file(t, "none.ndjson", "") + " --prune", 1, "has no clients"},
		{"clients import " + few + " --output json", 0, `"unchanged": 2`},
		{"clients import " + file(t, "no.yaml", "users: []"), 1, "write only the list of clients"},
		{"clients import " + file(t, "no.ndjson", strings.Repeat("x", maxClientLine+1)), 1, "no.ndjson:1: the line is longer"},
		{"clients import /nowhere", 1, "nowhere"},
	} {
		got := command(t, "", strings.Fields(c.args)...)
		if got.code != c.code || !strings.Contains(got.stdout+got.stderr, c.want) {
			t.Errorf("weir %s: %d\n%s%s", c.args, got.code, got.stdout, got.stderr)
		}
	}
	// A client that is deleted does not keep others from where they belong, even if those are in another call.
	turned := file(t, "turned.ndjson", all+`{"client":"org:o","parent":"team:u"}`+"\n"+`{"client":"team:u"}`)
	for _, c := range [][2]string{
		{"clients import " + file(t, "before.ndjson", all+`{"client":"org:o"}`+"\n"+`{"client":"team:t","parent":"org:o"}`+"\n"+`{"client":"team:old"}`) + " --prune", "0 deleted"},
		{"clients import " + turned + " --prune --dry-run", "dry run: 1 added, 1 changed, 2 deleted, 3,001 unchanged"},
		{"clients import " + turned + " --prune", "1 added, 1 changed, 2 deleted, 3,001 unchanged"},
	} {
		if got := command(t, "", strings.Fields(c[0])...); got.code != 0 || !strings.Contains(got.stdout, c[1]) {
			t.Errorf("weir %s: %d\n%s%s", c[0], got.code, got.stdout, got.stderr)
		}
	}
	command(t, "", "clients", "import", few, "--prune")
	// With broken lines, the first and the last among them, nothing is sent.
	broken := file(t, "broken.ndjson", "{\n"+`{"client":"user:x"}`+"\n"+`{"client":"user:x"}`+"\n"+`{"client":"team:a","parent":"org:b"}`+"\n"+`{"client":"user:y","tier":[]}`)
	got := command(t, "", "clients", "import", broken)
	for _, number := range []string{":1:1: ", ":3:1: ", ":5:1: "} {
		if !strings.Contains(got.stderr, broken+number) {
			t.Errorf("%s says nothing of line %s", got.stderr, number)
		}
	}
	if list := command(t, "", "clients", "list"); strings.Contains(list.stdout, "user:x") || got.code != 1 {
		t.Errorf("%d: %s", got.code, list.stdout)
	}
	cycle := file(t, "cycle.ndjson", `{"client":"team:a","parent":"org:b"}`+"\n"+`{"client":"org:b","parent":"team:a"}`)
	if got := command(t, "", "clients", "import", cycle); got.code != 1 || !strings.Contains(got.stderr, ":1:1: ") || !strings.Contains(got.stderr, "cycle") {
		t.Errorf("%d: %s", got.code, got.stderr)
	}
}

// What may be outdated says so, beside the output.
func TestStaleClients(t *testing.T) {
	var to strings.Builder
	cmd := &cobra.Command{}
	cmd.SetErr(&to)
	i := importer{}
	i.addAnswer(&httpapi.ImportAnswer{Stale: httpapi.Stale{Since: time.Unix(1, 0)}}, 0, nil)
	if err := i.wrong(cmd); err != nil || !strings.Contains(to.String(), "may be outdated since") {
		t.Errorf("%v, %q", err, to.String())
	}
	to.Reset()
	if sayStale(cmd, httpapi.Stale{}); to.Len() > 0 {
		t.Errorf("%q", to.String())
	}
}
