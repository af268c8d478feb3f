package grpcapi

import (
	"cmp"
	"context"
	"errors"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// rules is the service Rules.
type rules struct {
	pb.UnimplementedRulesServer
	s *Server
}

// GetRules implements pb.RulesServer.
func (r rules) GetRules(ctx context.Context, req *pb.GetRulesRequest) (*pb.GetRulesResponse, error) {
	return managed(ctx, r.s, trust.Read, func(c *call) (*pb.GetRulesResponse, error) {
		v, err := r.s.options.Editor.Current(c)
		if err != nil {
			return nil, r.s.trouble(c).Rules(err)
		}
		source := v.Source
		if id := req.GetId(); id != "" {
			one := v.Document.Find(id)
			if one == nil {
				return nil, calls.NoRule(id)
			}
			source = manage.RuleToYAML(one)
		}
		return &pb.GetRulesResponse{Version: versionOf(v), Source: valid(string(source))}, nil
	})
}

// ListVersions implements pb.RulesServer.
func (r rules) ListVersions(ctx context.Context, _ *pb.ListVersionsRequest) (*pb.ListVersionsResponse, error) {
	return managed(ctx, r.s, trust.Read, func(c *call) (*pb.ListVersionsResponse, error) {
		versions, err := r.s.options.Editor.History(c)
		if err != nil {
			return nil, r.s.trouble(c).Rules(err)
		}
		return &pb.ListVersionsResponse{Versions: made(versions, versionOf)}, nil
	})
}

// GetVersion implements pb.RulesServer.
func (r rules) GetVersion(ctx context.Context, req *pb.GetVersionRequest) (*pb.Version, error) {
	return managed(ctx, r.s, trust.Read, func(c *call) (*pb.Version, error) {
		v, err := r.findVersion(c, req.GetNumber())
		if err != nil {
			return nil, err
		}
		answer := versionOf(v)
		answer.Source = valid(string(v.Source))
		return answer, nil
	})
}

// findVersion is a version that is kept.
func (r rules) findVersion(c *call, number int64) (repo.Version, error) {
	v, err := r.s.options.Editor.Version(c, number)
	return v, r.s.trouble(c).Version(number, err)
}

// ValidateRules implements pb.RulesServer.
func (r rules) ValidateRules(ctx context.Context, req *pb.ValidateRulesRequest) (*pb.ValidateRulesResponse, error) {
	return managed(ctx, r.s, trust.Read, func(c *call) (*pb.ValidateRulesResponse, error) {
		source := []byte(req.GetSource())
		var problems rule.Problems
		if req.GetRule() {
			var err error
			if problems, err = r.s.options.Editor.Try(c, source); err != nil {
				return nil, r.s.trouble(c).Rules(err)
			}
		} else {
			_, problems = rule.Parse("", source)
		}
		return &pb.ValidateRulesResponse{Valid: problems.Err() == nil, Problems: problemsOf(problems)}, nil
	})
}

// versionOf is a version without its document.
func versionOf(v repo.Version) *pb.Version {
	return &pb.Version{Number: v.Number, Author: valid(v.Author), Summary: valid(v.Summary), Time: instant(v.Time)}
}

func problemsOf(problems rule.Problems) []*pb.Problem {
	var all []*pb.Problem
	for _, p := range problems {
		severity := pb.Severity_SEVERITY_ERROR
		if p.Severity == rule.Warning {
			severity = pb.Severity_SEVERITY_WARNING
		}
		all = append(all, &pb.Problem{
			Severity: severity, Code: p.Code, Line: int32(p.Line), Column: int32(p.Column),
			Rule: valid(p.Rule), Field: valid(p.Field), Message: valid(p.Message), Excerpt: valid(p.Excerpt),
		})
	}
	return all
}

// PutRules implements pb.RulesServer.
func (r rules) PutRules(ctx context.Context, req *pb.PutRulesRequest) (*pb.WriteResponse, error) {
	d := draft{base: req.Base, any: req.GetAnyVersion(), summary: req.GetSummary()}
	read := func(*call) (*ruleedit.Document, error) { return r.s.options.Editor.Read([]byte(req.GetSource())) }
	return write(ctx, r.s, d, read, r.s.options.Editor.Replace)
}

// CreateRule implements pb.RulesServer. A new rule overwrites no change, so it needs no
// version.
func (r rules) CreateRule(ctx context.Context, req *pb.CreateRuleRequest) (*pb.WriteResponse, error) {
	d := draft{base: req.Base, any: req.Base == nil, summary: req.GetSummary()}
	read := func(*call) (*rule.Rule, error) { return manage.ParseRule([]byte(req.GetSource())) }
	return write(ctx, r.s, d, read, r.s.options.Editor.Add)
}

// PutRule implements pb.RulesServer.
func (r rules) PutRule(ctx context.Context, req *pb.PutRuleRequest) (*pb.WriteResponse, error) {
	d := draft{base: req.Base, any: req.GetAnyVersion(), summary: req.GetSummary()}
	read := func(*call) (*rule.Rule, error) { return manage.ParseRule([]byte(req.GetSource())) }
	return write(ctx, r.s, d, read, r.s.options.Editor.Put)
}

// DeleteRule implements pb.RulesServer.
func (r rules) DeleteRule(ctx context.Context, req *pb.DeleteRuleRequest) (*pb.WriteResponse, error) {
	d := draft{id: req.GetId(), base: req.Base, any: req.GetAnyVersion(), summary: req.GetSummary()}
	read := func(*call) (string, error) { return d.id, nil }
	return write(ctx, r.s, d, read, r.s.options.Editor.Delete)
}

// Rollback implements pb.RulesServer.
func (r rules) Rollback(ctx context.Context, req *pb.RollbackRequest) (*pb.WriteResponse, error) {
	d := draft{base: req.Base, any: req.GetAnyVersion(), summary: req.GetSummary()}
	read := func(c *call) (repo.Version, error) {
		if n := req.GetVersion(); n < 1 {
			return repo.Version{}, fault.Field("version", "%d is not a version; ListVersions lists the versions that are kept.", n)
		}
		return r.findVersion(c, req.GetVersion())
	}
	return write(ctx, r.s, d, read, r.s.options.Editor.RollBack)
}

// draft is what all changes say.
type draft struct {
	id      string // of the rule that is deleted
	base    *int64 // the version that was read
	any     bool   // instead: whatever is there
	summary string
}

// terms are those of a draft, if it makes sense.
func (d draft) terms(c *call) (manage.Terms, error) {
	t := manage.Terms{Author: cmp.Or(c.holder, "grpc"), Summary: d.summary}
	switch {
	case d.base != nil && d.any:
		return t, fault.Field("any_version", "cannot be combined with base %d; send one of the two.", *d.base)
	case d.base != nil:
		t.Match = manage.Base(*d.base)
	case !d.any:
		return t, fault.VersionRequired.Of("base is required, so that no change is overwritten; send the version you read as base, or any_version to replace any version.").In("base")
	}
	if len(d.summary) > rule.MaxSummary {
		return t, fault.Field("summary", "%d bytes exceed the maximum of %d; write one line.", len(d.summary), rule.MaxSummary)
	}
	return t, nil
}

// write reads what the rules are to become, and carries the change out.
func write[T any](ctx context.Context, s *Server, d draft, read func(*call) (T, error), change func(context.Context, manage.Terms, T) (manage.Written, error)) (*pb.WriteResponse, error) {
	return managed(ctx, s, trust.Admin, func(c *call) (*pb.WriteResponse, error) {
		t, err := d.terms(c)
		if err != nil {
			return nil, err
		}
		var w manage.Written
		to, err := read(c)
		if err == nil {
			w, err = change(c, t, to)
		}
		switch {
		case errors.Is(err, manage.ErrEmpty):
			return nil, fault.Field("source", "%s", manage.Sentence(err))
		case err != nil:
			return nil, s.trouble(c).Change(d.id, err)
		}
		return &pb.WriteResponse{
			Version: versionOf(w.Version), Warnings: problemsOf(w.Warnings), CommentsKept: w.CommentsKept, Created: w.New,
		}, nil
	})
}

// keys is the service Keys.
type keys struct {
	pb.UnimplementedKeysServer
	s *Server
}

// GetKey implements pb.KeysServer.
func (k keys) GetKey(ctx context.Context, req *pb.GetKeyRequest) (*pb.GetKeyResponse, error) {
	return managed(ctx, k.s, trust.Read, func(c *call) (*pb.GetKeyResponse, error) {
		if err := manage.CheckClient(req.GetKey(), req.GetTier(), "user:alice", "Check"); err != nil {
			return nil, err
		}
		var v engine.Verdict
		tier, err := k.s.options.Engine.Standing(c, req.GetRule(), req.GetKey(), req.GetTier(), &v)
		if err != nil {
			return nil, k.s.trouble(c).Key(err)
		}
		return &pb.GetKeyResponse{
			Version: v.Version, Results: results(&v, nil, nil),
			Tier: tier.Name, TierFrom: pb.TierFrom(tier.From),
		}, nil
	})
}

// ResetKey implements pb.KeysServer.
func (k keys) ResetKey(ctx context.Context, req *pb.ResetKeyRequest) (*pb.ResetKeyResponse, error) {
	return managed(ctx, k.s, trust.Admin, func(c *call) (*pb.ResetKeyResponse, error) {
		if err := manage.CheckClient(req.GetKey(), "", "user:alice", "Check"); err != nil {
			return nil, err
		}
		rules, err := k.s.options.Engine.Reset(c, req.GetRule(), req.GetKey())
		if err != nil {
			return nil, k.s.trouble(c).Key(err)
		}
		return &pb.ResetKeyResponse{Rules: rules}, nil
	})
}
