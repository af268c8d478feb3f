package file

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/rule"
)

// archive is where versions are kept. What changes it needs the lock.
type archive interface {
	numbers() ([]int64, error)            // the latest first; never more than what was saved
	head(number int64) (entry, error)     // without its source
	load(number int64) (entry, error)     // fs.ErrNotExist if it is not there
	save(e entry, mode fs.FileMode) error // all at once, and forgets what is too old
}

// folder is an archive on disk.
type folder struct {
	path string
	ext  string // of the document
}

func makeFolder(path string, mode fs.FileMode) error {
	// The folder has the read permissions of the document.
	return os.MkdirAll(path, mode|mode&0o444>>2|0o700)
}

func (f *folder) file(name string) string { return filepath.Join(f.path, name+f.ext) }

func (f *folder) of(number int64) string { return f.file(strconv.FormatInt(number, 10)) }

func (f *folder) numbers() ([]int64, error) {
	files, err := os.ReadDir(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("rules: %w", err)
	}
	var numbers []int64
	for _, file := range files {
		name, found := strings.CutSuffix(file.Name(), f.ext)
		if n, err := strconv.ParseInt(name, 10, 64); found && err == nil && n > 0 {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, func(a, b int64) int { return cmp.Compare(b, a) })
	return numbers, nil
}

func (f *folder) head(number int64) (entry, error) {
	file, err := disk.Open(f.of(number))
	if err != nil {
		return entry{}, fmt.Errorf("rules: %w", err)
	}
	defer file.Close()
	line, err := bufio.NewReaderSize(file, 16<<10).ReadSlice('\n')
	if err != nil {
		return entry{}, fmt.Errorf("rules: %s: %w", file.Name(), errDamaged)
	}
	return f.checked(number, file.Name(), line, decodeHead)
}

func (f *folder) load(number int64) (entry, error) {
	name := f.of(number)
	text, err := readEntry(name)
	if err != nil {
		return entry{}, fmt.Errorf("rules: %w", err)
	}
	return f.checked(number, name, text, decode)
}

// maxEntry is the longest file of a version: a document, and the line before it.
const maxEntry = rule.MaxDocument + 16<<10

// readEntry reads a file of a version. What is longer is cut off, and so is damaged.
func readEntry(name string) ([]byte, error) {
	file, err := disk.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxEntry))
}

func (f *folder) checked(number int64, name string, text []byte, decode func([]byte) (entry, error)) (entry, error) {
	e, err := decode(text)
	if err == nil && e.Number != number {
		err = errDamaged
	}
	if err != nil {
		return entry{}, fmt.Errorf("rules: %s: %w", name, err)
	}
	return e, nil
}

func (f *folder) save(e entry, mode fs.FileMode) error {
	if err := f.propose(e, mode); err != nil {
		return err
	}
	return f.accept(e.Number)
}

// propose writes a version down that may not come to be.
func (f *folder) propose(e entry, mode fs.FileMode) error {
	text, err := e.encode()
	if err == nil {
		err = disk.WriteFile(f.file("next"), mode, text)
	}
	if err == nil {
		err = disk.SyncFolder(f.path)
	}
	return named(err)
}

// accept makes a version of what was proposed.
func (f *folder) accept(number int64) error {
	err := os.Rename(f.file("next"), f.of(number))
	if err == nil {
		err = disk.SyncFolder(f.path)
	}
	if err != nil {
		return named(err)
	}
	numbers, err := f.numbers()
	if err != nil {
		return err
	}
	for _, n := range numbers[min(len(numbers), repo.MaxHistory):] {
		// What cannot be removed now is tried again next time.
		_ = os.Remove(f.of(n))
	}
	return nil
}

// conclude ends what a crash has left undone: a proposal was accepted if it is the
// document, and otherwise it was not.
func (f *folder) conclude(document string) error {
	text, err := readEntry(f.file("next"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("rules: %w", err)
	}
	numbers, err := f.numbers()
	if err != nil {
		return err
	}
	if e, err := decode(text); err == nil && e.Digest == document && (len(numbers) == 0 || e.Number > numbers[0]) {
		return f.accept(e.Number)
	}
	return named(os.Remove(f.file("next")))
}

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
	e.Source = nil
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

// entry is a version in the archive: a comment in one line, and then the document as
// it was. So it can be read, compared and copied back like the document itself.
type entry struct {
	repo.Version
	Digest string `json:"sha256"`
}

const entryMark = "# weir "

func (e *entry) encode() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(entryMark)
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil { // which ends with a line break
		return nil, err
	}
	b.Write(e.Source)
	return b.Bytes(), nil
}

var errDamaged = errors.New("it is damaged, and not used; it may be removed")

// decodeHead reads the first line.
func decodeHead(line []byte) (entry, error) {
	var e entry
	text, found := bytes.CutPrefix(line, []byte(entryMark))
	if !found || json.Unmarshal(text, &e) != nil || e.Number < 1 || len(e.Digest) != repo.DigestLen {
		return entry{}, errDamaged
	}
	return e, nil
}

// decode reads an entry. One that was not written to its end has another digest.
func decode(text []byte) (entry, error) {
	head, source, found := bytes.Cut(text, []byte("\n"))
	if !found {
		return entry{}, errDamaged
	}
	e, err := decodeHead(head)
	if err != nil || repo.DigestOf(source) != e.Digest {
		return entry{}, errDamaged
	}
	e.Source = source
	return e, nil
}
