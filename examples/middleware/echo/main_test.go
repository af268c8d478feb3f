package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestLimited(t *testing.T) {
	router, err := newRouter()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest("GET", "/ping", nil))
		if i < 3 && (w.Code != http.StatusOK || w.Body.String() != "pong\n" || w.Header().Get("RateLimit") == "") {
			t.Errorf("request %d: %d %q %v", i+1, w.Code, w.Body, w.Header())
		}
		if i == 3 && (w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), `"rule":"ping"`) || w.Header().Get("Retry-After") == "") {
			t.Errorf("request %d: %d %q %v", i+1, w.Code, w.Body, w.Header())
		}
	}
}
