package budget

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

func TestAccepted(t *testing.T) {
	for line, want := range map[string]bool{
		"": false, "gzip": true, "GZip": true, "x-gzip": true, "gzip, deflate, br": true, "br;q=1.0, gzip;q=0.8, *;q=0.1": true,
		"gzip;q=0": false, "gzip; q=0.000": false, "gzip;Q=0.001": true, "gzip;q=": false, "gzip;q=2": false, "gzip;q=NaN": false, "gzip;q=-1": false, "gzip;level=9": false,
		"*": true, "*;q=0": false, "gzip;q=0, *": false, "*;q=0, gzip": true,
		"identity": false, "identity, gzip;q=0.5": false, "identity;q=0.5, gzip": true, "identity;q=0, *": true,
		"deflate": false, "gzipped": false, ",,;,": false, "gzip;q=0.5,gzip;q=0": true,
	} {
		if got := AcceptsGzip([]string{line}); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
	if !AcceptsGzip([]string{"br", "gzip"}) || AcceptsGzip(nil) {
		t.Error("the lines are not one list")
	}
}

// What comes out is what went in, also when many are at it; what gets no shorter stays.
func TestPack(t *testing.T) {
	random := make([]byte, 5000)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			body := []byte(strings.Repeat("a limit; ", 1000*(i+1)))
			for _, pack := range []func([]byte) []byte{GzipFast, GzipSmall} {
				packed := pack(body)
				r, err := gzip.NewReader(bytes.NewReader(packed))
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, body) || len(packed) > len(body)/50 {
					t.Errorf("%d of %d bytes, and back %d: %v", len(packed), len(body), len(got), err)
				}
				if pack(random) != nil || pack(nil) != nil {
					t.Error("noise became shorter")
				}
			}
		})
	}
	wg.Wait()
}
