// Command weir limits the rate of requests, and shows how. See weir --help.
package main

import (
	"errors"
	"io"
	"os"
	_ "time/tzdata" // counters go by calendars of places, and a container often has no list of time zones

	"github.com/spf13/cobra"
	"github.com/weirhq/weir/internal/build"
	_ "github.com/weirhq/weir/rule/expression" // rules may have expressions
	_ "github.com/weirhq/weir/rule/rulefile"   // and are YAML
	_ "golang.org/x/crypto/x509roots/fallback" // public CAs, where a container has no list of its own
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole command, and returns its exit code: 0 done, 1 failed, 2 wrong
// usage, 3 denied.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errDenied):
		return exitDenied // the answer was printed
	}
	if _, _, unknown := root.Find(args); unknown != nil {
		err = unknownVerb(root, args)
	}
	return report(stderr, err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "weir is an API rate limiter",
		Long: `weir is an API rate limiter: it decides whether a request is allowed.

Run weir as a service, or as a reverse proxy in front of your services:

  weir serve --rules rules.yaml
  weir gateway --rules rules.yaml --upstream http://127.0.0.1:9000

Check requests and manage a running weir:

  weir check --ip 203.0.113.7 --method POST --path /api/login
  weir rules list
  weir top

Compare the algorithms, and see which rules apply to a request:

  weir simulate
  weir rules explain rules.yaml --ip 203.0.113.7 --method POST --path /api/login`,
		Version:       build.Read().Version,
		SilenceUsage:  true, // an error is one sentence, not a page
		SilenceErrors: true, // report prints it
	}
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(printUsage)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(newHelp(root))
	root.AddCommand(newServe(), newGateway(), newRules(), newEnvoy(), newClients(), newSimulate(), newReplay(), newBound())
	root.AddCommand(newCheck(), newHealth(), newTop(), newAlerts(), newKeys(), newSpend(), newOverrides(), newBench(), newDemo(), newVersion(), newCompletion(), newMan())
	return root
}

// newHelp differs from cobra's in that a verb that does not exist is an error.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Show the help of a command",
		RunE: func(_ *cobra.Command, args []string) error {
			verb, _, err := root.Find(args)
			if err != nil {
				return unknownVerb(root, args)
			}
			verb.InitDefaultHelpFlag()
			verb.InitDefaultVersionFlag()
			return verb.Help()
		},
	}
}
