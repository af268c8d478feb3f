package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/ruleedit"
)

func newRulesFmt() *cobra.Command {
	var write, check bool
	cmd := &cobra.Command{
		Use:   "fmt FILE",
		Short: "Format a rules file",
		Long: `Format a rules file (- for standard input): indentation, quotes and the order of
fields. Comments and meaning stay the same. The result goes to standard output, or
with --write to the file.`,
		Example: `  weir rules fmt rules.yaml
  weir rules fmt --write rules.yaml
  weir rules fmt --check rules.yaml`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if write && check {
				return usage("--write and --check exclude each other; use one of them")
			}
			src, err := readRules(cmd, args[0])
			if err != nil {
				return err
			}
			out, problems := ruleedit.Tidy(args[0], src)
			if err := unusable(cmd, args[0], "formatted", problems); err != nil {
				return err
			}
			switch {
			case check && !bytes.Equal(src, out):
				return fmt.Errorf("%s is not formatted; run weir rules fmt --write %s", args[0], args[0])
			case check:
				return nil
			case write:
				return replace(args[0], src, out)
			}
			_, err = cmd.OutOrStdout().Write(out)
			return err
		},
	}
	cmd.Flags().BoolVar(&write, "write", false, "write the result to the file")
	cmd.Flags().BoolVar(&check, "check", false, "write nothing; exit with status 1 if the file is not formatted")
	return cmd
}

// replace gives a file another content, the old or the new one at any time.
func replace(name string, old, content []byte) error {
	if name == "-" {
		return usage("--write needs a file, not standard input")
	}
	if bytes.Equal(old, content) {
		return nil
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	return disk.Replace(name, info.Mode().Perm(), func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}
