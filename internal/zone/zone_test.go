package zone

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

func TestLoad(t *testing.T) {
	berlin, err := Load("Europe/Berlin")
	if err != nil || berlin.String() != "Europe/Berlin" {
		t.Fatalf("Load = %v, %v", berlin, err)
	}
	if again, _ := Load("Europe/Berlin"); again != berlin {
		t.Error("the same name is another location at the second time")
	}
	if utc, err := Load("UTC"); err != nil || utc != time.UTC {
		t.Errorf("UTC is %v, %v", utc, err)
	}
	for _, name := range []string{"", "Local", "Europe/Berlni", "../etc/passwd", "/etc/localtime", "CEST+2", strings.Repeat("A", 1000)} {
		if got, err := Load(name); err == nil || !strings.Contains(err.Error(), "Europe/Berlin") {
			t.Errorf("Load(%.40q) = %v, %v; want an error with a remedy", name, got, err)
		}
	}
}
