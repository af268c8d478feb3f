package envoyrls

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/rules/manage"
)

// MaxBody is the longest body of a request over HTTP, in bytes.
const MaxBody = 1 << 20

const (
	maxBodies  = 16 << 20                          // bytes of bodies that are there at the same time
	maxObjects = MaxDescriptors * (MaxEntries + 4) // and lists, in one body; counted before it is decoded
)

// JSON returns a handler for those who cannot speak gRPC: the request comes as JSON in
// the body of a POST /json, and so does the response go. The status is 200, 429 if the
// request is over a limit, 400 if it makes no sense, 401 or 403 if a token is missing or not good
// for it, or 503.
func (s *Service) JSON() http.Handler { return http.HandlerFunc(s.serveJSON) }

func (s *Service) serveJSON(w http.ResponseWriter, r *http.Request) {
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	k, err := s.identify(r.Context(), from.Addr().Unmap(), func() manage.Credentials {
		return manage.Credentials{Token: r.Header[manage.TokenHeader], Authorization: r.Header["Authorization"]}
	})
	if err != nil {
		refuse(w, err)
		return
	}
	body, release, err := s.bodies.Read(budget.BodySource{Writer: w, Request: r}, MaxBody)
	defer release()
	_, large := errors.AsType[*http.MaxBytesError](err)
	switch {
	case large:
		http.Error(w, "The body is longer than what is read.", http.StatusRequestEntityTooLarge)
		return
	case errors.Is(err, budget.ErrBusy):
		w.Header().Set("Retry-After", "1")
		http.Error(w, "Other calls use all the memory for large bodies; try again.", http.StatusServiceUnavailable)
		return
	case errors.Is(err, budget.ErrSlow):
		http.Error(w, "The body came too slowly.", http.StatusRequestTimeout)
		return
	case bytes.Count(body, []byte("{"))+bytes.Count(body, []byte("[")) > maxObjects:
		http.Error(w, fmt.Sprintf("The body has more than %d objects and lists; send fewer descriptors and entries.", maxObjects), http.StatusBadRequest)
		return
	}
	var req pb.RateLimitRequest
	if err == nil {
		err = protojson.Unmarshal(body, &req)
	}
	if err != nil {
		http.Error(w, "The body is no RateLimitRequest in JSON: "+err.Error(), http.StatusBadRequest)
		return
	}
	response, err := s.limit(r.Context(), &k, &req)
	if err != nil {
		refuse(w, err)
		return
	}
	text, err := protojson.Marshal(response)
	if err != nil {
		http.Error(w, "The response cannot be written as JSON.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if response.GetOverallCode() == pb.RateLimitResponse_OVER_LIMIT {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(text) // who has left needs no answer
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	code := http.StatusServiceUnavailable
	switch status.Code(err) {
	case codes.InvalidArgument:
		code = http.StatusBadRequest
	case codes.Unauthenticated:
		code = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", `Bearer realm="weir"`)
	case codes.PermissionDenied:
		code = http.StatusForbidden
	}
	http.Error(w, status.Convert(err).Message(), code)
}
