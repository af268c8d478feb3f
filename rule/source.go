package rule

// Source is where a part of an identity is found in a request.
type Source struct {
	Kind SourceKind
	Name string // of the header, cookie, query parameter or attribute
}

// SourceKind is a kind of thing that a request has.
type SourceKind uint8

const (
	IP SourceKind = iota
	User
	APIKey
	Global // the same for everyone
	Header
	Cookie
	Query
	Attribute
)
