package counter_test

import (
	"os"
	"testing"

	"github.com/weirhq/weir/internal/testleak"
)

func TestMain(m *testing.M) { os.Exit(testleak.Run(m)) }
