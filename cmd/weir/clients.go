package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/rule"
)

func newClients() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "clients",
		Short: "Read and change the directory of clients",
		Long: `Read and change the directory of clients of a running weir. It says to whom API keys
belong, and which tier and limits clients have. weir hashes an API key before it sends it.`,
		Example: `  weir clients set user:ann --tier pro --limit api=500/1m
  weir clients set api_key:sha256:5d41402abc4b2a76b9719d911017c592 --parent user:ann
  weir clients get user:ann
  weir clients import clients.ndjson --dry-run`,
		Args: noOtherVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newClientsGet(), newClientsList(), newClientsSet(), newClientsMove(), newClientsBlock(true), newClientsBlock(false),
		newClientsDelete(), newClientsImport(), newClientsExport(), newClientsCheck())
	return cmd
}

func newClientsCheck() *cobra.Command {
	var rules string
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Report all errors in a file of clients",
		Long: `Report all errors in a file of clients (- for standard input), each with its line and a
remedy. weir serve --clients reads such a file, and weir clients import sends it. With --rules, also report limits and tiers that have no effect under these
rules. The exit status is 1 if there are any.`,
		Example: `  weir clients check clients.ndjson
  weir clients check clients.yaml --rules rules.yaml`,
		Args: arguments(1, 1, "one file of clients (- for standard input)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := readClients(cmd, args[0])
			if err != nil {
				return err
			}
			if rules != "" {
				table, err := compileFile(cmd, rules)
				if err != nil {
					return err
				}
				if err := checkIdle(cmd, d, table); err != nil {
					return err
				}
			}
			return say(cmd, "%s\n", notation.Count(d.Len(), "client"))
		},
	}
	cmd.Flags().StringVar(&rules, "rules", "", "rules `file` under which the limits and tiers must have an effect")
	return cmd
}

// readClients reads a file of clients, or standard input, and prints its errors.
func readClients(cmd *cobra.Command, path string) (*rule.Directory, error) {
	name, in, closeFile, err := openClientsFile(cmd, path)
	if err != nil {
		return nil, err
	}
	defer closeFile()
	d, problems, err := rule.ReadDirectory(name, in)
	if err != nil {
		return nil, err
	}
	return d, unusable(cmd, name, "used", problems)
}

// openClientsFile opens a file of clients, or standard input.
func openClientsFile(cmd *cobra.Command, path string) (name string, in io.Reader, closeFile func(), err error) {
	if path == "-" {
		return "standard input", cmd.InOrStdin(), func() {}, nil
	}
	file, err := os.Open(path)
	return path, file, func() { file.Close() }, err
}

// checkIdle prints what has no effect under some rules.
func checkIdle(cmd *cobra.Command, d *rule.Directory, table *rule.Table) error {
	e, err := engine.New(engine.Options{})
	if err != nil {
		return err
	}
	e.Install(table, 1)
	e.InstallClients(engine.Clients{Directory: d})
	_, err = e.Clients()
	idle, ok := errors.AsType[*engine.IdleError](err)
	if !ok {
		return err
	}
	for _, what := range idle.What {
		fmt.Fprintln(cmd.ErrOrStderr(), "no effect:", printable(what))
	}
	return fmt.Errorf("%s of clients without effect under these rules", notation.Count(len(idle.What), "setting"))
}

// printLine prints the clients of a request, and those that they belong to.
func printLine(w io.Writer, line []rule.Client) {
	for _, c := range line {
		text := c.Name
		for _, more := range []struct{ name, value string }{{"tier", c.Tier}, {"zone", c.Zone}, {"starts", c.Starts}, {"parent", c.Parent}} {
			if more.value != "" {
				text += ", " + more.name + " " + more.value
			}
		}
		for _, l := range c.Limits {
			text += ", " + l.Rule + ": " + strings.Join(l.Quota.Texts(), " and ")
		}
		if c.Blocked {
			text += ", blocked"
		}
		fmt.Fprintf(w, "client %s\n", text)
	}
}
