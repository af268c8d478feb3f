package rule

// Claims are what a verified token says of the client that sent it. Requests may
// share them, so do not change them.
type Claims struct {
	User     string // "" if the token does not tell
	Tier     string
	Priority Priority

	// Attributes are those of Request.Attributes that come from the token.
	Attributes map[string]string
}

// TokenError reports a request that must be denied because it has no valid token. It contains
// nothing of the token.
type TokenError struct {
	Missing bool   // the request has no token
	Reason  string // a sentence for the client
}

func (e *TokenError) Error() string { return "rule: " + e.Reason }
