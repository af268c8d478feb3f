package budget

import (
	"bytes"
	"compress/gzip"
	"strconv"
	"strings"
	"sync"
)

// AcceptsGzip is whether Accept-Encoding prefers gzip to an answer as it is: RFC 9110, 12.5.3.
func AcceptsGzip(lines []string) bool {
	named, rest, plain := -1.0, -1.0, -1.0 // weights; below 0 if they are not given
	for _, line := range lines {
		for coding := range strings.SplitSeq(line, ",") {
			name, parameters, _ := strings.Cut(coding, ";")
			switch name = strings.ToLower(strings.Trim(name, " \t")); name {
			case "gzip", "x-gzip":
				named = max(named, weight(parameters))
			case "*":
				rest = weight(parameters)
			case "identity":
				plain = weight(parameters)
			}
		}
	}
	if named < 0 {
		named = rest
	}
	return named > 0 && named >= plain
}

// weight reads q=0.5. What is not a weight is none.
func weight(parameters string) float64 {
	parameters = strings.Trim(parameters, " \t")
	if parameters == "" {
		return 1
	}
	name, value, _ := strings.Cut(parameters, "=")
	q, err := strconv.ParseFloat(value, 64)
	if err != nil || !strings.EqualFold(name, "q") || !(q >= 0 && q <= 1) {
		return 0
	}
	return q
}

// writers are for GzipFast. Each keeps half a megabyte.
var writers = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is one
	}
	return w
}}

// GzipFast compresses a body with little work; nil if it would be no shorter.
func GzipFast(body []byte) []byte {
	w := writers.Get().(*gzip.Writer)
	defer writers.Put(w)
	return pack(w, body)
}

// GzipSmall compresses a body as well as can be; nil if it would be no shorter.
func GzipSmall(body []byte) []byte {
	w, err := gzip.NewWriterLevel(nil, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is one
	}
	return pack(w, body)
}

func pack(w *gzip.Writer, body []byte) []byte {
	var b bytes.Buffer
	b.Grow(len(body) / 8)
	w.Reset(&b)
	w.Write(body) // a buffer has no errors
	w.Close()
	if b.Len() >= len(body) {
		return nil
	}
	return b.Bytes()
}
