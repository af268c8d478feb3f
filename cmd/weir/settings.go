package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
)

// Every flag of a server is also a key of its configuration file, with underscores
// for dashes, and a variable of the environment: --snapshot-every, snapshot_every and
// WEIR_SNAPSHOT_EVERY. Precedence: flag, environment variable, file.

const maxConfig = 1 << 20

// settle gives every flag that was not set the value of the environment or the file.
func settle(cmd *cobra.Command) error {
	var wrong []error
	set := func(f *pflag.Flag, value, from string) {
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			wrong = append(wrong, usage("%s: %s is invalid; write %s, as for --%s", from, document.Quote(value), kind(f), f.Name))
		}
	}
	flags := map[string]*pflag.Flag{} // that may be set from outside, by key
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		flags[key(f.Name)] = f
		if value := os.Getenv(variable(f.Name)); value != "" && !f.Changed {
			set(f, value, variable(f.Name))
		}
	})
	name, _ := cmd.Flags().GetString("config")
	if name == "" || len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	config, err := readConfig(name)
	if err != nil {
		return err
	}
	given := map[string]bool{} // by a flag or a variable
	for _, f := range flags {
		given[f.Name] = f.Changed
	}
	for _, m := range config.Members {
		place := fmt.Sprintf("%s:%d:%d: %s", name, m.Name.Line, m.Name.Column, m.Name.Text)
		f := flags[m.Name.Text]
		if f == nil {
			every := fmt.Sprintf("the keys are the flags of %s, with underscores for dashes", cmd.CommandPath())
			wrong = append(wrong, usage("%s is unknown; %s", place, notation.Hint(m.Name.Text, slices.Collect(maps.Keys(flags)), every)))
			continue
		}
		if given[f.Name] {
			continue
		}
		all, err := values(f.Name, m.Value, forms[f.Name])
		if err != nil {
			wrong = append(wrong, usage("%s: %w", place, err))
			continue
		}
		for _, one := range all {
			if !given[one.flag] {
				set(cmd.Flags().Lookup(one.flag), one.text, place)
			}
		}
	}
	return errors.Join(wrong...)
}

func key(flag string) string      { return strings.ReplaceAll(flag, "-", "_") }
func variable(flag string) string { return "WEIR_" + strings.ToUpper(key(flag)) }

// readConfig reads a file that is one mapping.
func readConfig(name string) (*document.Element, error) {
	source, err := disk.ReadFile(name, maxConfig, "configuration")
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	var wrong []error
	root := document.Read(name, string(source), func(fault document.Fault) {
		wrong = append(wrong, usage("%s:%d:%d: %s", name, fault.Line, fault.Column, fault.Message))
	})
	switch {
	case len(wrong) > 0:
		return nil, errors.Join(wrong...)
	case root == nil || root.Kind == document.Nothing:
		return &document.Element{}, nil
	case root.Kind != document.Mapping:
		return nil, usage("%s: the file must be a mapping, with lines such as \"store: redis://127.0.0.1:6379\"; this is %s", name, root.Describe())
	}
	return root, nil
}

// flagValue is a value of a flag.
type flagValue struct{ flag, text string }

// form reads a mapping that the configuration file can have where a flag has a text.
type form func(*document.Element) ([]flagValue, error)

var forms = map[string]form{"upstream": routeForm, "adaptive": boundsForm, "protect": protectForm, "jwt": issuerForm, "attributes": attributesForm}

