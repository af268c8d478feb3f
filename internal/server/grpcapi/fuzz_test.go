package grpcapi

import (
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// Whatever bytes a client sends, it gets an answer that can be sent, or an error with a
// reason.
func FuzzCheck(f *testing.F) {
	s := newPipe(f, Options{})
	for _, req := range []*pb.CheckRequest{
		{},
		{Ip: "192.0.2.1", Method: "POST", Path: "/api/login"},
		{User: "ünï|\\", Path: "/api//x?y", Cost: 5, Tier: "pro"},
		{Headers: map[string]string{"x-tenant": "a", "Host": ""}, Cookies: map[string]string{"lang": "1"}, Query: map[string]string{"page": ""}},
		{Ip: "fe80::1%zone", ApiKey: "k", Attributes: map[string]string{"action": "post"}, Cost: -1},
	} {
		seed, err := proto.Marshal(req)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		req := new(pb.CheckRequest)
		if proto.Unmarshal(body, req) != nil {
			return // gRPC denies it
		}
		l := limiter{s: s.Server}
		for _, ask := range []func() (*pb.CheckResponse, error){
			func() (*pb.CheckResponse, error) { return l.Peek(t.Context(), req) },
			func() (*pb.CheckResponse, error) { return l.Check(t.Context(), req) },
		} {
			answer, err := ask()
			if err != nil {
				if read(err).info == nil {
					t.Errorf("%v has no reason", err)
				}
				continue
			}
			if _, err := proto.Marshal(answer); err != nil {
				t.Errorf("%v cannot be sent: %v", answer, err)
			}
		}
	})
}
