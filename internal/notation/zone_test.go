package notation

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

func TestLoadZone(t *testing.T) {
	berlin, err := LoadZone("Europe/Berlin")
	if err != nil || berlin.String() != "Europe/Berlin" {
		t.Fatalf("Load = %v, %v", berlin, err)
	}
	if again, _ := LoadZone("Europe/Berlin"); again != berlin {
		t.Error("the same name is another location at the second time")
	}
	if utc, err := LoadZone("UTC"); err != nil || utc != time.UTC {
		t.Errorf("UTC is %v, %v", utc, err)
	}
	for _, name := range []string{"Etc/GMT+5", "America/Port-au-Prince"} {
		if found, err := LoadZone(name); err != nil || found.String() != name {
			t.Errorf("Load(%q) = %v, %v", name, found, err)
		}
	}
	before := count.Load()
	for _, name := range []string{
		"", "Local", "localtime", "Europe/Berlni", "Europe//Berlin", "Europe", "Europe/", "Europe\\Berlin", "UTC\x00",
		"../etc/passwd", "../zoneinfo/UTC", "/etc/localtime", "CEST+2", strings.Repeat("A", 1000),
	} {
		if got, err := LoadZone(name); err == nil || !strings.Contains(err.Error(), "Europe/Berlin") {
			t.Errorf("Load(%.40q) = %v, %v; want an error with a remedy", name, got, err)
		}
	}
	if count.Load() != before {
		t.Error("what is no zone is remembered")
	}
}

// Whatever names clients send, only so many zones are remembered.
func TestBoundOnZones(t *testing.T) {
	before := count.Swap(maxKnown)
	defer count.Store(before)
	got, err := LoadZone("Pacific/Auckland")
	if _, remembered := known.Load("Pacific/Auckland"); err != nil || got.String() != "Pacific/Auckland" || remembered {
		t.Errorf("Load = %v, %v; it is remembered: %t", got, err, remembered)
	}
}
