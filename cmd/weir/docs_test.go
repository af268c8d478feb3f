package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the tables of settings in docs/reference and docs/zh again")

// Each flag of the servers has a row in a table of the page. A person decides in which
// table, and translates what it does; the rest comes from the flag.
func TestDocsSettings(t *testing.T) {
	serve, gateway := newServe().Flags(), newGateway().Flags()
	only := pflag.NewFlagSet("gateway", pflag.ContinueOnError)
	gateway.VisitAll(func(f *pflag.Flag) {
		if serve.Lookup(f.Name) == nil {
			only.AddFlag(f)
		}
	})
	for page, flags := range map[string]*pflag.FlagSet{"service.md": serve, "gateway.md": only} {
		t.Run(page, func(t *testing.T) {
			settingsPage{"../../docs/reference/" + page, flags, true}.check(t)
			settingsPage{"../../docs/zh/" + page, flags, false}.check(t)
		})
	}
}

type settingsPage struct {
	file    string
	flags   *pflag.FlagSet
	english bool
}

// settingRow is the row of a flag, which may have no other cells yet.
var settingRow = regexp.MustCompile("(?m)^\\| `--([a-z0-9-]+)` \\|(?:[^|\n]*\\|){3}$")

func (p settingsPage) check(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	written := settingRow.ReplaceAllStringFunc(string(text), func(row string) string {
		name := settingRow.FindStringSubmatch(row)[1]
		rows[name]++
		f := p.flags.Lookup(name)
		if f == nil {
			t.Errorf("%s: there is no flag --%s", p.file, name)
			return row
		}
		return p.row(f, strings.Split(row, "|"))
	})
	p.flags.VisitAll(func(f *pflag.Flag) {
		if rows[f.Name] != 1 {
			t.Errorf("%s: --%s has %d rows; write a line | `--%[2]s` | | | | into the table where it belongs, and run go test ./cmd/weir -run Docs -update", p.file, f.Name, rows[f.Name])
		}
	})
	if written == string(text) {
		return
	}
	if !*update {
		t.Errorf("%s: the settings are out of date; run go test ./cmd/weir -run Docs -update", p.file)
	} else if err := os.WriteFile(p.file, []byte(written), 0o644); err != nil {
		t.Fatal(err)
	}
}

// row is what the page says of a flag. Another language keeps its own words.
func (p settingsPage) row(f *pflag.Flag, was []string) string {
	about := settingOf(f)
	standard, does := about.standard, about.does
	if !p.english {
		does = strings.TrimSpace(was[4])
		if !strings.HasPrefix(standard, "`") {
			standard = strings.TrimSpace(was[3])
		}
	}
	return strings.ReplaceAll(fmt.Sprintf("| `--%s` | %s | %s | %s |", f.Name, about.kind, standard, does), "|  |", "| |")
}

type setting struct{ kind, standard, does string }

var (
	// remark ends the help of a flag.
	remark = regexp.MustCompile(` \((default [^)]*|repeatable|repeatable, required)\)$`)
	// literal is a word of the help that is code.
	literal = regexp.MustCompile(`\[host\].*url…\]|--[a-z-]+[a-z]|[a-z+]+://|[^ ]+=[^ ,;]+(,[^ ,;]+)*|[A-Za-z]+(-[A-Za-z]+)*-(\*|For)|rules\.yaml|quota_mode|denied_requests|hot_key`)
)

func settingOf(f *pflag.Flag) setting {
	kind, does := pflag.UnquoteUsage(f)
	does = strings.Replace(does, " ("+kind+")", "", 1)
	standard := strings.Trim(f.DefValue, "[]")
	switch f.Value.Type() {
	case "bool":
		kind = "bool"
	case "duration":
		standard = strings.Replace(standard, "m0s", "m", 1)
	}
	if standard != "" {
		standard = "`" + standard + "`"
	}
	if m := remark.FindStringSubmatch(does); m != nil {
		does = strings.TrimSuffix(does, m[0])
		if text, found := strings.CutPrefix(m[1], "default "); found {
			standard = literal.ReplaceAllString(text, "`$0`")
		}
		if strings.HasPrefix(m[1], "repeatable") {
			kind += ", repeatable"
		}
		if strings.HasSuffix(m[1], "required") {
			standard = "required"
		}
	}
	return setting{kind, standard, literal.ReplaceAllString(does, "`$0`")}
}
