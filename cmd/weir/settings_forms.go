package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/spelling"
)

// flagValue is a value of a flag.
type flagValue struct{ flag, text string }

// form reads a mapping that the configuration file can have where a flag has a text.
type form func(*document.Element) ([]flagValue, error)

var forms = map[string]form{"upstream": routeForm, "adaptive": boundsForm, "protect": protectForm}

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
	name, bounds := "", ""
	var urls []string
	err := members(e, map[string]func(*document.Element) error{
		"route": func(e *document.Element) error {
			if !e.IsScalar() {
				return fmt.Errorf("route: this is %s; write a host, a path or both, for example /api", e.Describe())
			}
			name = e.Text
			return nil
		},
		"url": func(e *document.Element) error {
			all, err := values("url", e, nil)
			for _, one := range all {
				urls = append(urls, one.text)
			}
			return err
		},
		"adaptive": func(e *document.Element) error {
			if e.Kind != document.Mapping {
				return fmt.Errorf("adaptive: this is %s; write {min: 5, max: 1000}", e.Describe())
			}
			all, err := boundsForm(e)
			if err == nil {
				bounds = all[0].text
			}
			return err
		},
	})
	switch {
	case err != nil:
		return nil, err
	case len(urls) == 0:
		return nil, errors.New("url is required; write for example {route: /api, url: http://127.0.0.1:9000}")
	}
	route := strings.Join(urls, ",")
	if name != "" {
		route = name + "=" + route
	} else {
		name = "/"
	}
	all := []flagValue{{"upstream", route}}
	if bounds != "" {
		all = append(all, flagValue{"adaptive", name + "=" + bounds})
	}
	return all, nil
}

// boundsForm reads {min: 5, max: 1000}.
func boundsForm(e *document.Element) ([]flagValue, error) {
	var least, most string
	number := func(name, example string, into *string) func(*document.Element) error {
		return func(e *document.Element) error {
			if e.Kind != document.Integer {
				return fmt.Errorf("%s: this is %s; write a whole number, for example %s", name, e.Describe(), example)
			}
			*into = e.Text
			return nil
		}
	}
	err := members(e, map[string]func(*document.Element) error{"min": number("min", "5", &least), "max": number("max", "1000", &most)})
	if err == nil && (least == "" || most == "") {
		err = errors.New("min and max are required; write for example {min: 5, max: 1000}")
	}
	return []flagValue{{"adaptive", least + "-" + most}}, err
}

// protectForm reads {cpu: 85%, memory: 90%}.
func protectForm(e *document.Element) ([]flagValue, error) {
	var shares []string
	share := func(name string) func(*document.Element) error {
		return func(e *document.Element) error {
			if !e.IsScalar() {
				return fmt.Errorf("%s: this is %s; write a percentage, for example 85%%", name, e.Describe())
			}
			shares = append(shares, name+"="+e.Text)
			return nil
		}
	}
	err := members(e, map[string]func(*document.Element) error{"cpu": share("cpu"), "memory": share("memory")})
	return []flagValue{{"protect", strings.Join(shares, ",")}}, err
}

// members reads a mapping with these names.
func members(e *document.Element, known map[string]func(*document.Element) error) error {
	for _, m := range e.Members {
		read := known[m.Name.Text]
		if read == nil {
			names := slices.Sorted(maps.Keys(known))
			return fmt.Errorf("%s is unknown; %s", document.Quote(m.Name.Text), spelling.Hint(m.Name.Text, names, "write "+strings.Join(names, ", ")))
		}
		if err := read(m.Value); err != nil {
			return err
		}
	}
	return nil
}
