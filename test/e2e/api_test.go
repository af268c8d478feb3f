package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// answer is what a test reads of an answer.
type answer struct {
	Status    int         `json:"-"`
	Header    http.Header `json:"-"`
	Text      string      `json:"-"`
	Allowed   bool        `json:"allowed"`
	Rule      string      `json:"rule"`
	Limit     int64       `json:"limit"`
	Remaining int64       `json:"remaining"`
	Degraded  bool        `json:"degraded"`
	Type      string      `json:"type"`
	Detail    string      `json:"detail"`
}

// client has connections of its own, so that a test can end them.
func client(t *testing.T) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 2 * time.Minute}
}

// ask sends a request and reads the answer; headers come as name, value.
func ask(t *testing.T, c *http.Client, method, url, body string, headers ...string) answer {
	t.Helper()
	a, err := try(c, method, url, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func try(c *http.Client, method, url, body string, headers ...string) (a answer, err error) {
	req, err := http.NewRequest(method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return a, err
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return a, err
	}
	a.Status, a.Header, a.Text = resp.StatusCode, resp.Header, string(text)
	json.Unmarshal(text, &a) // not everything is JSON
	return a, nil
}

// write puts a file into a directory, and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const perUser = `rules:
  - {id: api, key: user, algorithm: sliding_log, limit: 5/1h, on_failure: local}
`

const alice = `{"user": "alice", "path": "/api/items"}`
