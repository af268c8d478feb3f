package scenario

import "embed"

// Cases are the scenarios that every store must pass, one file a case.
//
//go:embed cases/*.txt
var Cases embed.FS
