package replay

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// millionLines writes a log of a millionLines lines: a thousand requests a second, of 20 000
// clients some of whom ask for much more than others.
func millionLines(format Format) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.2, 10, 20_000)
	var b bytes.Buffer
	for i := range 1_000_000 {
		at := time.UnixMicro(1_794_700_800_000_000 + int64(i)*1000).UTC()
		n := zipf.Uint64()
		ip, user, path := fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255), fmt.Sprintf("user%d", n), fmt.Sprintf("/api/items/%d?page=2", i%977)
		if i%50 == 0 {
			path = "/api/login"
		}
		switch format {
		case JSON:
			fmt.Fprintf(&b, `{"time_iso8601":"%s","remote_addr":"%s","remote_user":"%s","request":"POST %s HTTP/1.1","status":200,"body_bytes_sent":1234,"request_time":0.012,"http_user_agent":"Mozilla/5.0 (X11; Linux x86_64)"}`+"\n", at.Format(time.RFC3339), ip, user, path)
		case Envoy:
			fmt.Fprintf(&b, `[%s] "POST %s HTTP/1.1" 200 - 0 154 226 100 "%s" "Mozilla/5.0" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "api" "10.0.2.1:80"`+"\n", at.Format("2006-01-02T15:04:05.000Z"), path, ip)
		default:
			fmt.Fprintf(&b, `%s - %s [%s] "POST %s HTTP/1.1" 200 1234 "https://example.com/" "Mozilla/5.0 (X11; Linux x86_64)" 0.012`+"\n", ip, user, at.Format("02/Jan/2006:15:04:05 -0700"), path)
		}
	}
	return b.Bytes()
}

// BenchmarkRun replays a millionLines lines against three rules, in memory.
func BenchmarkRun(b *testing.B) {
	for _, format := range []Format{Combined, JSON, Envoy} {
		b.Run(format.String(), func(b *testing.B) {
			log, table := millionLines(format), example(b, "quickstart.yaml")
			b.SetBytes(int64(len(log)))
			b.ReportAllocs()
			for b.Loop() {
				r, err := Run(context.Background(), Options{Table: table}, NewLog("log", bytes.NewReader(log)))
				if err != nil || r.Requests != 1_000_000 || r.Denied == 0 {
					b.Fatal(err, r.Requests, r.Denied)
				}
			}
			b.ReportMetric(1e6*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
