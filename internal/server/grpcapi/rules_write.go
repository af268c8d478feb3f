package grpcapi

import (
	"context"
	"errors"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// PutRules implements pb.RulesServer.
func (r rules) PutRules(ctx context.Context, req *pb.PutRulesRequest) (*pb.WriteResponse, error) {
	d := draft{base: req.Base, any: req.GetAnyVersion(), summary: req.GetSummary()}
	return r.write(ctx, pb.Rules_PutRules_FullMethodName, d, func(c *call, t manage.Terms) (manage.Written, error) {
		d, err := r.s.options.Editor.Read([]byte(req.GetSource()))
		if err != nil {
			return manage.Written{}, err
		}
		return r.s.options.Editor.Replace(c, t, d)
	})
}

// CreateRule implements pb.RulesServer. A new rule overwrites no change, so it needs no
// version.
func (r rules) CreateRule(ctx context.Context, req *pb.CreateRuleRequest) (*pb.WriteResponse, error) {
	d := draft{base: req.Base, any: req.Base == nil, summary: req.GetSummary()}
	return r.writeRule(ctx, pb.Rules_CreateRule_FullMethodName, d, req.GetSource(), r.s.options.Editor.Add)
}

// PutRule implements pb.RulesServer.
func (r rules) PutRule(ctx context.Context, req *pb.PutRuleRequest) (*pb.WriteResponse, error) {
	d := draft{base: req.Base, any: req.GetAnyVersion(), summary: req.GetSummary()}
	return r.writeRule(ctx, pb.Rules_PutRule_FullMethodName, d, req.GetSource(), r.s.options.Editor.Put)
}

// writeRule carries out a change that is one rule.
func (r rules) writeRule(ctx context.Context, method string, d draft, source string, change func(context.Context, manage.Terms, *rule.Rule) (manage.Written, error)) (*pb.WriteResponse, error) {
	return r.write(ctx, method, d, func(c *call, t manage.Terms) (manage.Written, error) {
		one, err := manage.ParseRule([]byte(source))
		if err != nil {
			return manage.Written{}, err
		}
		return change(c, t, one)
	})
}

// DeleteRule implements pb.RulesServer.
func (r rules) DeleteRule(ctx context.Context, req *pb.DeleteRuleRequest) (*pb.WriteResponse, error) {
	d := draft{base: req.Base, any: req.GetAnyVersion(), summary: req.GetSummary()}
	return r.write(ctx, pb.Rules_DeleteRule_FullMethodName, d, func(c *call, t manage.Terms) (manage.Written, error) {
		w, err := r.s.options.Editor.Delete(c, t, req.GetId())
		if errors.Is(err, ruleedit.ErrNoRule) {
			return w, calls.NoRule(req.GetId())
		}
		return w, err
	})
}

// Rollback implements pb.RulesServer.
func (r rules) Rollback(ctx context.Context, req *pb.RollbackRequest) (*pb.WriteResponse, error) {
	d := draft{base: req.Base, any: req.GetAnyVersion(), summary: req.GetSummary()}
	return r.write(ctx, pb.Rules_Rollback_FullMethodName, d, func(c *call, t manage.Terms) (manage.Written, error) {
		if n := req.GetVersion(); n < 1 {
			return manage.Written{}, fault.BadField.Of("version: %d is not a version; ListVersions lists the versions that are kept.", n).In("version")
		}
		old, err := r.find(c, req.GetVersion())
		if err != nil {
			return manage.Written{}, err
		}
		return r.s.options.Editor.RollBack(c, t, old)
	})
}

// draft is what all changes say.
type draft struct {
	base    *int64 // the version that was read
	any     bool   // instead: whatever is there
	summary string
}

// terms are those of a draft, if it makes sense.
func (d draft) terms(c *call) (manage.Terms, error) {
	t := manage.Terms{Author: c.holder, Summary: d.summary}
	if t.Author == "" {
		t.Author = "grpc"
	}
	switch {
	case d.base != nil && d.any:
		return t, fault.BadField.Of("any_version: cannot be combined with base %d; send one of the two.", *d.base).In("any_version")
	case d.base != nil:
		t.Match = manage.Base(*d.base)
	case !d.any:
		return t, fault.VersionRequired.Of("base is required, so that no change is overwritten; send the version you read as base, or any_version to replace any version.").In("base")
	}
	if len(d.summary) > rule.MaxSummary {
		return t, fault.BadField.Of("summary: %d bytes exceed the maximum of %d; write one line.", len(d.summary), rule.MaxSummary).In("summary")
	}
	return t, nil
}

// write carries a change out.
func (r rules) write(ctx context.Context, method string, d draft, change func(*call, manage.Terms) (manage.Written, error)) (*pb.WriteResponse, error) {
	return managed(ctx, r.s, method, trust.Admin, func(c *call) (*pb.WriteResponse, error) {
		t, err := d.terms(c)
		if err != nil {
			return nil, err
		}
		w, err := change(c, t)
		if err != nil {
			return nil, r.s.unwritten(c, err)
		}
		return &pb.WriteResponse{
			Version: versionOf(w.Version), Warnings: problemsOf(w.Warnings), CommentsKept: w.CommentsKept, Created: w.New,
		}, nil
	})
}

// unwritten is why a change did not take place, or is not in force.
func (s *Server) unwritten(c *call, err error) error {
	if idle, ok := errors.AsType[*manage.UnappliedError](err); ok {
		s.options.Logger.Error("rules stored but not applied", "version", idle.Version, "request_id", c.id, "error", idle.Err)
	}
	if errors.Is(err, manage.ErrEmpty) {
		return fault.BadField.Of("source: %s", manage.Sentence(err)).In("source")
	}
	if f := calls.Of(err); f != nil {
		return f
	}
	return s.rulesTrouble(c, err)
}
