package main

import (
	"os"
	"regexp"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/weirhq/weir/internal/build"
)

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