// values are what a member of the file sets: one value, or a list. The form may be nil.
func values(flag string, e *document.Element, f form) ([]flagValue, error) {
	if e.Kind != document.List {
		return value(flag, e, f, "this is %s; write one value, or a list of values")
	}
	var all []flagValue
	for _, item := range e.Items {
		one, err := value(flag, item, f, "an item of the list is %s; write one value per item")
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

func value(flag string, e *document.Element, f form, otherwise string) ([]flagValue, error) {
	switch {
	case e.IsScalar():
		return []flagValue{{flag, e.Text}}, nil
	case e.Kind == document.Mapping && f != nil:
		return f(e)
	}
	return nil, fmt.Errorf(otherwise, e.Describe())
}

// routeForm reads {route: /api, url: http://10.0.0.5:9000, adaptive: {min: 5, max: 1000}}.
func routeForm(e *document.Element) ([]flagValue, error) {
	m, err := members(e, "adaptive", "route", "url")
	if err != nil {
		return nil, err
	}
	name := ""
	var urls []string
	if route := m["route"]; route != nil {
		if !route.IsScalar() {
			return nil, fmt.Errorf("route: this is %s; write a host, a path or both, for example /api", route.Describe())
		}
		name = route.Text
	}
	if m["url"] != nil {
		all, err := values("url", m["url"], nil)
		if err != nil {
			return nil, err
		}
		for _, one := range all {
			urls = append(urls, one.text)
		}
	}
	if len(urls) == 0 {
		return nil, errors.New("url is required; write for example {route: /api, url: http://127.0.0.1:9000}")
	}
	route := strings.Join(urls, ",")
	if name != "" {
		route = name + "=" + route
	} else {
		name = "/"
	}
	all := []flagValue{{"upstream", route}}
	if adaptive := m["adaptive"]; adaptive != nil {
		if adaptive.Kind != document.Mapping {
			return nil, fmt.Errorf("adaptive: this is %s; write {min: 5, max: 1000}", adaptive.Describe())
		}
		bounds, err := boundsForm(adaptive)
		if err != nil {
			return nil, err
		}
		all = append(all, flagValue{"adaptive", name + "=" + bounds[0].text})
	}
	return all, nil
}

// boundsForm reads {min: 5, max: 1000}.
func boundsForm(e *document.Element) ([]flagValue, error) {
	m, err := members(e, "max", "min")
	if err != nil {
		return nil, err
	}
	for _, bound := range [][2]string{{"min", "5"}, {"max", "1000"}} {
		if e := m[bound[0]]; e != nil && e.Kind != document.Integer {
			return nil, fmt.Errorf("%s: this is %s; write a whole number, for example %s", bound[0], e.Describe(), bound[1])
		}
	}
	if m["min"] == nil || m["max"] == nil {
		return nil, errors.New("min and max are required; write for example {min: 5, max: 1000}")
	}
	return []flagValue{{"adaptive", m["min"].Text + "-" + m["max"].Text}}, nil
}

// protectForm reads {cpu: 85%, memory: 90%}.
func protectForm(e *document.Element) ([]flagValue, error) {
	if _, err := members(e, "cpu", "memory"); err != nil {
		return nil, err
	}
	var shares []string
	for _, m := range e.Members {
		if !m.Value.IsScalar() {
			return nil, fmt.Errorf("%s: this is %s; write a percentage, for example 85%%", m.Name.Text, m.Value.Describe())
		}
		shares = append(shares, m.Name.Text+"="+m.Value.Text)
	}
	return []flagValue{{"protect", strings.Join(shares, ",")}}, nil
}

// issuerForm reads {issuer: https://id.example.com, audience: [api], required: true}.
func issuerForm(e *document.Element) ([]flagValue, error) {
	m, err := members(e, "algorithms", "audience", "issuer", "jwks", "required")
	if err != nil {
		return nil, err
	}
	var words []string
	for _, name := range []string{"issuer", "audience", "jwks", "algorithms"} {
		if m[name] == nil {
			continue
		}
		all, err := values(name, m[name], nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var texts []string
		for _, one := range all {
			texts = append(texts, one.text)
		}
		words = append(words, name+"="+strings.Join(texts, " "))
	}
	all := []flagValue{{"jwt", strings.Join(words, ",")}}
	if required := m["required"]; required != nil && required.Text != "false" {
		all = append(all, flagValue{"jwt-required", required.Text})
	}
	return all, nil
}

// attributesForm reads {org: jwt.claims.org, user: jwt.claims.sub}.
func attributesForm(e *document.Element) (all []flagValue, err error) {
	for _, m := range e.Members {
		if !m.Value.IsScalar() {
			return nil, fmt.Errorf("%s: this is %s; write an expression, for example jwt.claims.org", m.Name.Text, m.Value.Describe())
		}
		all = append(all, flagValue{"attributes", m.Name.Text + "=" + m.Value.Text})
	}
	return all, nil
}

// members are the values of a mapping that has no other names than these.
func members(e *document.Element, names ...string) (map[string]*document.Element, error) {
	found := map[string]*document.Element{}
	for _, m := range e.Members {
		if !slices.Contains(names, m.Name.Text) {
			return nil, fmt.Errorf("%s is unknown; %s", document.Quote(m.Name.Text), notation.Hint(m.Name.Text, names, "write "+strings.Join(names, ", ")))
		}
		found[m.Name.Text] = m.Value
	}
	return found, nil
}
