package overload

// Priority is how important a request is; a greater one is more important. The numbers are those of package rule.
type Priority uint8

const (
	Low Priority = 1 + iota
	Normal
	High
	Critical

	// Priorities is the length of an array by priority, whose first element is not used.
	Priorities
)

func (p Priority) String() string { return [...]string{"", "low", "normal", "high", "critical"}[p] }
