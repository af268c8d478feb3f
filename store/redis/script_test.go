package redis

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

// What Redis has been sent, after calls of every kind, are the files of script/ and
// nothing else; each of them is used.
func TestScriptsAreTheFiles(t *testing.T) {
	client := connect(t)
	s := storeOn(t, client, Options{Timeout: 10 * time.Second})
	files, err := filepath.Glob("script/*.lua")
	if err != nil || len(files) != len(scripts) {
		t.Fatalf("%d files for %d scripts, %v", len(files), len(scripts), err)
	}
	fileOf := map[string]string{} // by SHA-1
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha1.Sum(text)
		fileOf[hex.EncodeToString(sum[:])] = file
	}
	bucket, fixed, window := "token_bucket 5/1m", "fixed_window 5/1m", "sliding_window 5/1m"
	log, sub := "sliding_log 5/1m", "sliding_buckets 5/1m"
	compiled := map[string]*weir.Compiled{}
	for _, c := range []struct {
		script   string
		requests []string // of limits, with + between them
	}{
		{"single_bucket", []string{bucket}},
		{"single_bucket", []string{"leaky_bucket 5/1m"}},
		{"single_fixed_window", []string{fixed, fixed}},
		{"single_sliding_window", []string{window}},
		{"held_bucket", []string{"hold " + bucket, bucket}},
		{"held_fixed_window", []string{fixed, "hold " + fixed}},
		{"held_sliding_window", []string{"hold " + window}},
		{"many_counters", []string{bucket, fixed}},
		{"many_counters", []string{bucket, fixed, window}},
		{"many_counters", []string{bucket + "+" + window, fixed}},
		{"single_sliding_log", []string{log}},
		{"single_sliding_log", []string{"back " + log, log}},
		{"single_sliding_buckets", []string{sub}},
		{"one_counters_log", []string{log, fixed}},
		{"one_counters_buckets", []string{sub, fixed, bucket}},
		{"one_any", []string{log, sub}},
		{"several_counters", []string{bucket + "+" + bucket}},
		{"several_counters", []string{fixed + "+" + fixed, fixed}},
		{"several_sliding_log", []string{log + "+" + log}},
		{"several_sliding_buckets", []string{sub + "+" + sub}},
		{"several_counters", []string{"peek " + bucket + "+" + window}},
		{"several_counters_log", []string{log, fixed + "+" + fixed}},
		{"several_counters_buckets", []string{sub + "+" + fixed}},
		{"several_any", []string{log + "+" + sub}},
		{"back_sliding_log", []string{"back " + log, log, "in_flight 5/1m+" + log}},
		{"back_sliding_log", []string{"back " + log + "+" + log}},
		{"back_counters_log", []string{"back " + bucket}},
		{"back_counters_log", []string{"back " + log, log + "+" + fixed}},
		{"all", []string{"back " + sub}},
		{"holds", []string{"reset " + bucket}},
	} {
		var batch []*check
		for _, limits := range c.requests {
			check := s.newCheck(take, 0)
			for word, verb := range map[string]verb{"peek ": peek, "hold ": reserve, "back ": refund, "reset ": reset} {
				if text, is := strings.CutPrefix(limits, word); is {
					limits, check.verb = text, verb
				}
			}
			for text := range strings.SplitSeq(limits, "+") {
				if compiled[text] == nil {
					compiled[text] = weir.MustCompile(text)
				}
				op := weir.Op{Key: "k", Limit: compiled[text], Cost: 1}
				check.add(op, s.keyOf(&op))
			}
			if check.verb == reserve {
				s.holds(check, weir.HoldID{1})
			}
			batch = append(batch, check)
		}
		r := newRequest(batch)
		if got := scriptOf[r.form][r.needs].file; got != c.script {
			t.Errorf("%v: %s, want %s", c.requests, got, c.script)
		}
		if err := s.call(r); err != nil {
			t.Errorf("%v: %v", c.requests, err)
		}
	}
	for sha, file := range fileOf {
		if known, err := client.Do(t.Context(), client.B().ScriptExists().Sha1(sha).Build()).AsIntSlice(); err != nil || known[0] != 1 {
			t.Errorf("Redis has never seen %s: %v", file, err)
		}
	}
	if got, want := run(t, client, "INFO", "memory"), fmt.Sprintf("\nnumber_of_cached_scripts:%d\r\n", len(files)); !strings.Contains(got, want) {
		t.Errorf("Redis has other scripts too, want %q in %s", want, got)
	}
}
