package engine

import (
	"context"
	"log/slog"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/repo"
	"github.com/weirhq/weir/internal/repo/file"
	"github.com/weirhq/weir/rule"
)

// Open returns an engine with the rules of a file, YAML or JSON. It watches the file
// until the context ends, and reloads it when it changes. If the new rules have errors,
// the engine keeps the old rules and logs the errors. Open returns an error if the file
// does not exist or its rules are invalid. It never writes to the file.
func Open(ctx context.Context, path string, o Options) (*Engine, error) {
	e, err := New(o)
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
	if err := e.load(path, first.Source, first.Number); err != nil {
		return nil, err
	}
	go rules.Watch(ctx, func(v repo.Version, err error) {
		_, now := e.Rules()
		if err == nil && v.Number == now {
			return
		}
		if err == nil {
			err = e.load(path, v.Source, v.Number)
		}
		if err != nil {
			o.Logger.Error("could not load the rules; the previous ones stay in force", "file", path, "version", now, "error", err)
			return
		}
		o.Logger.Info("rules in force", "file", path, "version", v.Number)
	})
	return e, nil
}

// Load puts the rules of a document, YAML or JSON, into force. Messages contain the
// name; if it ends in .json, the document is JSON.
func (e *Engine) Load(name string, document []byte) error {
	_, version := e.Rules()
	return e.load(name, document, version+1)
}

func (e *Engine) load(name string, document []byte, version int64) error {
	set, err := rule.Usable(name, document)
	if err != nil {
		return err
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		return err
	}
	e.Install(table, version)
	return nil
}

// Judge decides a request as Check does and returns a new verdict. It costs one
// allocation if no more than four limits apply.
func (e *Engine) Judge(ctx context.Context, req rule.Request) (*Verdict, error) {
	a := &answer{request: req}
	v := &a.verdict
	v.Results, v.hits, v.ends, v.keys = a.results[:0], a.hits[:0], a.ends[:0], a.keys[:0]
	v.ops, v.decisions = a.ops[:0], a.decisions[:0]
	return v, e.Check(ctx, &a.request, v)
}

// answer is a verdict with room for what the usual request needs.
type answer struct {
	verdict   Verdict
	request   rule.Request
	results   [4]Result
	hits      [4]rule.Hit
	ends      [4]int
	ops       [4]weir.Op
	decisions [4]weir.Decision
	keys      [128]byte
}
