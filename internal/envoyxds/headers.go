package envoyxds

import (
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/weirhq/weir/internal/disk"
)

const maxHeaders = 64 << 10 // bytes of the file

// headerLine is a name and a value as gRPC takes them.
var headerLine = regexp.MustCompile(`^([A-Za-z0-9_.-]+):[ \t]*([ -~]*)$`)

// readHeaders reads a file of headers. Errors have no value, which may be a secret.
func readHeaders(path string) (metadata.MD, error) {
	if path == "" {
		return nil, nil
	}
	text, err := disk.ReadFile(path, maxHeaders, "header file")
	if err != nil {
		return nil, fmt.Errorf("envoyxds: %w", err)
	}
	headers := metadata.MD{}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		m := headerLine.FindStringSubmatch(line)
		if m == nil || strings.HasPrefix(strings.ToLower(m[1]), "grpc-") {
			return nil, fmt.Errorf("envoyxds: %s:%d: this is not a header; write a name, a colon and a value, as in authorization: Bearer …", path, number)
		}
		headers.Append(m[1], m[2])
	}
	return headers, nil
}
