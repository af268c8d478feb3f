package grpcapi

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/rule"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func base(n int64) *int64 { return &n }

func TestRules(t *testing.T) {
	s := newStand(t, Options{})
	ctx := t.Context()
	all, err := s.admin.GetRules(ctx, &pb.GetRulesRequest{})
	if err != nil || all.Source != testRules || all.Version.Number != 2 || all.Version.Source != "" || all.Version.Author != "test" || !all.Version.Time.IsValid() {
		t.Fatalf("%v %v", all, err)
	}
	one, err := s.admin.GetRules(ctx, &pb.GetRulesRequest{Id: "api"})
	if err != nil || one.Source != "id: api\nmatch:\n  path: /api/**\nkey: user\nlimit: 100/1m\ntiers:\n  enterprise: unlimited\n  pro: 1000/1m\n" {
		t.Fatalf("%v %v", one, err)
	}
	_, err = s.admin.GetRules(ctx, &pb.GetRulesRequest{Id: "none"})
	want(t, err, fault.NoRule, `"none"`)

	// A rule is created, replaced and removed; this instance applies each change
	// immediately.
	w, err := s.admin.CreateRule(ctx, &pb.CreateRuleRequest{Source: "{id: signin, match: {path: /signin}, key: ip, limit: 1/1m}", Summary: "for the new page"})
	if err != nil || !w.Created || !w.CommentsKept || w.Version.Number != 3 || w.Version.Author != "grpc" || w.Version.Summary != "for the new page" || len(w.Warnings) != 1 || w.Warnings[0].Code != "W006" || w.Warnings[0].Severity != pb.Severity_SEVERITY_WARNING {
		t.Fatalf("%v %v", w, err)
	}
	if a, err := s.limiter.Check(ctx, &pb.CheckRequest{Path: "/signin", Ip: "192.0.2.1"}); err != nil || a.Limit != 1 || a.Version != 3 {
		t.Errorf("%v %v", a, err)
	}
	_, err = s.admin.CreateRule(ctx, &pb.CreateRuleRequest{Source: "{id: signin, key: ip, limit: 1/1m}"})
	want(t, err, fault.RuleExists, "signin")
	w, err = s.admin.PutRule(ctx, &pb.PutRuleRequest{Source: "{id: signin, match: {path: /signin}, key: ip, limit: 2/1m, on_failure: local}", Base: base(3)})
	if err != nil || w.Created || w.Version.Number != 4 || len(w.Warnings) != 0 || !strings.Contains(w.Version.Summary, "1/1m → 2/1m") {
		t.Fatalf("%v %v", w, err)
	}
	w, err = s.admin.PutRule(ctx, &pb.PutRuleRequest{Source: "{id: search, key: ip, limit: 2/1m}", AnyVersion: true})
	if err != nil || !w.Created || w.Version.Number != 5 {
		t.Fatalf("%v %v", w, err)
	}
	// Too late is ABORTED, with the latest version.
	for _, call := range []func() error{
		func() error {
			_, err := s.admin.DeleteRule(ctx, &pb.DeleteRuleRequest{Id: "search", Base: base(4)})
			return err
		},
		func() error {
			_, err := s.admin.PutRules(ctx, &pb.PutRulesRequest{Source: "rules: []", Base: base(0)})
			return err
		},
		func() error {
			_, err := s.admin.CreateRule(ctx, &pb.CreateRuleRequest{Source: "{id: x, key: ip, limit: 2/1m}", Base: base(1)})
			return err
		},
		func() error {
			_, err := s.admin.Rollback(ctx, &pb.RollbackRequest{Version: 2, Base: base(3)})
			return err
		},
	} {
		if p := want(t, call(), fault.VersionConflict, "version is 5"); p.info.Metadata["version"] != "5" || p.id == "" {
			t.Errorf("%+v", p)
		}
	}
	if w, err = s.admin.DeleteRule(ctx, &pb.DeleteRuleRequest{Id: "search", Base: base(5)}); err != nil || w.Version.Number != 6 {
		t.Fatalf("%v %v", w, err)
	}
	_, err = s.admin.DeleteRule(ctx, &pb.DeleteRuleRequest{Id: "search", AnyVersion: true})
	want(t, err, fault.NoRule, `"search"`)
	if w, err = s.admin.Rollback(ctx, &pb.RollbackRequest{Version: 2, Base: base(6)}); err != nil || w.Version.Number != 7 || w.Version.Summary != "rolled back to 2: removed signin" {
		t.Fatalf("%v %v", w, err)
	}
	if all, err = s.admin.GetRules(ctx, &pb.GetRulesRequest{}); err != nil || all.Source != testRules {
		t.Errorf("comments are lost: %v %v", all, err)
	}
	if w, err = s.admin.PutRules(ctx, &pb.PutRulesRequest{Source: "rules: []\n", Base: base(7), Summary: "none"}); err != nil || w.Version.Number != 8 || w.Version.Summary != "none" {
		t.Fatalf("%v %v", w, err)
	}
	history, err := s.admin.ListVersions(ctx, &pb.ListVersionsRequest{})
	if err != nil || len(history.Versions) < 7 || history.Versions[0].Number != 8 || history.Versions[0].Source != "" {
		t.Fatalf("%v %v", history, err)
	}
	old, err := s.admin.GetVersion(ctx, &pb.GetVersionRequest{Number: 7})
	if err != nil || old.Source != testRules || old.Number != 7 {
		t.Fatalf("%v %v", old, err)
	}
	_, err = s.admin.GetVersion(ctx, &pb.GetVersionRequest{Number: 99})
	want(t, err, fault.NoVersion, "99")
	_, err = s.admin.Rollback(ctx, &pb.RollbackRequest{Version: 99, AnyVersion: true})
	want(t, err, fault.NoVersion, "99")
}

