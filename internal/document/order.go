package document

import "slices"

// Order is the order of names in a mapping, and in what is below it.
type Order struct {
	Fields []string          // names that are not among them go last; none keeps all as it is
	In     map[string]*Order // of values, by name
	Each   *Order            // of all other values, and of the items of a list
}

// below is the order of a value by its name, or of an item.
func (o *Order) below(name string) *Order {
	switch {
	case o == nil:
		return nil
	case o.In[name] != nil:
		return o.In[name]
	}
	return o.Each
}

// rank is where a name belongs.
func (o *Order) rank(name string) int {
	if o == nil {
		return 0
	}
	if i := slices.Index(o.Fields, name); i >= 0 {
		return i
	}
	return len(o.Fields)
}

// Sort brings a tree into an order.
func (e *Element) Sort(o *Order) {
	slices.SortStableFunc(e.Members, func(a, b Member) int { return o.rank(a.Name.Text) - o.rank(b.Name.Text) })
	for _, m := range e.Members {
		m.Value.Sort(o.below(m.Name.Text))
	}
	for _, item := range e.Items {
		item.Sort(o.below(""))
	}
}
