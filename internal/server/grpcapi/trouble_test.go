package grpcapi

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// gone is a repository that can be lost, or lose every race.
type gone struct {
	repo.Repository
	err   error // of everything
	write error // of writing
}

func (g *gone) Current(ctx context.Context) (repo.Version, error) {
	if g.err != nil {
		return repo.Version{}, g.err
	}
	return g.Repository.Current(ctx)
}

func (g *gone) Write(ctx context.Context, d repo.Draft) (repo.Version, error) {
	if g.write != nil {
		return repo.Version{}, g.write
	}
	return g.Repository.Write(ctx, d)
}

func (g *gone) History(ctx context.Context) ([]repo.Version, error) {
	if g.err != nil {
		return nil, g.err
	}
	return g.Repository.History(ctx)
}

func (g *gone) Find(ctx context.Context, n int64) (repo.Version, error) {
	if g.err != nil {
		return repo.Version{}, g.err
	}
	return g.Repository.Find(ctx, n)
}

func TestRulesAreGone(t *testing.T) {
	g := &gone{Repository: openRules(t, testRules)}
	s := newPipe(t, Options{Service: manage.Service{Rules: g}})
	g.err = errors.New("an internal path")
	for name, c := range managedCalls {
		if !strings.Contains(name, "Rules/") {
			continue
		}
		p := want(t, c.call(t.Context(), s), fault.RulesUnavailable)
		if strings.Contains(p.text, "business") || p.retry.RetryDelay.AsDuration() != fault.Outage || p.id == "" || !strings.Contains(s.log.String(), p.id) {
			t.Errorf("%s: %+v", name, p)
		}
	}
	g.err, g.write = nil, errors.New("the disk is full")
	_, err := s.admin.DeleteRule(t.Context(), &pb.DeleteRuleRequest{Id: "safe", AnyVersion: true})
	want(t, err, fault.RulesUnavailable, "whether it was made")
	g.write = &repo.ReadOnlyError{Why: "rules.yaml is a link", Err: errors.New("an internal path")}
	_, err = s.admin.DeleteRule(t.Context(), &pb.DeleteRuleRequest{Id: "safe", AnyVersion: true})
	want(t, err, fault.RulesReadOnly, "rules.yaml is a link. Change them where they come from")
	g.write = &repo.ConflictError{Base: 2, Current: repo.Version{Number: 7}}
	_, err = s.admin.DeleteRule(t.Context(), &pb.DeleteRuleRequest{Id: "safe", AnyVersion: true})
	if p := want(t, err, fault.Busy); p.retry == nil {
		t.Errorf("%+v", p)
	}
	_, err = s.admin.DeleteRule(t.Context(), &pb.DeleteRuleRequest{Id: "safe", Base: base(2)})
	if p := want(t, err, fault.VersionConflict); p.info.Metadata["version"] != "7" {
		t.Errorf("%+v", p)
	}
	g.write = context.DeadlineExceeded // of the repository's own
	_, err = s.admin.DeleteRule(t.Context(), &pb.DeleteRuleRequest{Id: "safe", AnyVersion: true})
	want(t, err, fault.RulesUnavailable)
}

func TestApplyFails(t *testing.T) {
	s := newPipe(t, Options{Service: manage.Service{Apply: func(repo.Version) error { return errors.New("no room") }}})
	_, err := s.admin.DeleteRule(t.Context(), &pb.DeleteRuleRequest{Id: "safe", AnyVersion: true})
	if p := want(t, err, fault.NotApplied, "Version 3 is stored"); p.info.Metadata["version"] != "3" || !strings.Contains(s.log.String(), "no room") {
		t.Errorf("%+v, and the log %s", p, s.log.String())
	}
}

// Who does not wait for its turn to write is not written.
func TestWriterLeaves(t *testing.T) {
	entered, proceed := make(chan bool), make(chan bool)
	s := newPipe(t, Options{Service: manage.Service{Apply: func(repo.Version) error {
		entered <- true
		<-proceed
		return nil
	}}})
	first := make(chan error)
	go func() {
		_, err := s.admin.DeleteRule(t.Context(), &pb.DeleteRuleRequest{Id: "safe", AnyVersion: true})
		first <- err
	}()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error)
	go func() {
		_, err := s.admin.DeleteRule(ctx, &pb.DeleteRuleRequest{Id: "queue", AnyVersion: true})
		second <- err
	}()
	cancel()
	if err := <-second; status.Code(err) != codes.Canceled {
		t.Errorf("%v", err)
	}
	close(proceed)
	if err := <-first; err != nil {
		t.Error(err)
	}
	s.grpc.GracefulStop() // so that the second is over on this side, too
	if v, err := s.rules.Current(t.Context()); err != nil || v.Number != 3 {
		t.Errorf("the version is %d %v", v.Number, err)
	}
}
