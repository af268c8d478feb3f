package httpapi

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/queue"
	"github.com/weirhq/weir/queue/memory"
)

// secret matches a token with its random part, and shown is what the pages show
// instead.
var secret = regexp.MustCompile(`"([0-9]+)-([0-9a-f]{32})"`)

const shown = `"${1}-00000000000000000000000000000000"`

// What the pages about counters and queues show of HTTP is what happens.
func TestKeptDocs(t *testing.T) {
	for _, page := range []struct {
		file     string
		examples int
	}{{"../../../docs/reference/counters.md", 13}, {"../../../docs/reference/queue.md", 10}} {
		t.Run(page.file, func(t *testing.T) {
			doc, err := os.ReadFile(page.file)
			if err != nil {
				t.Fatal(err)
			}
			k := keptInMemory(t, Options{})
			mail := map[string]queue.Settings{"mail": {N: 10, Period: time.Second, Capacity: 2, MaxTries: 1}}
			if k.options.Queues, err = memory.New(mail, memory.Options{Clock: k.clock}); err != nil {
				t.Fatal(err)
			}
			tokens := map[string]string{} // as shown → as it is
			examples := 0
			now := example.ReplaceAllStringFunc(string(doc), func(block string) string {
				examples++
				part := example.FindStringSubmatch(block)
				got := k.curl(t, secret.ReplaceAllStringFunc(part[1], func(token string) string {
					if tokens[token] == "" {
						t.Errorf("%s: no lease has this token", part[1])
					}
					return tokens[token]
				}))
				for _, token := range secret.FindAllString(got, -1) {
					tokens[secret.ReplaceAllString(token, shown)] = token
				}
				got = secret.ReplaceAllString(got, shown)
				if got != part[3] && !*update {
					t.Errorf("%s\nanswers\n%s\nrun go test ./internal/server/httpapi -update, if that is right", part[1], got)
				}
				return fmt.Sprintf("```sh\n%s\n```\n\n```%s\n%s```\n", part[1], part[2], got)
			})
			if calls := strings.Count(string(doc), "```sh\n"); examples != calls || calls < page.examples {
				t.Errorf("%d of %d examples were run", examples, calls)
			}
			if *update && now != string(doc) {
				if err := os.WriteFile(page.file, []byte(now), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// The pages list every call that they are about, and none that is not there.
func TestKeptDocsAreComplete(t *testing.T) {
	for file, all := range map[string][]route{"../../../docs/reference/counters.md": counterRoutes, "../../../docs/reference/queue.md": queueRoutes} {
		doc, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			scope := map[access]string{looking: "read", reading: "read", using: "use", changing: "admin"}[r.needs]
			if row := fmt.Sprintf("\n| `%s` | %s | ", r.pattern(), scope); !strings.Contains(string(doc), row) {
				t.Errorf("%s lacks the line %s", file, row)
			}
		}
		if n := strings.Count(string(doc), "\n| `GET /v1/") + strings.Count(string(doc), "\n| `POST /v1/"); n != len(all) {
			t.Errorf("%s lists %d calls, there are %d", file, n, len(all))
		}
	}
}
