package testoverload

// What one window of a limiter that rests has, and how many of its requests may fail without a
// change of the limit.
const (
	windowRequests = 250
	fewFailures    = 24
)

// Outcome finds out what a limiter takes a request for: "success", "failure", or "ignored" if it
// does not count. The limiter is new, and nothing shows but its limit, which falls if more than a
// tenth of the requests of a window fail. Each call of fail is a request that fails; each of
// request is one in question. Both return when the limiter knows how it ended.
func Outcome(limit func() int, fail, request func()) string {
	before := limit()
	for range fewFailures {
		fail()
	}
	for range windowRequests - fewFailures {
		request()
	}
	if limit() < before {
		return "failure"
	}
	for range windowRequests - fewFailures {
		fail()
	}
	if limit() < before {
		return "ignored" // only the failures filled the window
	}
	return "success"
}
