package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/rule"
)

func newRulesPut() *cobra.Command {
	var f putFlags
	cmd := &cobra.Command{
		Use:   "put FILE",
		Short: "Replace the rules of a running weir, or one of them",
		Long: `Replace the rules of a running weir. If FILE (- for standard input) is a whole document,
with "rules:", it replaces the document. If it is a single rule, it replaces the rule
with the same id, or is added. The rules are in force when the command returns.

Nothing is written if the rules have errors, or if they were changed by another call
meanwhile.`,
		Example: `  weir rules put rules.yaml --summary "higher limits at night"
  weir rules put rules.yaml --id login
  weir rules put rules.yaml --dry-run
  weir rules get login | sed s,5/1m,10/1m, | weir rules put -`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error { return f.put(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.id, "id", "", "`id` of the only rule to take from the file")
	flags.BoolVar(&f.dryRun, "dry-run", false, "write nothing, and print what would change")
	return f.writeFlags.addWriteFlags(cmd)
}

type putFlags struct {
	writeFlags
	id     string
	dryRun bool
}

func (f *putFlags) put(cmd *cobra.Command, name string) error {
	source, err := readRules(cmd, name)
	if err != nil {
		return err
	}
	if name == "-" {
		name = "standard input"
	}
	single, err := f.pick(cmd, name, source)
	if err != nil {
		return err
	}
	if f.dryRun {
		return f.rehearse(cmd, name, source, single)
	}
	q := question{method: http.MethodPut, path: []string{"rules"}, body: source}
	if single != nil {
		q.path, q.body = append(q.path, single.ID), rule.RuleToJSON(single)
	}
	f.placed = func(problems rule.Problems) rule.Problems { return placed(problems, name, single != nil) }
	err = f.write(cmd, q)
	if r, ok := errors.AsType[*rejection](err); ok && len(r.Problems) > 0 {
		return unwritable(cmd, name, f.placed(r.Problems))
	}
	return err
}

// pick returns the one rule that is to be put, or nil if it is the whole document. What
// is wrong is told here already, with the places in the file.
func (f *putFlags) pick(cmd *cobra.Command, name string, source []byte) (*rule.Rule, error) {
	if !isDocument(name, source) {
		r, problems := rule.ParseRule(name, source)
		if err := unwritable(cmd, name, problems); err != nil {
			return nil, err
		}
		if f.id != "" && f.id != r.ID {
			return nil, usage("--id: the rule in %[2]s is %[3]q, not %[1]q; leave --id out, or correct it", f.id, name, r.ID)
		}
		return r, nil
	}
	set, problems := rule.Parse(name, source)
	if err := unwritable(cmd, name, problems); err != nil || f.id == "" {
		return nil, err
	}
	for i := range set.Rules {
		if set.Rules[i].ID == f.id {
			return &set.Rules[i], nil
		}
	}
	return nil, usage("--id: %s has no rule %q; check the id", name, f.id)
}

// isDocument is whether a source is a whole document, rather than one rule. One that
// cannot be read is taken for one, to be told why.
func isDocument(name string, source []byte) bool {
	root := document.Read(name, string(source), func(document.Fault) {})
	if root == nil || root.Kind != document.Mapping {
		return true
	}
	for _, field := range []string{"rules", "exempt", "block"} {
		if root.Get(field) != nil {
			return true
		}
	}
	return root.Get("id") == nil && root.Get("key") == nil
}

// unwritable is why the rules of a file are not written, after its errors have been printed.
func unwritable(cmd *cobra.Command, name string, problems rule.Problems) error {
	err := unusable(cmd, name, "used", problems)
	if err != nil {
		err = fmt.Errorf("%w; nothing was written", err)
	}
	return err
}

// placed names the file in what a server found wrong. Of a rule by itself the server
// does not know the place, or only that in its own document.
func placed(problems rule.Problems, name string, single bool) rule.Problems {
	for i := range problems {
		problems[i].File = name
		if single {
			problems[i].Line, problems[i].Column, problems[i].Excerpt = 0, 0, ""
		}
	}
	return problems
}

// rehearse asks the server what it thinks of the rules, and says what would change.
func (f *putFlags) rehearse(cmd *cobra.Command, name string, source []byte, single *rule.Rule) error {
	server, err := f.client(cmd)
	if err != nil {
		return err
	}
	now, err := server.ask(cmd.Context(), current, nil)
	if err != nil {
		return err
	}
	q := question{method: http.MethodPost, path: []string{"rules", "validate"}, body: source}
	if single != nil {
		q.body, q.query = rule.RuleToJSON(single), url.Values{"as": {"rule"}}
	}
	var verdict httpapi.ValidateAnswer
	got, err := server.ask(cmd.Context(), q, &verdict)
	if err != nil {
		return err
	}
	if f.output == "json" {
		err = printJSON(cmd.OutOrStdout(), got.body)
	}
	problems := placed(verdict.Problems, name, single != nil)
	switch {
	case err != nil:
		return err
	case !verdict.Valid:
		return unwritable(cmd, name, problems)
	case f.output == "json":
		return nil
	}
	fmt.Fprint(cmd.ErrOrStderr(), printableAll(problems.String()))
	if single != nil {
		old, err := new(ruleedit.Reader).Read(now.body)
		if err != nil {
			return err
		}
		next, _, err := old.Put(single)
		if err != nil {
			return err
		}
		source = next.Source
	}
	if bytes.Equal(now.body, source) {
		return say(cmd, "no changes\n")
	}
	before, _ := rule.Parse("", now.body) // nil is a document without rules
	after, problems := rule.Parse("", source)
	if err := problems.Err(); err != nil {
		return err
	}
	return say(cmd, "would change: %s; nothing was written\n", printable(rule.Summarize(before, after)))
}

// printWritten says what has been written, and what is doubtful about it.
func printWritten(cmd *cobra.Command, w *httpapi.WriteAnswer) error {
	if len(w.Warnings) > 0 {
		fmt.Fprint(cmd.ErrOrStderr(), printableAll(rule.Problems(w.Warnings).String()))
	}
	if !w.CommentsKept {
		fmt.Fprintln(cmd.ErrOrStderr(), "weir: the document lost its comments, because it had to be rewritten; the previous version still has them.")
	}
	return say(cmd, "version %d: %s\n", w.Version.Number, printable(w.Version.Summary))
}

// lost says who was faster, if somebody was.
func (c *client) lost(ctx context.Context, err error) error {
	r, ok := errors.AsType[*rejection](err)
	if !ok || r.Status != http.StatusPreconditionFailed {
		return err
	}
	who := fmt.Sprintf("version %d", r.Version)
	var v httpapi.VersionAnswer
	if err := c.fetch(ctx, fmt.Sprintf("rules/history/%d", r.Version), nil, &v); err == nil && v.Author != "" {
		who += fmt.Sprintf(" by %s (%s)", printable(v.Author), printable(v.Summary))
	}
	return fmt.Errorf("the rules were changed meanwhile, to %s; look at them with weir rules get, then try again", who)
}
