package envoyconfig

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/watch"
	"github.com/weirhq/weir/rule"
)

// Options say how a configuration is read and followed. The zero value is ready to use.
type Options struct {
	// MergeDomains lets several files say something of the same domain. Default
	// false: that is an error.
	MergeDomains bool

	// Calendar is the zone whose calendar limits by the day, week, month and year follow that say none. Default none:
	// these have a constant length.
	Calendar *time.Location

	// Holds are those of descriptors that say none. Default none.
	Holds []Hold

	// Install is called with each configuration before it comes into force. Default none.
	Install func(*Config)

	watch watch.Options
}

// MaxBytes is how much all files of a directory may have together.
const MaxBytes = 32 << 20

// Dir is a directory with files of configuration, *.yaml and *.yml. It is safe for
// concurrent use.
type Dir struct {
	path    string
	options Options
	pause   func(context.Context) error

	current atomic.Pointer[Config]

	mu       sync.Mutex
	inForce  digest
	rejected digest // what was found last, if it is not used
	why      error
	warnings rule.Problems
}

// digest tells the contents of a directory apart.
type digest [sha256.Size]byte

// Open reads a directory. It is an error if there is no file in it, or if one of them
// cannot be used.
func Open(path string, o Options) (*Dir, error) {
	d, err := At(path, o)
	if err == nil {
		err = d.Reload()
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// At returns a directory that was not read yet, and need not be there: Reload and Watch
// read it. Until they can use what they find, there is no configuration.
func At(path string, o Options) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("envoy: %w", err)
	}
	return &Dir{path: path, options: o, pause: watch.Pause}, nil
}

// Config returns the configuration in force: the last one that could be used, or nil if
// there was none yet.
func (d *Dir) Config() *Config { return d.current.Load() }

// Warnings are what is doubtful about the configuration in force.
func (d *Dir) Warnings() rule.Problems {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.warnings
}

// Reload reads the directory now. If it cannot be used, the configuration before stays
// in force, and the error says why; it is an *InvalidError if a file has mistakes.
func (d *Dir) Reload() error {
	files, sum, err := d.readFiles()
	if err == nil {
		err = d.install(files, sum)
	}
	return err
}

// install brings files into force, if they can be used.
func (d *Dir) install(files []File, sum digest) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current.Load() != nil && sum == d.inForce {
		d.rejected, d.why = digest{}, nil
		return nil
	}
	config, problems := Read(files, d.options)
	if err := Invalid(problems); err != nil {
		d.rejected, d.why = sum, err
		return err
	}
	if d.options.Install != nil {
		d.options.Install(config)
	}
	d.current.Store(config)
	d.inForce, d.rejected, d.why, d.warnings = sum, digest{}, nil, problems
	return nil
}

// readFiles reads all files. What has no file is rather a directory that is being replaced
// than one that should limit nothing.
func (d *Dir) readFiles() ([]File, digest, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, digest{}, fmt.Errorf("envoy: %w", err)
	}
	h := sha256.New()
	var files []File
	total := 0
	for _, entry := range entries {
		name := entry.Name()
		if ext := filepath.Ext(name); ext != ".yaml" && ext != ".yml" || strings.HasPrefix(name, ".") {
			continue
		}
		if len(files) == MaxFiles {
			return nil, digest{}, fmt.Errorf("envoy: %s has more than %d files; merge the descriptors of several domains", d.path, MaxFiles)
		}
		source, err := readFile(filepath.Join(d.path, name))
		if err != nil {
			return nil, digest{}, fmt.Errorf("envoy: %w", err)
		}
		if total += len(source); total > MaxBytes {
			return nil, digest{}, fmt.Errorf("envoy: the files in %s have more than %d bytes together; shorten them", d.path, MaxBytes)
		}
		fmt.Fprintf(h, "%q %d\n", name, len(source))
		h.Write(source)
		files = append(files, File{Name: name, Source: source})
	}
	if len(files) == 0 {
		return nil, digest{}, fmt.Errorf("envoy: there is no *.yaml file in %s; set the directory of the envoyproxy/ratelimit files, which is config in its runtime directory", d.path)
	}
	return files, digest(h.Sum(nil)), nil
}

// readFile reads a file, wherever links lead. One byte more than is allowed is enough
// to be rejected.
func readFile(path string) ([]byte, error) {
	file, err := disk.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, document.MaxSize+1))
}

// errRestless is no verdict: the next look may find the files at rest.
var errRestless = fmt.Errorf("envoy: the files keep changing; they are loaded after %v without a change", watch.Rest)

// Watch follows the directory until the context ends, which is its error. It calls
// changed with every configuration that comes into force, and with what keeps a later
// one from doing so: each trouble once, with the configuration that stays in force, and
// that one again, without an error, when the trouble is over. Calls are one after the
// other.
func (d *Dir) Watch(ctx context.Context, changed func(*Config, error)) error {
	told, trouble := d.Config(), ""
	return watch.Follow(ctx, d.path, d.options.watch, func() {
		err := d.look(ctx)
		if ctx.Err() != nil {
			return
		}
		now, text := d.Config(), ""
		if err != nil {
			text = err.Error()
		}
		if now != told || text != trouble {
			changed(now, err)
		}
		told, trouble = now, text
	})
}

// look brings the files into force if they have changed and are at rest.
func (d *Dir) look(ctx context.Context) error {
	_, sum, err := d.readFiles()
	if err == nil {
		if known, why := d.known(sum); known {
			return why
		}
	}
	for range watch.MaxRests {
		if err := d.pause(ctx); err != nil {
			return err
		}
		files, again, readErr := d.readFiles()
		if fmt.Sprint(err) == fmt.Sprint(readErr) && again == sum {
			if readErr != nil {
				return readErr
			}
			return d.install(files, sum)
		}
		sum, err = again, readErr
	}
	return errRestless
}

// known is whether there is nothing to find out about files, and why they are not in force.
func (d *Dir) known(sum digest) (known bool, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if sum == d.inForce {
		d.rejected, d.why = digest{}, nil
	}
	return sum == d.inForce || sum == d.rejected, d.why
}
