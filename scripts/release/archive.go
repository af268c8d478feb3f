package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// name is what the name of every file of the release begins with: weir_0.1.0.
func (r *release) name() string { return "weir_" + strings.TrimPrefix(r.version, "v") }

// file is a file in an archive.
type file struct {
	name    string // with slashes
	mode    int64
	content []byte
}

// archive packs each binary with its documents.
func (r *release) archive() error {
	documents, err := r.documents()
	if err != nil {
		return err
	}
	for _, platform := range r.platforms {
		binary := r.binary(platform)
		content, err := os.ReadFile(binary)
		if err != nil {
			return err
		}
		files := append([]file{{filepath.Base(binary), 0o755, content}}, documents...)
		folder := r.name() + "_" + strings.ReplaceAll(platform, "/", "_")
		pack, name := packTar, folder+".tar.gz"
		if strings.HasPrefix(platform, "windows/") {
			pack, name = packZip, folder+".zip"
		}
		size, err := write(filepath.Join(r.out, name), func(w io.Writer) error { return pack(w, folder, files, r.time) })
		if err != nil {
			return err
		}
		r.say("archive", "%-34s %s", name, megabytes(size))
	}
	return nil
}

// documents are what every archive has beside the program.
func (r *release) documents() ([]file, error) {
	var files []file
	add := func(name, from string) error {
		content, err := os.ReadFile(from)
		files = append(files, file{name, 0o644, content})
		return err
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		if err := add(name, filepath.Join(r.dir, name)); err != nil {
			return nil, err
		}
	}
	for _, folder := range []string{"completions", "man"} {
		entries, err := os.ReadDir(filepath.Join(r.build, folder)) // in the order of their names
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if err := add(path.Join(folder, entry.Name()), filepath.Join(r.build, folder, entry.Name())); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

// packTar writes files into one folder. Nothing of this machine gets in: no owner, no time.
func packTar(w io.Writer, folder string, files []file, made time.Time) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: path.Join(folder, f.name), Mode: f.mode, Size: int64(len(f.content)),
			ModTime: made, Format: tar.FormatUSTAR,
		}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		if _, err := t.Write(f.content); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

// packZip does the same for Windows.
func packZip(w io.Writer, folder string, files []file, made time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		header := &zip.FileHeader{Name: path.Join(folder, f.name), Method: zip.Deflate, Modified: made}
		header.SetMode(os.FileMode(f.mode))
		member, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := member.Write(f.content); err != nil {
			return err
		}
	}
	return z.Close()
}

// sum writes the checksums of everything that users download, in the format of sha256sum, and then
// the notes.
func (r *release) sum() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines []string
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(r.out, entry.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(content), entry.Name()))
	}
	if err := os.WriteFile(filepath.Join(r.out, "checksums.txt"), []byte(strings.Join(lines, "")), 0o644); err != nil {
		return err
	}
	r.say("checksums", "checksums.txt, %d files", len(lines))
	r.say("notes", "notes.md")
	return os.WriteFile(filepath.Join(r.out, "notes.md"), []byte(r.notes), 0o644)
}

// write creates a file, and returns its size.
func write(name string, content func(io.Writer) error) (int64, error) {
	f, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := content(f); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	info, err := f.Stat()
	return info.Size(), errors.Join(err, f.Close())
}
