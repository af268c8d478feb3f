package rule

import "slices"

// Code is what there is to know about the code of a problem.
type Code struct {
	Name    string `json:"name"`    // such as "W006"
	Title   string `json:"title"`   // half a sentence
	Meaning string `json:"meaning"` // and why it matters
	Remedy  string `json:"remedy"`
}

// LookUp finds a code by its name.
func LookUp(name string) (Code, bool) {
	for _, table := range [][]Code{errorCodes, warningCodes} {
		if i := slices.IndexFunc(table, func(c Code) bool { return c.Name == name }); i >= 0 {
			return table[i], true
		}
	}
	return Code{}, false
}

// Codes returns all codes, errors first, in order. A code keeps its meaning; one
// that is no longer used is not given to another problem.
func Codes() []Code { return slices.Concat(errorCodes, warningCodes) }

var errorCodes = []Code{
	{"E001", "neither YAML nor JSON",
		"The document could not be read at all, so nothing else is known about it. The place is where reading stopped; the mistake is often in the line before.",
		"Look at the indentation, the quotes and the brackets up to the place. Values with \": \", or that begin with one of @ ` % & * ! { [, need quotes."},
	{"E002", "larger than a bound",
		"A document has bounds, so that nobody can bring a process down with one: 4 MiB, 30000 rules, 100000 tiers and overrides, 250000 values in a rule or in the lists, 32000 values within brackets in YAML, 16 levels of nesting, 1000 problems reported.",
		"Say the same with fewer rules: match takes lists, and clients can share a tier. Write each value of a long list on a line of its own."},
	{"E003", "a feature of YAML that rules do not have",
		"Anchors, aliases, merge keys, tags, directives and second documents make a file mean something else than what stands there, and let a few lines become gigabytes.",
		"Write the value out. If it is a text that begins with * or & or !, put it in quotes."},
	{"E004", "the same twice",
		"A name stands twice in one mapping, or a value twice in one list of conditions. One of them would silently win, or change nothing.",
		"Remove one of them."},
	{"E005", "an unknown field",
		"A field that is not known would be ignored, and the rule would not do what it seems to say.",
		"Correct the name; the message has the nearest one or all of them. To keep a note, use description or a comment."},
	{"E006", "a value of the wrong kind",
		"The field needs another kind of value: one value, a list, fields, a whole number, true or false. Empty values and empty lists are rejected, since they could mean everything or nothing.",
		"Write the kind of value that the message names, or remove the field to get its default."},
	{"E007", "something is missing",
		"A rule needs an id, a key, and a limit or limits.",
		"Add the field."},
	{"E008", "an id that cannot be used",
		"The id of a rule is part of headers, metrics and URLs: letters, digits, dots, dashes and underscores, at most 100 of them. The names history and rollback mean something else in URLs of the API.",
		"Choose another id, and say the rest in description."},
	{"E009", "two rules with one id",
		"What a client has used is kept by the id of the rule. Two rules of one id would share it.",
		"Rename one of them. A new id starts with nothing used."},
	{"E010", "two fields that exclude each other",
		"A quota has either limit or limits, and no burst if it is unlimited.",
		"Keep one of the two."},
	{"E011", "an unknown word",
		"The algorithm, mode or on_failure is not one of those that there are.",
		"Use one that the message names."},
	{"E012", "a key that makes no sense",
		"A key is one or several of ip, user, api_key, global, header:X, cookie:X, query:X and attr:X, each at most once. Global is the same for everybody and cannot be combined.",
		"Write what tells the clients apart whom the rule is to count apart."},
	{"E013", "a limit that cannot be read or kept",
		"A limit is N/period, such as 100/1m, and its numbers must be small enough to be counted exactly.",
		"Write N/period with a whole number and a unit: us, ms, s, m, h, d or w. The message has the bound that was passed."},
	{"E014", "a field that the algorithm does not have",
		"Only buckets have a burst, only sliding_buckets has buckets, only leaky_bucket has shape, and only windows and the log have count_denied. Elsewhere the field would say nothing.",
		"Remove the field, or choose the algorithm that has it."},
	{"E015", "one period twice",
		"Limits of one rule are kept apart by their period. Two for the same period would share what a client has used, and every request would count twice.",
		"Keep the smaller one."},
	{"E016", "a cost that never fits",
		"No request could ever pass, because it costs more than is allowed at once: N, or the burst of a bucket.",
		"Lower the cost, or raise the limit or the burst."},
	{"E017", "an answer that cannot be given",
		"A denied client is answered by an HTTP status of 400 to 599, and by a code of the application's own that is not negative.",
		"Write a number in that range. Leave status out for 429."},
	{"E018", "neither an address nor a network",
		"Lists of addresses take single addresses and networks in CIDR notation, without host bits: 10.0.0.1/8 could mean one address or sixteen million.",
		"Write the network as the message has it, or the one address."},
	{"E019", "a path that cannot match",
		"A path begins with a slash. {name} is one whole segment, whatever it is called, and ** is everything below and only at the end. Paths are compared after dots, double slashes and a slash at the end are removed.",
		"Write for example /users/{id} or /api/**."},
	{"E020", "a host that cannot match",
		"A host is a name without port, or *.example.com for every name below example.com. Small and capital letters are the same.",
		"Write the name alone. Leave host out for all of them."},
	{"E021", "a method that cannot match",
		"Methods are in capitals, as in GET. A document can name 64 different ones.",
		"Write it in capitals. Leave method out for all of them."},
	{"E022", "attributes that say nothing",
		"A star is any value, so other values beside it make no difference.",
		"Write \"*\" alone, or only the values that are meant."},
	{"E023", "an override for nobody",
		"An override names a client as the rule's key has it: user:alice for key user, ip:203.0.113.7|user:alice for key [ip, user]. Another name would never be looked up.",
		"Write the identity as the message shows it."},
	{"E024", "a rule that limits nobody",
		"Everything in the rule is unlimited. It would be looked up for nothing.",
		"Write a limit, or one for a tier or a client. To switch a rule off, write mode: off."},
	{"E025", "two rules that do the same",
		"They match the same requests, count the same clients and have the same limits, so the second never denies what the first allows; it only costs time.",
		"Remove one of them, or change what was meant to differ."},
}

