package rule

import "slices"

// Code describes the code of a problem.
type Code struct {
	Name    string `json:"name"`    // such as "W006"
	Title   string `json:"title"`   // a noun phrase
	Meaning string `json:"meaning"` // what it means and why it matters
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

// Codes returns all codes in order, errors first. A code keeps its meaning; the code of a
// problem that is no longer reported is not reused.
func Codes() []Code { return slices.Concat(errorCodes, warningCodes) }

var errorCodes = []Code{
	{"E001", "invalid YAML or JSON",
		"The document could not be parsed, so nothing else in it was checked. The position is where parsing stopped; the mistake is often in the line before.",
		"Check the indentation, the quotes and the brackets up to that position. Values that contain \": \", or begin with one of @ ` % & * ! { [, need quotes."},
	{"E002", "document too large",
		"The size of a document is limited, so that no document can exhaust the memory of the process. The limits are 4 MiB, 30000 rules, 100000 tiers and overrides, 250000 values in one rule, 250000 values outside rules, 32000 values within brackets in YAML, and 16 levels of nesting. weir reports at most 1000 problems.",
		"Use fewer rules: match takes lists, and clients can share a tier. Write each value of a long list on its own line."},
	{"E003", "unsupported YAML feature",
		"Anchors, aliases, merge keys, tags, directives and further documents are not supported. They hide what a file means, and a few lines of them can expand to gigabytes.",
		"Write the value out. If it is a text that begins with * or & or !, put it in quotes."},
	{"E004", "duplicate name or value",
		"A name is given twice in one mapping, or a value twice in one list of conditions. weir would have to ignore one of them.",
		"Remove one of them."},
	{"E005", "unknown field",
		"If weir ignored an unknown field, the rule would not do what it seems to say.",
		"Correct the name. The message has the most similar name, or all names. To keep a note, use description or a comment."},
	{"E006", "value of the wrong kind",
		"The field needs another kind of value: one value, a list, fields, a whole number, true or false. weir rejects empty values and empty lists, because they could mean everything or nothing.",
		"Write the kind of value that the message names, or remove the field to use its default."},
	{"E007", "required field",
		"A rule needs an id, a key, and a limit or limits.",
		"Add the field."},
	{"E008", "invalid id",
		"The id of a rule is part of headers, metrics and URLs. It has at most 100 characters: letters, digits, dots, dashes and underscores. It cannot be history or rollback, which have another meaning in URLs of the API.",
		"Choose another id, and put details into description."},
	{"E009", "duplicate id",
		"The id of a rule identifies its usage in the store. Two rules with the same id would share their usage.",
		"Rename one of them. A new id starts from zero."},
	{"E010", "conflicting fields",
		"A rule, tier or override has either limit or limits. It has no burst if it is unlimited.",
		"Keep one of the two."},
	{"E011", "unknown value",
		"The value of algorithm, mode or on_failure is unknown.",
		"Use one of the values in the message."},
	{"E012", "invalid key",
		"A key is one or several of ip, user, api_key, global, header:X, cookie:X, query:X and attr:X, each at most once. global is the same for all clients and cannot be combined.",
		"Write what identifies a client, such as ip or user."},
	{"E013", "invalid limit",
		"A limit is N/period, such as 100/1m, and its numbers must be small enough to be counted exactly.",
		"Write N/period with a whole number and a unit: us, ms, s, m, h, d or w. The message has the bound that was exceeded."},
	{"E014", "field not supported by the algorithm",
		"Only buckets have a burst, only sliding_buckets has buckets, only leaky_bucket has shape, and only windows and the log have count_denied. With another algorithm the field would have no effect.",
		"Remove the field, or choose an algorithm that has it."},
	{"E015", "duplicate period",
		"The period of a limit identifies its usage in the store. Two limits with the same period would share the usage of a client, and every request would count twice.",
		"Keep the smaller one."},
	{"E016", "cost above the limit",
		"A request would cost more than the limit allows at once, which is N, or the burst of a bucket. So weir could never allow a request.",
		"Lower the cost, or raise the limit or the burst."},
	{"E017", "invalid deny response",
		"The response to a denied client has an HTTP status of 400 to 599, and an application code that is not negative.",
		"Write a number in that range. Leave status out for 429."},
	{"E018", "invalid address or network",
		"Lists of addresses take single addresses and networks in CIDR notation, without host bits: 10.0.0.1/8 could mean one address or sixteen million.",
		"Write the network as the message shows it, or the single address."},
	{"E019", "invalid path",
		"A path begins with a slash. {name} matches one whole segment; the name does not matter. ** matches everything below a path, and can stand only at the end. weir compares paths after it removes dots, double slashes and a slash at the end.",
		"Write for example /users/{id} or /api/**."},
	{"E020", "invalid host",
		"A host is a name without port, or *.example.com for every subdomain of example.com. Upper and lower case are the same.",
		"Write only the name. Leave host out to match all hosts."},
	{"E021", "invalid method",
		"Methods are in upper case, as in GET. A document can have 64 different methods.",
		"Write it in upper case. Leave method out to match all methods."},
	{"E022", "redundant attribute values",
		"A star matches any value, so other values beside it have no effect.",
		"Write \"*\" alone, or only the values to match."},
	{"E023", "override that matches no client",
		"An override names a client as the rule's key does: user:alice for key user, ip:203.0.113.7|user:alice for key [ip, user]. Another name would never match.",
		"Write the key of the client as the message shows it."},
	{"E024", "rule without limits",
		"The rule is unlimited for every client, so it can never deny a request.",
		"Write a limit for the rule, for a tier or for a client. To switch the rule off, write mode: off."},
	{"E025", "duplicate rule",
		"Both rules match the same requests, count the same clients and have the same limits, so the second rule has no effect.",
		"Remove one of them, or change the rule that should be different."},
	{"E026", "invalid status",
		"The field count has the statuses of the responses that count: numbers from 100 to 599, such as 401, and classes, such as 5xx.",
		"Write one or several of them, as in status: [401, 403, 5xx]."},
}

var warningCodes = []Code{
	{"W000", "more warnings than shown",
		"Only the first thousand problems are reported.",
		"Fix these and validate again."},
	{"W001", "all clients exempt",
		"The exempt list has a network that contains all IPv4 or all IPv6 addresses. No rule applies to a client with such an address.",
		"List only the networks that you trust. To try rules without denying requests, write mode: shadow."},
	{"W002", "override for an exempt client",
		"No limit applies to an exempt client, so the override has no effect.",
		"Remove the override or the exemption."},
	{"W003", "blocked client is exempt",
		"Exempt takes precedence over block, so that an operator cannot lock out a health check. This entry has no effect.",
		"Remove the entry from one of the lists."},
	{"W004", "all clients blocked",
		"The block list has a network that contains all IPv4 or all IPv6 addresses. Every client with such an address is blocked, unless it is exempt.",
		"List only the networks to block."},
	{"W005", "long window lost on restart",
		"The window is longer than a day, so a restart within it is likely. If the store is memory, the restart resets the usage of all clients.",
		"Set --data, so that usage survives a restart, or use Redis as the store."},
	{"W006", "login rule fails open",
		"The name or path of the rule suggests that it protects against guessing of passwords, tokens or codes. With on_failure: open, an attacker who makes the store unavailable can guess without limit.",
		"Write on_failure: local to keep limiting with this instance's share of the limit, or closed to deny."},
	{"W007", "large log",
		"A sliding_log keeps the time of every charge, 8 bytes each, for every client.",
		"Choose sliding_window, which estimates from two counters, or sliding_buckets, which is exact to a fraction of the period."},
	{"W008", "less than one request per second for all clients",
		"The rule matches every request and counts all clients together, and all of its limits are below one request per second.",
		"If the limit is meant for each client, write key: ip or key: user. If it is meant for certain requests, add match."},
	{"W009", "limit that never denies",
		"Another limit of the rule is stricter, so this one never denies. For example, a client with at most 100 requests per minute never reaches 10000 per hour.",
		"Remove it, or check the numbers; one of the periods may be wrong."},
	{"W010", "key that a client can forge",
		"The header contains the address of a client, but a client can send any address in it. With a new address in each request, it counts as a new client each time.",
		"Write key: ip. weir takes the address from such headers only if they come from trusted_proxies."},
	{"W011", "key that a client can omit",
		"The rule does not apply to a request without the header, cookie or parameter. A client that invents a new value for each request counts as a new client each time. No rule has the key ip or global, which a client can neither omit nor invent.",
		"Add a rule with key ip or global, even a generous one."},
	{"W012", "redundant entry",
		"The entry, or a network that contains it, is already in the list.",
		"Remove it."},
	{"W013", "API key in plain text",
		"Rules are copied, kept in the history and returned by the API. Anyone who can read them can use the key.",
		"Write its hash: sha256: and the output of  printf 'weir:api_key:%s' \"$KEY\" | sha256sum | cut -c1-32"},
	{"W014", "all requests denied on failure",
		"The rule matches every request and fails closed. While the store is unavailable, every request is denied.",
		"Write on_failure: local, or match only the requests that must never run without a limit."},
	{"W015", "not formatted",
		"Formatting would have changed the meaning of the document, so weir left the document unchanged.",
		"Write each list item on the same line as its dash, as in \"- id: login\". Do not write tabs or comments inside a text of several lines."},
}
