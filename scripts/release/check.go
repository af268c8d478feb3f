package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var versions = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?$`)

// check finds out what is released, before anything is built. It is an error if that is not
// exactly a tagged commit with a section in the changelog.
func (r *release) check() error {
	if !versions.MatchString(r.version) {
		return fmt.Errorf("VERSION: %q is not a version; write it as v0.1.0 or v0.1.0-rc.1", r.version)
	}
	head, err := r.git("rev-parse", "HEAD")
	if err != nil {
		return fmt.Errorf("a release is built from a git checkout: %w", err)
	}
	tagged, err := r.git("rev-parse", "--quiet", "--verify", "refs/tags/"+r.version+"^{commit}")
	if err != nil {
		return fmt.Errorf("there is no tag %s; create it with: git tag -a %s -m %s", r.version, r.version, r.version)
	}
	if tagged != head {
		return fmt.Errorf("the tag %s is the commit %.12s, but %.12s is checked out; run: git checkout %s", r.version, tagged, head, r.version)
	}
	changes, err := r.git("status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" {
		return fmt.Errorf("the checkout has changes that are not committed; commit or remove them:\n%s", changes)
	}
	seconds, err := r.git("log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("the time of the commit: %w", err)
	}
	r.time = time.Unix(unix, 0).UTC()
	changelog, err := os.ReadFile(filepath.Join(r.dir, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if r.notes, err = section(string(changelog), r.version); err != nil {
		return err
	}
	r.say("check", "%s is the commit %.12s of %s", r.version, head, r.time.Format(time.RFC3339))
	return nil
}

// section returns what a changelog says of a version, without the heading.
func section(changelog, version string) (string, error) {
	var lines []string
	inside := false
	for line := range strings.Lines(changelog) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			if inside {
				break
			}
			inside = strings.TrimSpace(title) == version || strings.HasPrefix(title, version+" ")
		} else if inside {
			lines = append(lines, line)
		}
	}
	text := strings.TrimSpace(strings.Join(lines, ""))
	switch {
	case !inside:
		return "", fmt.Errorf("CHANGELOG.md has no section of %s; write \"## %s (DATE)\" under \"## Unreleased\" in the commit that is tagged", version, version)
	case text == "":
		return "", fmt.Errorf("the section of %s in CHANGELOG.md is empty; say what changed for users", version)
	}
	return text + "\n", nil
}

// git returns what a git command prints.
func (r *release) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return "", fmt.Errorf("git %s: %s", args[0], bytes.TrimSpace(exit.Stderr))
	}
	return strings.TrimRight(string(out), "\n"), err
}
