package testredis

import (
	"fmt"
	"time"
)

// patience is for a machine that does much else; nothing here takes that long.
const patience = 2 * time.Minute

// await asks again and again until it is ready; the error is what was missing last.
func await(ready func() error) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := ready()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %w", patience, err)
		}
	}
}
