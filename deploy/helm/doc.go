// Package helm tests the chart in weir/: it lints and renders it with Helm's own code, decodes
// every object strictly, and runs weir as the rendered pod would. It is a module of its own, so
// that users do not download Helm and Kubernetes.
package helm

// Go compiles again, in a test with a profile, what only the test imports, even if it was compiled for
// weir with the same flags: here, the standard library.
import (
	_ "helm.sh/helm/v3/pkg/engine"
	_ "helm.sh/helm/v3/pkg/lint"
)
