package grpcapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clients"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// directory is the service Clients.
type directory struct {
	pb.UnimplementedClientsServer
	s *Server
}

// browsed answers a call about the directory, unless nothing is known of any client yet.
func browsed[A any](ctx context.Context, s *Server, do func(*call) (*A, error)) (*A, error) {
	return managed(ctx, s, trust.Look, func(c *call) (*A, error) {
		if status := s.options.Clients.Status(); !status.Loaded {
			return nil, s.trouble(c).Clients(status.Err)
		}
		return do(c)
	})
}

// GetClient implements pb.ClientsServer.
func (d directory) GetClient(ctx context.Context, req *pb.GetClientRequest) (*pb.Client, error) {
	return browsed(ctx, d.s, func(*call) (*pb.Client, error) {
		name, err := manage.ClientName("client", req.GetClient())
		if err != nil {
			return nil, err
		}
		line := d.s.options.Clients.Line(name)
		if len(line) == 0 {
			return nil, &clients.Error{Reason: clients.NotFound}
		}
		answer := clientOf(&line[0])
		for i := range line[1:] {
			answer.Line = append(answer.Line, clientOf(&line[i+1]))
		}
		if idle, ok := errors.AsType[*engine.IdleError](d.s.options.Engine.Idle(&line[0].Client)); ok {
			for _, what := range idle.What {
				answer.Warnings = append(answer.Warnings, &pb.ClientWarning{Message: valid(what)})
			}
		}
		return answer, nil
	})
}

// ListClients implements pb.ClientsServer.
func (d directory) ListClients(ctx context.Context, req *pb.ListClientsRequest) (*pb.ListClientsResponse, error) {
	return browsed(ctx, d.s, func(*call) (*pb.ListClientsResponse, error) {
		q := clients.Query{Tier: req.GetTier(), Kind: req.GetKind(), Contains: req.GetContains(), After: req.GetAfter(), Limit: int(cmp.Or(req.GetLimit(), clients.UsualPage))}
		if q.Limit < 1 || q.Limit > clients.MaxPage {
			return nil, fault.Field("limit", "%d is not a number from 1 to %d.", q.Limit, clients.MaxPage)
		}
		if parent := req.GetParent(); parent != "" {
			var err error
			if q.Parent, err = manage.ClientName("parent", parent); err != nil {
				return nil, err
			}
		}
		page, next := d.s.options.Clients.List(q)
		answer := &pb.ListClientsResponse{StaleSince: instant(d.s.options.Clients.Status().Since)}
		answer.Clients, answer.Next = clients.EndPage(page, next, func(e *clients.Entry) (*pb.Client, int) {
			c := clientOf(e)
			return c, proto.Size(c)
		})
		return answer, nil
	})
}

// clientOf is a client without its line.
func clientOf(e *clients.Entry) *pb.Client {
	c := &pb.Client{
		Client: valid(e.Name), Parent: valid(e.Parent), Tier: valid(e.Tier), Zone: e.Zone, Starts: e.Starts, Blocked: e.Blocked, Note: valid(e.Note),
		Version: e.Version, By: valid(e.By), At: instant(e.At),
	}
	if len(e.Limits) == 0 {
		return c
	}
	var own struct{ Limits map[string]*structpb.Value }
	if err := json.Unmarshal(rule.ClientToJSON(&e.Client), &own); err != nil {
		panic(err) // it is JSON
	}
	c.Limits = own.Limits
	return c
}
