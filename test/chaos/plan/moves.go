package plan

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Company is who belongs to whom: the clients that a rule with levels counts for each API key, from the top down.
type Company map[string]string

// MoveKeys is how many API keys move.
const MoveKeys = 6

// MoveKey is the nth of them.
func MoveKey(n int) string { return fmt.Sprint("mover-", n) }

// MovePath is asked for by clients that move.
const MovePath = "/company"

// WithLevels adds a rule that counts the clients of a company to the YAML of a document.
func WithLevels(document string) string {
	const limit = "{limit: 1000000/1h}"
	return "levels: [org, team, user]\n" + document + fmt.Sprintf(
		"  - {id: company, match: {path: %s}, key: levels, levels: {org: %s, team: %s, user: %s}, on_failure: closed}\n", MovePath, limit, limit, limit)
}

// DrawCompany draws a company and the import of clients that says so. Some keys are deleted, some users have no team, and
// teams are in either organization.
func DrawCompany(r *rand.Rand) (Company, string) {
	lines, teams := Company{}, map[string]string{}
	var file strings.Builder
	write := func(client, parent string) {
		if fmt.Fprintf(&file, `{"client": %q`, client); parent != "" {
			fmt.Fprintf(&file, `, "parent": %q`, parent)
		}
		file.WriteString("}\n")
	}
	orgs := []string{"org:a", "org:b"}
	for _, org := range orgs {
		write(org, "")
	}
	for n := range 3 {
		team, org := fmt.Sprint("team:", n), orgs[r.IntN(2)]
		teams[team] = org + " " + team
		write(team, org)
	}
	for n := range MoveKeys {
		user, team := fmt.Sprint("user:m", n), fmt.Sprint("team:", r.IntN(4)) // the last of which does not exist
		line := user
		if teams[team] == "" {
			team = ""
		} else {
			line = teams[team] + " " + user
		}
		write(user, team)
		if r.IntN(8) > 0 {
			lines[MoveKey(n)] = line
			write("api_key:"+MoveKey(n), user)
		} else {
			fmt.Fprintf(&file, "{\"client\": %q, \"deleted\": true}\n", "api_key:"+MoveKey(n))
		}
	}
	return lines, file.String()
}
