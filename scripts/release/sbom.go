package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// bom is a CycloneDX document: everything that the binaries contain.
type bom struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
	Hashes  []hash `json:"hashes,omitempty"`

	Licences []licence `json:"licenses,omitempty"`
}

// licence is one of a known name, or an expression of several.
type licence struct {
	License    *licenceName `json:"license,omitempty"`
	Expression string       `json:"expression,omitempty"`
}

type licenceName struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"` // of what has no id
}

// under sets the licence of a component, an expression of SPDX or noAssertion.
func (c *component) under(expression string) {
	l := licence{Expression: expression}
	switch {
	case expression == noAssertion:
		l = licence{License: &licenceName{Name: noAssertion}}
	case !strings.Contains(expression, " "):
		l = licence{License: &licenceName{ID: expression}}
	}
	c.Licences = []licence{l}
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// bundled are the npm packages whose code is in the built dashboard.
var bundled = []string{"svelte", "uplot"}

// list writes the SBOM. The modules are what Go recorded in the binaries; platforms may differ.
func (r *release) list() error {
	modules := map[string]component{}
	for _, platform := range r.platforms {
		info, err := buildinfo.ReadFile(r.binary(platform))
		if err != nil {
			return err
		}
		if err := addModules(modules, info); err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
	}
	manifest, err := os.ReadFile(filepath.Join(r.dir, "web", "package.json"))
	if err != nil {
		return err
	}
	if err := addPackages(modules, manifest); err != nil {
		return fmt.Errorf("web/package.json: %w", err)
	}
	if err := r.findLicences(modules); err != nil {
		return err
	}
	all := describe(r.version, r.time, modules)
	own, err := licenceIn(r.dir)
	if err != nil {
		return err
	}
	all.Metadata.Component.under(own)
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	name := r.name() + ".cdx.json"
	r.say("sbom", "%s, %d components", name, len(modules))
	return os.WriteFile(filepath.Join(r.out, name), append(text, '\n'), 0o644)
}

// findLicences sets the licence of each component.
func (r *release) findLicences(modules map[string]component) error {
	dirs, err := moduleDirs(r.dir)
	if err != nil {
		return err
	}
	lock, err := os.ReadFile(filepath.Join(r.dir, "web", "package-lock.json"))
	if err != nil {
		return err
	}
	for ref, c := range modules {
		var found string
		if slices.Contains(bundled, c.Name) {
			found, err = licenceOfPackage(lock, c.Name)
		} else {
			found, err = licenceIn(dirs[c.Name])
		}
		if err != nil {
			return err
		}
		c.under(found)
		modules[ref] = c
	}
	return nil
}

// addModules adds the modules of a binary, and Go's own library.
func addModules(to map[string]component, info *debug.BuildInfo) error {
	library := golang("std", strings.TrimPrefix(info.GoVersion, "go"))
	to[library.Ref] = library
	for _, m := range info.Deps {
		if m.Replace != nil {
			return fmt.Errorf("%s is replaced by %s; a release is built from published modules only", m.Path, m.Replace.Path)
		}
		c := golang(m.Path, m.Version)
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
		if err != nil || len(sum) == 0 {
			return fmt.Errorf("%s has the checksum %q", m.Path, m.Sum)
		}
		c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}}
		to[c.Ref] = c
	}
	return nil
}

// addPackages adds the npm packages of the dashboard.
func addPackages(to map[string]component, manifest []byte) error {
	var wanted struct{ Dependencies, DevDependencies map[string]string }
	if err := json.Unmarshal(manifest, &wanted); err != nil {
		return err
	}
	for _, name := range bundled {
		version := cmp.Or(wanted.Dependencies[name], wanted.DevDependencies[name])
		if version == "" {
			return fmt.Errorf("%s is not there", name)
		}
		ref := "pkg:npm/" + name + "@" + version
		to[ref] = component{Type: "library", Ref: ref, Name: name, Version: version, PURL: ref}
	}
	return nil
}

func describe(version string, made time.Time, modules map[string]component) bom {
	weir := golang("github.com/weirhq/weir", version)
	weir.Type = "application"
	b := bom{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: metadata{made.Format(time.RFC3339), weir},
	}
	all := dependency{Ref: weir.Ref}
	for _, c := range modules {
		b.Components = append(b.Components, c)
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	slices.SortFunc(b.Components, func(a, b component) int { return cmp.Compare(a.Ref, b.Ref) })
	slices.Sort(all.DependsOn)
	b.Dependencies = []dependency{all}
	return b
}

// golang is a Go module as CycloneDX knows it.
func golang(path, version string) component {
	ref := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return component{Type: "library", Ref: ref, Name: path, Version: version, PURL: ref}
}
