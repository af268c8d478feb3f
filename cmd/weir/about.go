package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/weirhq/weir/internal/build"
)

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of weir, and what it was built from",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), build.Read())
			}
			b := build.Read()
			commit := "(unknown)"
			if b.Commit != "" {
				commit = fmt.Sprintf("%s of %s", b.Commit, b.Time)
			}
			if b.Modified {
				commit += ", with changes"
			}
			return say(cmd, "weir      %s\ncommit    %s\ngo        %s\nplatform  %s\n", b.Version, commit, b.Go, b.Platform)
		},
	}
	addOutput(cmd, &output)
	return cmd
}

// completionTimeout is how long a shell waits for what a server knows.
const completionTimeout = 300 * time.Millisecond

func newCompletion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion " + strings.Join(shells, "|"),
		Short: "Print a completion script for a shell",
		Long: `Print a completion script for a shell. It completes the commands and flags of weir, and
the ids of rules if a running weir answers within 300 ms.`,
		Example: `  source <(weir completion bash)                                        # this session
  weir completion bash >/etc/bash_completion.d/weir                     # all users
  weir completion zsh >"${fpath[1]}/_weir"
  weir completion fish >~/.config/fish/completions/weir.fish
  weir completion powershell | Out-String | Invoke-Expression`,
		ValidArgs: shells,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("weir completion takes one shell: %s", strings.Join(shells, ", "))
			}
			if slices.Contains(shells, args[0]) {
				return nil
			}
			return usage("%q is not a known shell; write %s", args[0], strings.Join(shells, ", "))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, w := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(w, true)
			case "zsh":
				return root.GenZshCompletion(w)
			case "fish":
				return root.GenFishCompletion(w, true)
			}
			return root.GenPowerShellCompletionWithDesc(w)
		},
	}
}

// newMan is for those who make packages.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man directory",
		Short:  "Write the manual pages of all commands into a directory",
		Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("weir man takes one directory, into which it writes the manual pages")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			asCode(root)
			b := build.Read()
			made, _ := time.Parse(time.RFC3339, b.Time) // the same pages from the same commit
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Manual: "weir", Source: "weir " + b.Version, Date: &made}, args[0])
		},
	}
}

var indented = regexp.MustCompile(`(?m)^  `)

// asCode has the indented lines of the help be code in Markdown, of which the pages are made.
func asCode(cmd *cobra.Command) {
	cmd.Long = indented.ReplaceAllString(cmd.Long, "    ")
	for _, c := range cmd.Commands() {
		asCode(c)
	}
}
