// Package rulefile is for rules in a file. [Open] returns an engine that follows one:
//
//	rules, err := rulefile.Open(ctx, "rules.yaml", engine.Options{})
//
// A program that imports it can read YAML: [rule.Parse], [engine.Engine.Load] and everything else
// that takes a document of rules. Without this package they read JSON alone, and the program
// contains neither a YAML library nor one that watches files.
package rulefile

import (
	"context"
	"log/slog"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/repo/file"
)

// Open returns an engine with the rules of a file, YAML or JSON. It watches the file
// until the context ends, and reloads it when it changes. If the new rules have errors,
// the engine keeps the old rules and logs the errors. Open returns an error if the file
// does not exist or its rules are invalid. It never writes to the file.
func Open(ctx context.Context, path string, o engine.Options) (*engine.Engine, error) {
	e, err := engine.New(o)
	if err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	rules, err := file.Open(path, file.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	first, err := rules.Current(ctx)
	if err != nil {
		return nil, err
	}
	if err := install(e, first); err != nil {
		return nil, err
	}
	go rules.Watch(ctx, func(v repo.Version, err error) {
		_, now := e.Rules()
		if err == nil && v.Number == now {
			return
		}
		if err == nil {
			err = install(e, v)
		}
		if err != nil {
			o.Logger.Error("could not load the rules; the previous ones stay in force", "file", path, "version", now, "error", err)
			return
		}
		o.Logger.Info("rules in force", "file", path, "version", v.Number)
	})
	return e, nil
}

func install(e *engine.Engine, v repo.Version) error {
	table, err := v.Document.Table()
	if err == nil {
		e.Install(table, v.Number)
	}
	return err
}
