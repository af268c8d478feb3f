package machine

import (
	"os"
	"testing"
)

func TestMemoryOf(t *testing.T) {
	m, err := MemoryOf(os.Getpid())
	if err != nil || m.Own <= 0 || m.Own > m.Resident {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := MemoryOf(-1); err == nil {
		t.Error("no error for a process that does not exist")
	}
}
