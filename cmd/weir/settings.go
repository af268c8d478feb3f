package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/spelling"
)

// Every flag of a server is also a key of its configuration file, with underscores
// for dashes, and a variable of the environment: --snapshot-every, snapshot_every and
// WEIR_SNAPSHOT_EVERY. Precedence: flag, environment variable, file.

const maxConfig = 1 << 20

// settle gives every flag that was not set the value of the environment or the file.
func settle(cmd *cobra.Command) error {
	var wrong []error
	set := func(f *pflag.Flag, value, from string) {
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			wrong = append(wrong, usage("%s: %s is invalid; write %s, as for --%s", from, document.Quote(value), kind(f), f.Name))
		}
	}
	flags := map[string]*pflag.Flag{} // that may be set from outside, by key
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		flags[key(f.Name)] = f
		if value := os.Getenv(variable(f.Name)); value != "" && !f.Changed {
			set(f, value, variable(f.Name))
		}
	})
	name, _ := cmd.Flags().GetString("config")
	if name == "" || len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	config, err := readConfig(name)
	if err != nil {
		return err
	}
	given := map[string]bool{} // by a flag or a variable
	for _, f := range flags {
		given[f.Name] = f.Changed
	}
	for _, m := range config.Members {
		place := fmt.Sprintf("%s:%d:%d: %s", name, m.Name.Line, m.Name.Column, m.Name.Text)
		f := flags[m.Name.Text]
		if f == nil {
			every := fmt.Sprintf("the keys are the flags of %s, with underscores for dashes", cmd.CommandPath())
			wrong = append(wrong, usage("%s is unknown; %s", place, spelling.Hint(m.Name.Text, slices.Collect(maps.Keys(flags)), every)))
			continue
		}
		if given[f.Name] {
			continue
		}
		all, err := values(f.Name, m.Value, forms[f.Name])
		if err != nil {
			wrong = append(wrong, usage("%s: %w", place, err))
			continue
		}
		for _, one := range all {
			if !given[one.flag] {
				set(cmd.Flags().Lookup(one.flag), one.text, place)
			}
		}
	}
	return errors.Join(wrong...)
}

func key(flag string) string      { return strings.ReplaceAll(flag, "-", "_") }
func variable(flag string) string { return "WEIR_" + strings.ToUpper(key(flag)) }

// readConfig reads a file that is one mapping.
func readConfig(name string) (*document.Element, error) {
	source, err := disk.ReadFile(name, maxConfig, "configuration")
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	var wrong []error
	root := document.Read(name, string(source), func(fault document.Fault) {
		wrong = append(wrong, usage("%s:%d:%d: %s", name, fault.Line, fault.Column, fault.Message))
	})
	switch {
	case len(wrong) > 0:
		return nil, errors.Join(wrong...)
	case root == nil || root.Kind == document.Nothing:
		return &document.Element{}, nil
	case root.Kind != document.Mapping:
		return nil, usage("%s: the file must be a mapping, with lines such as \"store: redis://127.0.0.1:6379\"; this is %s", name, root.Describe())
	}
	return root, nil
}
