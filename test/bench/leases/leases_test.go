package leases

import (
	"bytes"
	"os"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

// The picture is what the formula says.
func TestPicture(t *testing.T) {
	var b bytes.Buffer
	testkit.OK(t, draw(&b))
	if kept := testkit.Must(os.ReadFile("../results/leases.svg"))(t); !bytes.Equal(b.Bytes(), kept) {
		t.Error("results/leases.svg is of another program; run go run . leases")
	}
}
