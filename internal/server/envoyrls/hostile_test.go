package envoyrls

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/internal/testkit"
)

// Whatever is sent, and by however many at once, takes little memory.
func TestHostileRequests(t *testing.T) {
	b := newBench(t, failing, Options{})
	client := dial(t, b.Service)
	field := func(number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	entries := field(2, bytes.Repeat(field(1, nil), 8000)) // of a descriptor
	for name, c := range map[string]struct {
		message []byte
		want    codes.Code
	}{
		"long":             {bytes.Repeat(field(2, nil), 2<<20), codes.ResourceExhausted},
		"many descriptors": {bytes.Repeat(field(2, nil), 1<<19), codes.InvalidArgument},
		"many entries":     {bytes.Repeat(entries, 60), codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			// What the type does not know is sent as it is.
			request := &pb.RateLimitRequest{}
			request.ProtoReflect().SetUnknown(c.message)
			most := testkit.Least(128<<20, func() {
				var wg sync.WaitGroup
				for range 16 {
					wg.Go(func() {
						if _, err := client.ShouldRateLimit(t.Context(), request); status.Code(err) != c.want {
							t.Errorf("%.200v, want %s", err, c.want)
						}
					})
				}
				wg.Wait()
			})
			if most > 128<<20 { // most of it is the client's
				t.Errorf("it took %d MiB", most>>20)
			}
			t.Logf("%d MiB", most>>20)
		})
	}
	if proto.Size(&pb.RateLimitRequest{}) != 0 {
		t.Error("the requests were not what was meant")
	}
}

// The same of requests in JSON.
func TestHostileJSON(t *testing.T) {
	b := newBench(t, failing, Options{})
	handler := b.Service.JSON()
	for name, body := range map[string]string{
		"descriptors": `{"domain":"d","descriptors":[` + strings.Repeat("{},", 300_000) + "{}]}",
		"entries":     `{"domain":"d","descriptors":[{"entries":[` + strings.Repeat("{},", 300_000) + "{}]}]}",
		"depth":       strings.Repeat("[", 1<<19),
		"long":        `{"domain":"` + strings.Repeat("d", 2<<20) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			most := testkit.Least(64<<20, func() {
				var wg sync.WaitGroup
				for range 16 {
					wg.Go(func() {
						answer := httptest.NewRecorder()
						handler.ServeHTTP(answer, httptest.NewRequest("POST", "/json", strings.NewReader(body)))
						if answer.Code != http.StatusBadRequest && answer.Code != http.StatusRequestEntityTooLarge && answer.Code != http.StatusServiceUnavailable {
							t.Errorf("answered %d", answer.Code)
						}
					})
				}
				wg.Wait()
			})
			if most > 64<<20 {
				t.Errorf("it took %d MiB", most>>20)
			}
			t.Logf("%d MiB", most>>20)
		})
	}
}
