package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

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