var warningCodes = []Code{
	{"W000", "more warnings than are shown",
		"Only the first thousand problems are reported.",
		"Mend these and look again."},
	{"W001", "everybody is exempt",
		"The exempt list has a network that is every address of its family. No rule applies to anybody whose address is known.",
		"Name the networks that you trust. To try rules without denying anybody, write mode: shadow."},
	{"W002", "an override for somebody who is exempt",
		"No limit applies to whoever is exempt, so the override is never looked up.",
		"Remove the override, or the exemption."},
	{"W003", "a block for somebody who is exempt",
		"Exempt goes before block, so that an operator cannot lock out a health check. This entry blocks nobody.",
		"Remove the entry from one of the lists."},
	{"W004", "everybody is blocked",
		"The block list has a network that is every address of its family. Everybody whose address is known is denied, unless exempt.",
		"Name the networks that you mean."},
	{"W005", "a long window that a restart forgets",
		"A fixed window of more than a day is in memory for so long that a restart in between is likely, and everybody begins again then.",
		"Set --data, so that counts survive, or keep them in Redis."},
	{"W006", "a login that is open on failure",
		"By its name or path the rule is against guessing passwords, tokens or codes. With on_failure: open, whoever can make the store unreachable can guess without limit.",
		"Write on_failure: local to go on with this instance's share of the limit, or closed to deny."},
	{"W007", "a large log",
		"A sliding_log keeps the time of every unit, 8 bytes each, for every client.",
		"Choose sliding_window, an estimate from two counts, or sliding_buckets, exact to a fraction of the period."},
	{"W008", "less than one request a second for all",
		"The rule matches every request and counts all clients together, and all of its limits are below one a second.",
		"If the limit is meant for each client, write key: ip or key: user. If it is meant for something in particular, match that."},
	{"W009", "a limit that never denies",
		"Whoever keeps the other limit of the rule keeps this one, too: after 100 a minute there are never 10000 in an hour.",
		"Remove it, or look at the numbers; perhaps the period of one is wrong."},
	{"W010", "a key that anybody can forge",
		"The header names the address of a client, but any client can send it with any address, and so is a new client with each request.",
		"Write key: ip. It is found from such headers if they come from trusted_proxies, and only then."},
	{"W011", "a key that a client can leave out",
		"A request without the header, cookie or parameter is not subject to the rule, and one that makes up a new value each time is a new client each time. No other rule counts by what a client cannot choose.",
		"Add a rule with key ip or global, be it a generous one."},
	{"W012", "an entry that changes nothing",
		"It is in the list already, or within a network that is.",
		"Remove it."},
	{"W013", "an API key in clear",
		"Rules are copied, logged as history and shown by the API. Whoever sees them has the key.",
		"Write its hash: sha256: and the output of  printf 'weir:api_key:%s' \"$KEY\" | sha256sum | cut -c1-32"},
	{"W014", "everything is denied on failure",
		"The rule matches every request and is closed on failure. When the store is unavailable, the whole service is.",
		"Write on_failure: local, or match what must rather be denied than unlimited."},
	{"W015", "not formatted",
		"Lines could not be moved without changing what the document says, so it was left as it is.",
		"Write a list item beside its dash, as in \"- id: login\", and no tabs and comments inside of texts."},
}
