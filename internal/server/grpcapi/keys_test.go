package grpcapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/fault"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

func TestKeys(t *testing.T) {
	s := newStand(t, Options{})
	ctx := t.Context()
	for range 2 {
		if _, err := s.limiter.Check(ctx, &pb.CheckRequest{Ip: "198.51.100.7", User: "alice", Method: "POST", Path: "/api/login"}); err != nil {
			t.Fatal(err)
		}
	}
	k, err := s.keys.GetKey(ctx, &pb.GetKeyRequest{Key: "ip:198.51.100.7"})
	if err != nil || len(k.Results) != 1 || k.Results[0].Rule != "login" || k.Results[0].Remaining != 0 || k.Version != 2 || k.Results[0].ResetAfter.AsDuration() != time.Minute {
		t.Fatalf("%v %v", k, err)
	}
	if k, err = s.keys.GetKey(ctx, &pb.GetKeyRequest{Key: "user:alice", Rule: "api", Tier: "pro"}); err != nil || k.Results[0].Policy != "1000/1m" || k.Results[0].Remaining != 998 {
		t.Errorf("%v %v", k, err)
	}
	if k.Tier != "pro" || k.TierFrom != pb.TierFrom_TIER_FROM_ASKED {
		t.Errorf("%v", k)
	}
	for i, want := range []string{"TIER_FROM_UNKNOWN 100/1m", "pro TIER_FROM_SEEN 1000/1m"} {
		if i > 0 {
			if _, err := s.limiter.Check(ctx, &pb.CheckRequest{User: "bob", Path: "/api/x", Tier: "pro"}); err != nil {
				t.Fatal(err)
			}
		}
		k, err := s.keys.GetKey(ctx, &pb.GetKeyRequest{Key: "user:bob", Rule: "api"})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(fmt.Sprint(k.Tier, " ", k.TierFrom, " ", k.Results[0].Policy)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	// A composed key, whole and without the parts that the rule names.
	if _, err := s.limiter.Check(ctx, &pb.CheckRequest{Attributes: map[string]string{"owner": "carol"}, Method: "INVENTED", Path: "/things/7"}); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"attr:owner:carol|method:*|route:/things/{id}": "attr:owner:carol|method:*|route:/things/{id} 4",
		"attr:owner:carol|method:*":                    "attr:owner:carol|method:*|route:/things/{id} 4, attr:owner:carol|method:*|route:/things 5",
	} {
		k, err := s.keys.GetKey(ctx, &pb.GetKeyRequest{Key: key})
		var got []string
		for _, r := range k.GetResults() {
			got = append(got, fmt.Sprint(r.Key, " ", r.Remaining))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q: %v", key, got, err)
		}
	}
	if f, err := s.keys.ResetKey(ctx, &pb.ResetKeyRequest{Key: "attr:owner:carol", Rule: "things"}); err != nil || fmt.Sprint(f.Rules) != "[things]" {
		t.Errorf("%v %v", f, err)
	}
	if k, err := s.keys.GetKey(ctx, &pb.GetKeyRequest{Key: "attr:owner:carol|method:*|route:/things/{id}"}); err != nil || k.Results[0].Remaining != 5 {
		t.Errorf("it is not reset: %v %v", k, err)
	}
	f, err := s.keys.ResetKey(ctx, &pb.ResetKeyRequest{Key: "ip:198.51.100.7", Rule: "login"})
	if err != nil || fmt.Sprint(f.Rules) != "[login]" {
		t.Errorf("%v %v", f, err)
	}
	if k, err = s.keys.GetKey(ctx, &pb.GetKeyRequest{Key: "ip:198.51.100.7"}); err != nil || k.Results[0].Remaining != 2 {
		t.Errorf("it is not reset: %v %v", k, err)
	}
	for _, c := range []struct {
		key, rule, tier string
		kind            *fault.Kind
		field           string
	}{
		{"", "", "", fault.BadField, "key"},
		{strings.Repeat("x", 1025), "", "", fault.BadField, "key"},
		{"nonsense", "", "", fault.BadField, "key"},
		{"ip:192.0.2.1", "api", "", fault.BadField, "key"},
		{"user:alice", "none", "", fault.NoRule, "rule"},
		{"user:alice", "api", strings.Repeat("x", 1025), fault.BadField, "tier"},
	} {
		_, err := s.keys.GetKey(ctx, &pb.GetKeyRequest{Key: c.key, Rule: c.rule, Tier: c.tier})
		want(t, err, c.kind).about(t, c.field)
		if c.tier != "" {
			continue
		}
		_, err = s.keys.ResetKey(ctx, &pb.ResetKeyRequest{Key: c.key, Rule: c.rule})
		want(t, err, c.kind).about(t, c.field)
	}
	s.store.lost.Store(true)
	_, err = s.keys.GetKey(ctx, &pb.GetKeyRequest{Key: "user:alice"})
	if p := want(t, err, fault.StoreUnavailable); p.retry.RetryDelay.AsDuration() != fault.Outage || strings.Contains(p.text, "lost") {
		t.Errorf("%+v", p)
	}
	_, err = s.keys.ResetKey(ctx, &pb.ResetKeyRequest{Key: "user:alice"})
	want(t, err, fault.StoreUnavailable)
	if !strings.Contains(s.log.String(), errLost.Error()) {
		t.Error("the log does not say why")
	}
}
