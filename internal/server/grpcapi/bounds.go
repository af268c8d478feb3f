package grpcapi

import (
	"context"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weirhq/weir/internal/inbound"
	"github.com/weirhq/weir/internal/server/manage"
	pb "github.com/weirhq/weir/proto/weir/v1"
)

// Bounds on messages. The others are a name or two, and have those that are usual. They
// are twice what is accepted, so that whoever is a little beyond is told what it is about.
var (
	oneQuestion   = inbound.Bound{Bytes: 2 * manage.MaxQuestion, Parts: 2 * 4 * manage.MaxEntries}
	manyQuestions = inbound.Bound{Bytes: 1 << 20, Parts: 2 * MaxChecks}
	oneDocument   = inbound.Bound{Bytes: maxMessage}
)

// newOpen guards what anybody may call.
func newOpen() *inbound.Guard {
	return inbound.New(inbound.Options{
		Large: 16 << 20, Decoded: 8 << 20,
		Bounds: map[protoreflect.FullName]inbound.Bound{
			nameOf(&pb.CheckRequest{}): oneQuestion, nameOf(&pb.CheckManyRequest{}): manyQuestions,
		},
	})
}

// newManaged guards what needs a token. Whoever has none is refused without having been
// read: documents are long.
func newManaged(reads func(context.Context) bool) *inbound.Guard {
	return inbound.New(inbound.Options{
		Large: 4 * maxMessage, Decoded: 4 * maxMessage, Wait: maxCall / 2, Reads: reads,
		Bounds: map[protoreflect.FullName]inbound.Bound{
			nameOf(&pb.PutRulesRequest{}): oneDocument, nameOf(&pb.CreateRuleRequest{}): oneDocument,
			nameOf(&pb.PutRuleRequest{}): oneDocument, nameOf(&pb.ValidateRulesRequest{}): oneDocument,
		},
	})
}

func nameOf(m proto.Message) protoreflect.FullName { return m.ProtoReflect().Descriptor().FullName() }

// knows is whether a call comes from somebody who may manage.
func (s *Server) knows(ctx context.Context) bool {
	md, _ := metadata.FromIncomingContext(ctx)
	_, err := manage.Identify(s.options.Tokens(), md["authorization"])
	return err == nil
}
