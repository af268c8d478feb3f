package overload

// Class is how important a request is; a greater one is more important.
type Class uint8

const (
	Low Class = iota
	Normal
	High
	Critical
	Classes
)

func (c Class) String() string { return [...]string{"low", "normal", "high", "critical"}[c] }
