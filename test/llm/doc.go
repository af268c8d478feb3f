// Package llm tests the gateway with the clients of language models and of tools (MCP) that people use, against
// upstreams that speak the vendors' protocols. It is a module of its own, so that only
// its tests download those clients.
package llm
