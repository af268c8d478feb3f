package jwt_test

import (
	"fmt"

	"github.com/weirhq/weir/middleware/jwt"
)

func ExampleNew() {
	tokens, err := jwt.New(jwt.Options{
		Issuers: []jwt.Issuer{{URL: "https://id.example.com", Audience: []string{"api"}}},
		Attributes: map[string]string{
			"user": "jwt.claims.sub",
			"org":  "jwt.claims.org",
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// go tokens.Run(ctx) fetches the keys of the issuer.
	client, err := tokens.Verify([]string{"Bearer sk-12345"})
	fmt.Println(client, err)
	// Output: <nil> <nil>
}
