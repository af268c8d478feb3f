package file

import (
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/weirhq/weir/internal/repo"
)

// shelf is an archive in memory, for documents that cannot be written.
type shelf struct {
	mu      sync.Mutex
	entries []entry // the latest first
}

func (s *shelf) numbers() ([]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var numbers []int64
	for _, e := range s.entries {
		numbers = append(numbers, e.Number)
	}
	return numbers, nil
}

func (s *shelf) head(number int64) (entry, error) {
	e, err := s.load(number)
	e.source = nil
	return e, err
}

func (s *shelf) load(number int64) (entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if e.Number == number {
			return e, nil
		}
	}
	return entry{}, fmt.Errorf("rules: version %d: %w", number, fs.ErrNotExist)
}

func (s *shelf) save(e entry, _ fs.FileMode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = slices.Insert(s.entries, 0, e)
	s.entries = s.entries[:min(len(s.entries), repo.MaxHistory)]
	return nil
}
