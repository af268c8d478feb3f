package envoyconfig

import (
	"os"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
	_ "github.com/weirhq/weir/rule/rulefile"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }
