// Package sdk tests the clients in sdk/ against the built binary, and generates their types
// from the OpenAPI file.
package sdk
