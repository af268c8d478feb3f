package envoyconfig

import (
	"os"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }
