// Package helm tests the chart in weir/: it lints and renders it with Helm's own code, decodes
// every object strictly, and runs weir as the rendered pod would. It is a module of its own, so
// that users do not download Helm and Kubernetes.
package helm
