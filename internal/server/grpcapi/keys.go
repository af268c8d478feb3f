package grpcapi

import (
	"context"
	"log/slog"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// keys is the service Keys.
type keys struct {
	pb.UnimplementedKeysServer
	s *Server
}

// GetKey implements pb.KeysServer.
func (k keys) GetKey(ctx context.Context, req *pb.GetKeyRequest) (*pb.GetKeyResponse, error) {
	return managed(ctx, k.s, pb.Keys_GetKey_FullMethodName, trust.Read, func(c *call) (*pb.GetKeyResponse, error) {
		if bad := manage.CheckClient(req.GetKey(), req.GetTier(), "user:alice", "Check"); bad != nil {
			return nil, bad
		}
		var v engine.Verdict
		tier, err := k.s.options.Engine.Standing(c, req.GetRule(), req.GetKey(), req.GetTier(), &v)
		if err != nil {
			return nil, k.s.keyTrouble(c, err)
		}
		return &pb.GetKeyResponse{
			Version: v.Version, Results: results(&v, nil, nil),
			Tier: tier.Name, TierFrom: pb.TierFrom(tier.From),
		}, nil
	})
}

// ResetKey implements pb.KeysServer.
func (k keys) ResetKey(ctx context.Context, req *pb.ResetKeyRequest) (*pb.ResetKeyResponse, error) {
	return managed(ctx, k.s, pb.Keys_ResetKey_FullMethodName, trust.Admin, func(c *call) (*pb.ResetKeyResponse, error) {
		if bad := manage.CheckClient(req.GetKey(), "", "user:alice", "Check"); bad != nil {
			return nil, bad
		}
		rules, err := k.s.options.Engine.Reset(c, req.GetRule(), req.GetKey())
		if err != nil {
			return nil, k.s.keyTrouble(c, err)
		}
		return &pb.ResetKeyResponse{Rules: rules}, nil
	})
}

// keyTrouble is why a key could not be looked at or reset.
func (s *Server) keyTrouble(c *call, err error) error {
	f := calls.Of(err)
	switch {
	case f == nil:
		return s.unavailable(c, slog.LevelWarn, "store unavailable", err, fault.Store(false))
	case f.Kind == fault.BadField:
		f.Field = "key"
	}
	return f
}
