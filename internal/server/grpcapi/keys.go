package grpcapi

import (
	"context"

	"github.com/weirhq/weir/engine"
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
	return managed(ctx, k.s, pb.Keys_ResetKey_FullMethodName, trust.Admin, func(c *call) (*pb.ResetKeyResponse, error) {
		if bad := manage.CheckClient(req.GetKey(), "", "user:alice", "Check"); bad != nil {
			return nil, bad
		}
		rules, err := k.s.options.Engine.Reset(c, req.GetRule(), req.GetKey())
		if err != nil {
			return nil, k.s.trouble(c).Key(err)
		}
		return &pb.ResetKeyResponse{Rules: rules}, nil
	})
}
