package frame

// Priorities holds the requests whose priority is not normal. All others are normal, so that
// programs without priorities count and store nothing.
type Priorities struct{ Critical, High, Low Counts }

// Normal returns the counts of requests with normal priority: those of all requests less the
// others. A request may be counted here a moment before it is counted among all, so that the
// difference of a short time can be too low, but never below 0.
func (p *Priorities) Normal(all Counts) Counts {
	normal := all.fields()
	for _, other := range p.all() {
		for i, n := range other.fields() {
			*normal[i] = max(0, *normal[i]-*n)
		}
	}
	return all
}

// Merge adds the requests of another time range, or another instance.
func (p *Priorities) Merge(other *Priorities) {
	p.Critical.Add(other.Critical)
	p.High.Add(other.High)
	p.Low.Add(other.Low)
}

func (p *Priorities) all() [3]*Counts { return [...]*Counts{&p.Critical, &p.High, &p.Low} }

func (p *Priorities) total() int64 { return p.Critical.Total() + p.High.Total() + p.Low.Total() }
