package repo

import "bytes"

// Notifier calls Changed as [Repository.Watch] promises, for whoever writes a
// repository: each version once, and each trouble once.
type Notifier struct {
	Changed func(Version, error)

	told    bool // a version
	version Version
	trouble string // that was told last, and is not over
}

// Tell is called with what is in force, as often as it is looked at, and with what
// keeps a later document from being so. As long as nothing can be read, the version
// is nil.
func (n *Notifier) Tell(v *Version, trouble error) {
	if v != nil && (!n.told || !n.version.same(*v)) {
		n.told, n.version = true, *v
		n.trouble = ""
		n.Changed(n.version, nil)
	}
	switch {
	case trouble != nil && trouble.Error() != n.trouble:
		n.trouble = trouble.Error()
		n.Changed(n.version, trouble)
	case trouble == nil && n.trouble != "":
		n.trouble = ""
		n.Changed(n.version, nil)
	}
}

// same is false for two versions of one number, which there are when a Redis has
// forgotten the first of them.
func (v Version) same(other Version) bool {
	return v.Number == other.Number && v.Time.Equal(other.Time) && bytes.Equal(v.Source, other.Source)
}
