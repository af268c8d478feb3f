package grpcapi

import (
	"context"
	"log/slog"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
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
	return managed(ctx, r.s, pb.Rules_GetRules_FullMethodName, trust.Read, func(c *call) (*pb.GetRulesResponse, error) {
		v, err := r.s.options.Editor.Current(c)
		if err != nil {
			return nil, r.s.rulesTrouble(c, err)
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
	return managed(ctx, r.s, pb.Rules_ListVersions_FullMethodName, trust.Read, func(c *call) (*pb.ListVersionsResponse, error) {
		versions, err := r.s.options.Editor.History(c)
		if err != nil {
			return nil, r.s.rulesTrouble(c, err)
		}
		answer := new(pb.ListVersionsResponse)
		for _, v := range versions {
			answer.Versions = append(answer.Versions, versionOf(v))
		}
		return answer, nil
	})
}

// GetVersion implements pb.RulesServer.
func (r rules) GetVersion(ctx context.Context, req *pb.GetVersionRequest) (*pb.Version, error) {
	return managed(ctx, r.s, pb.Rules_GetVersion_FullMethodName, trust.Read, func(c *call) (*pb.Version, error) {
		v, err := r.find(c, req.GetNumber())
		if err != nil {
			return nil, err
		}
		answer := versionOf(v)
		answer.Source = valid(string(v.Source))
		return answer, nil
	})
}

// find is a version that is kept.
func (r rules) find(c *call, number int64) (repo.Version, error) {
	v, err := r.s.options.Editor.Version(c, number)
	if f := calls.OfVersion(number, err); f != nil {
		return v, f
	}
	if err != nil {
		err = r.s.rulesTrouble(c, err)
	}
	return v, err
}

// ValidateRules implements pb.RulesServer.
func (r rules) ValidateRules(ctx context.Context, req *pb.ValidateRulesRequest) (*pb.ValidateRulesResponse, error) {
	return managed(ctx, r.s, pb.Rules_ValidateRules_FullMethodName, trust.Read, func(c *call) (*pb.ValidateRulesResponse, error) {
		source := []byte(req.GetSource())
		var problems rule.Problems
		if req.GetRule() {
			var err error
			if problems, err = r.s.options.Editor.Try(c, source); err != nil {
				return nil, r.s.rulesTrouble(c, err)
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

// rulesTrouble is that the rules could not be read or written.
func (s *Server) rulesTrouble(c *call, err error) error {
	return s.unavailable(c, slog.LevelError, "cannot read or write rules", err, fault.Rules())
}