func TestRulesProblems(t *testing.T) {
	s := newPipe(t, Options{})
	ctx := t.Context()
	put := func(req *pb.PutRulesRequest) error {
		_, err := s.admin.PutRules(ctx, req)
		return err
	}
	want(t, put(&pb.PutRulesRequest{Source: "rules: []"}), fault.VersionRequired, "any_version").about(t, "base")
	want(t, put(&pb.PutRulesRequest{Source: "rules: []", Base: base(2), AnyVersion: true}), fault.BadField, "one of the two").about(t, "any_version")
	want(t, put(&pb.PutRulesRequest{Source: "", AnyVersion: true}), fault.BadField, "rules: []").about(t, "source")
	want(t, put(&pb.PutRulesRequest{Source: "rules: []", AnyVersion: true, Summary: strings.Repeat("x", rule.MaxSummary+1)}), fault.BadField, "1001 bytes").about(t, "summary")
	p := want(t, put(&pb.PutRulesRequest{Source: "rules:\n- {id: upload, xyz: user, limit: 10/1h}\n", AnyVersion: true}), fault.BadRules, "There is another error")
	if p.info.Metadata["problems"] != "2" || len(p.bad.FieldViolations) != 2 || p.bad.FieldViolations[1].Reason != "E005" || !strings.HasPrefix(p.bad.FieldViolations[1].Description, "line 2, column 16: ") {
		t.Errorf("%+v", p)
	}
	for _, id := range []string{"", "\x00"} {
		_, err := s.admin.DeleteRule(ctx, &pb.DeleteRuleRequest{Id: id, AnyVersion: true})
		want(t, err, fault.NoRule)
	}
	_, err := s.admin.PutRule(ctx, &pb.PutRuleRequest{Source: "{id: a, key: ip}", AnyVersion: true})
	want(t, err, fault.BadRules)
	_, err = s.admin.CreateRule(ctx, &pb.CreateRuleRequest{Source: "{id: a, key: ip"})
	want(t, err, fault.BadRules)
	_, err = s.admin.Rollback(ctx, &pb.RollbackRequest{AnyVersion: true})
	want(t, err, fault.BadField).about(t, "version")

	// However many errors there are, what is sent as metadata is short.
	err = put(&pb.PutRulesRequest{Source: "rules:\n" + strings.Repeat("- {id: "+strings.Repeat("x", 99)+", xyz: "+strings.Repeat("u", 200)+"}\n", 1000), AnyVersion: true})
	p = want(t, err, fault.BadRules)
	if size := proto.Size(status.Convert(err).Proto()); size > 6<<10 || p.info.Metadata["problems"] != "1001" || len(p.bad.FieldViolations) < 2 {
		t.Errorf("it has %d bytes, and %v", size, p.info)
	}
	if err := put(&pb.PutRulesRequest{Source: strings.Repeat("#", rule.MaxDocument+128<<10), AnyVersion: true}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a huge document: %v", err)
	}
	// The longest document fits into a message, so that it is rule that says no.
	want(t, put(&pb.PutRulesRequest{Source: "rules: []\n" + strings.Repeat("#", rule.MaxDocument), AnyVersion: true}), fault.BadRules)
}

