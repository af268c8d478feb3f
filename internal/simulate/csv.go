package simulate

import (
	"encoding/csv"
	"io"
	"strconv"
)

// WriteCSV writes a line for each limit, algorithm and slice of time, which is
// named by its beginning in seconds from the start.
func WriteCSV(w io.Writer, reports []*Report) error {
	c := csv.NewWriter(w)
	c.Write([]string{"limit", "algorithm", "at", "offered", "admitted", "refused", "released", "remaining"})
	for _, r := range reports {
		for i := range r.Lanes {
			for slice := range r.Axis.Count {
				c.Write(r.record(&r.Lanes[i], slice))
			}
		}
	}
	c.Flush()
	return c.Error()
}

func (r *Report) record(l *Result, slice int) []string {
	at := int64(r.Axis.Begin) + int64(slice)*int64(r.Axis.Slice)
	fields := []string{r.title(), l.Name, strconv.FormatFloat(float64(at)/1e6, 'f', -1, 64)}
	for _, n := range []int64{
		r.Arrivals[slice], l.AdmittedSlices[slice], l.RefusedSlices[slice], l.ReleasedSlices[slice], l.RemainingSlices[slice],
	} {
		fields = append(fields, strconv.FormatInt(n, 10))
	}
	return fields
}
