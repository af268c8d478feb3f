package sdk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
	"github.com/weirhq/weir/store/memory"
)

// exchange is a request to a server with a middleware, and its response. Numbers of four digits
// and more are N, because they tell times, except windows.
type exchange struct {
	Path, User string
	Status     int
	Headers    map[string]string
	Body       map[string]any
}

var long = regexp.MustCompile(`;w=\d+|\d{4,}`)

func masked(text string) string {
	return long.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, ";w=") {
			return found
		}
		return "N"
	})
}

var limitHeaders = []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Degraded", "RateLimit-Policy", "RateLimit", "RateLimit-Warning", "Retry-After"}

// The middleware for Go answers as the table says, so that those for other languages, which do
// the same, answer as it does.
func TestHTTPCases(t *testing.T) {
	source, err := os.ReadFile("rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := rule.Usable("", source)
	if err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	e.Install(table, 1)
	limit, err := httplimit.New(e, httplimit.Options{User: func(r *http.Request) string { return r.Header.Get("X-Test-User") }})
	if err != nil {
		t.Fatal(err)
	}
	handler := limit.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for i, want := range readTable(t, "go").HTTP {
		r, w := httptest.NewRequest("GET", want.Path, nil), httptest.NewRecorder()
		r.Header.Set("X-Test-User", want.User)
		handler.ServeHTTP(w, r)
		got := exchange{want.Path, want.User, w.Code, map[string]string{}, nil}
		for _, name := range limitHeaders {
			if value := w.Header().Get(name); value != "" {
				got.Headers[name] = masked(value)
			}
		}
		if w.Body.Len() > 0 {
			var body map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			got.Body = map[string]any{}
			for name, value := range body {
				switch v := value.(type) {
				case string:
					value = masked(v)
				case float64:
					if long.MatchString(fmt.Sprint(int64(v))) {
						value = "N"
					}
				}
				got.Body[name] = value
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("request %d: got\n%+v\nwant\n%+v", i+1, got, want)
		}
	}
}