func TestValidateRules(t *testing.T) {
	s := newPipe(t, Options{})
	for _, c := range []struct {
		source string
		rule   bool
		valid  bool
		code   string
	}{
		{"rules: []", false, true, ""},
		{"rules: [{id: a, key: ip}]", false, false, "E007"},
		{"{id: a, key: ip}", true, false, "E007"},
		{"{id: a, key: ip, limit: 1/1s}", true, true, ""},
		{"{id: signin, match: {path: /signin}, key: ip, limit: 1/1s}", true, true, "W006"},
		{"{id: b, match: {path: /safe}, key: global, limit: 10/1s, on_failure: closed}", true, false, "E025"}, // with those that are there
	} {
		a, err := s.admin.ValidateRules(t.Context(), &pb.ValidateRulesRequest{Source: c.source, Rule: c.rule})
		if err != nil {
			t.Fatal(err)
		}
		code := ""
		if len(a.Problems) > 0 {
			code = a.Problems[0].Code
		}
		if a.Valid != c.valid || code != c.code {
			t.Errorf("%s: %v", c.source, a)
		}
	}
	if v, err := s.rules.Current(t.Context()); err != nil || v.Number != 2 {
		t.Errorf("something was written: %v %v", v.Number, err)
	}
}

// Writers on two instances, some of whom name what they have read, lose nothing.
func TestWritersLoseNothing(t *testing.T) {
	repository := openRules(t, testRules)
	a, b := newStand(t, Options{Service: manage.Service{Rules: repository}}), newPipe(t, Options{Service: manage.Service{Rules: repository}})
	const each = 5
	var wg sync.WaitGroup
	for i := range each {
		source := func(who string) string {
			return fmt.Sprintf("{id: %s%d, match: {path: /%[1]s}, key: ip, limit: %[3]d/1m}", who, i, 100+i)
		}
		for who, admin := range map[string]pb.RulesClient{"a": a.admin, "b": b.admin} {
			wg.Go(func() {
				if _, err := admin.PutRule(t.Context(), &pb.PutRuleRequest{Source: source(who), AnyVersion: true}); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				for {
					v, err := admin.GetRules(t.Context(), &pb.GetRulesRequest{})
					if err != nil {
						t.Error(err)
						return
					}
					_, err = admin.PutRule(t.Context(), &pb.PutRuleRequest{Source: source("careful-" + who), Base: &v.Version.Number})
					if status.Code(err) == codes.Aborted {
						continue
					}
					if err != nil {
						t.Error(err)
					}
					return
				}
			})
		}
	}
	wg.Wait()
	v, err := repository.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range each {
		for _, who := range []string{"a", "b", "careful-a", "careful-b"} {
			if r := v.Document.Find(fmt.Sprint(who, i)); r == nil || r.Quota.Rates[0].N != int64(100+i) {
				t.Errorf("the rule %s%d is %v", who, i, r)
			}
		}
	}
	if v.Number != 2+4*each {
		t.Errorf("the version is %d", v.Number)
	}
	if !strings.Contains(string(v.Source), "# logins") {
		t.Error("comments are lost")
	}
}
