// Package chart draws lanes of bars over one time axis, as SVG and as pages of
// HTML that need nothing from elsewhere.
//
// It knows nothing of rate limits. The same picture gives the same bytes, so that
// pictures can be kept beside the text that they belong to and compared.
package chart
