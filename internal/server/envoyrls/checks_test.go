package envoyrls

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	grpcmetadata "google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
)

// Envoy sends its token in metadata, and others in a header of POST /json.
func TestWhoMayAsk(t *testing.T) {
	const edge, other, reader = "a-check-token-of-the-tests", "a-token-for-other-clients", "a-reader-token-of-the-tests"
	list, err := trust.ParseTokens([]byte("edge check " + edge + "\nother check rules=envoy:d.* clients=d,open=y* " + other + "\nbob read " + reader))
	if err != nil {
		t.Fatal(err)
	}
	guard, err := manage.NewGuard(manage.GuardOptions{})
	if err != nil {
		t.Fatal(err)
	}
	log := new(strings.Builder)
	checks := manage.NewChecks(func() *trust.List { return list }, guard, slog.New(slog.NewTextHandler(log, nil)))
	b := newBench(t, failing, Options{Checks: checks})
	client := dial(t, b.Service)
	server := httptest.NewServer(b.JSON())
	defer server.Close()
	for _, c := range []struct {
		token, value string
		want         codes.Code
		status       int
		words        string
	}{
		{"", "x", codes.Unauthenticated, 401, "A token is required"},
		{"wrong-but-long-enough-for-one", "x", codes.Unauthenticated, 401, "The server does not know this token"},
		{reader, "x", codes.PermissionDenied, 403, "The token of bob has the rights read; use one with the right check."},
		{other, "x", codes.PermissionDenied, 403, `not for the rule envoy:d.open and the client "d|open=x"`},
		{other, "y1", codes.OK, 200, ""},
		{edge, "x", codes.OK, 200, ""},
	} {
		for _, name := range []string{"weir-token", "authorization"} {
			ctx, value := t.Context(), c.token
			if name == "authorization" {
				value = "Bearer " + value
			}
			if c.token != "" {
				ctx = grpcmetadata.AppendToOutgoingContext(ctx, name, value)
			}
			_, err := client.ShouldRateLimit(ctx, request("open="+c.value))
			if status.Code(err) != c.want || !strings.Contains(status.Convert(err).Message(), c.words) {
				t.Errorf("%s of %s for %s: %v", name, c.token, c.value, err)
			}
		}
		body := `{"domain": "d", "descriptors": [{"entries": [{"key": "open", "value": "` + c.value + `2"}]}]}` // with a limit of its own
		r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if c.token != "" {
			r.Header.Set("Weir-Token", c.token)
		}
		resp, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.status || c.status != 403 && !strings.Contains(string(text), c.words) {
			t.Errorf("/json of %s for %s: %d %s %v", c.token, c.value, resp.StatusCode, text, err)
		}
	}
	if text := log.String(); !strings.Contains(text, `level=WARN msg="check rejected" error="manage: a token is required; send it as a bearer token" holder="" client=127.0.0.1`) {
		t.Error(text)
	}
}
