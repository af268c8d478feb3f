package grpcapi

import (
	"context"
	"errors"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/bearer"
	"github.com/weirhq/weir/internal/manage"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// outage is when to come back while the store is unavailable: a failover takes two or three
// seconds, and earlier retries only add load.
const outage = 5 * time.Second

// keys is the service Keys.
type keys struct {
	pb.UnimplementedKeysServer
	s *Server
}

// GetKey implements pb.KeysServer.
func (k keys) GetKey(ctx context.Context, req *pb.GetKeyRequest) (*pb.GetKeyResponse, error) {
	return managed(ctx, k.s, pb.Keys_GetKey_FullMethodName, bearer.Read, func(c *call) (*pb.GetKeyResponse, error) {
		if f := who(req.GetKey(), req.GetTier()); f != nil {
			return nil, f
		}
		var v engine.Verdict
		tier, err := k.s.options.Engine.Standing(c, req.GetRule(), req.GetKey(), req.GetTier(), &v)
		if err != nil {
			return nil, k.s.keyTrouble(c, err)
		}
		return &pb.GetKeyResponse{
			Version: v.Version, Results: k.s.results(&v, nil, nil),
			Tier: tier.Name, TierFrom: pb.TierFrom(tier.From),
		}, nil
	})
}

// ResetKey implements pb.KeysServer.
func (k keys) ResetKey(ctx context.Context, req *pb.ResetKeyRequest) (*pb.ResetKeyResponse, error) {
	return managed(ctx, k.s, pb.Keys_ResetKey_FullMethodName, bearer.Admin, func(c *call) (*pb.ResetKeyResponse, error) {
		if f := who(req.GetKey(), ""); f != nil {
			return nil, f
		}
		rules, err := k.s.options.Engine.Reset(c, req.GetRule(), req.GetKey())
		if err != nil {
			return nil, k.s.keyTrouble(c, err)
		}
		return &pb.ResetKeyResponse{Rules: rules}, nil
	})
}

// who is what is wrong with the client that a call is about.
func who(key, tier string) error {
	if bad := manage.CheckClient(key, tier, "user:alice", "Check"); bad != nil {
		return badField.of("%s", bad.Detail).in(bad.Field)
	}
	return nil
}

// keyTrouble is why a key could not be looked at or reset.
func (s *Server) keyTrouble(c *call, err error) error {
	var (
		none    *engine.NoRuleError
		form    *engine.KeyError
		invalid *weir.InvalidError
	)
	switch {
	case errors.As(err, &none):
		return missing(none.ID).in("rule")
	case errors.As(err, &form):
		return badField.of("key: %s", manage.Sentence(form.Err)).in("key")
	case errors.As(err, &invalid):
		return badField.of("%s", manage.Sentence(err)).in("key")
	case c.Err() != nil && errors.Is(err, c.Err()):
		return contextEnded(err)
	}
	s.options.Logger.Warn("store unavailable", "method", c.method, "request_id", c.id, "error", err)
	return storeGone.of("The store is unavailable; try again soon.").wait(outage)
}
