package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is what the go command knows about this program.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`   // "" if it was not built from a checkout
	Time     string `json:"time,omitempty"`     // of the commit
	Modified bool   `json:"modified,omitempty"` // the checkout had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readBuild() build {
	b := build{Version: "(unknown)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func version() string { return readBuild().Version }

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of weir, and what it was built from",
		Args:  noArguments,
		PreRunE: func(*cobra.Command, []string) error {
			return oneOf("output", output, "text", "json")
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), readBuild())
			}
			return readBuild().print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&output, "output", "text", "output `format`: text or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (b build) print(w io.Writer) error {
	commit := "(unknown)"
	if b.Commit != "" {
		commit = fmt.Sprintf("%s of %s", b.Commit, b.Time)
	}
	if b.Modified {
		commit += ", with changes"
	}
	_, err := fmt.Fprintf(w, "weir      %s\ncommit    %s\ngo        %s\nplatform  %s\n", b.Version, commit, b.Go, b.Platform)
	return err
}
