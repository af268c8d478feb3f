// The names of styles are in every element of the page, so they are short.
export default { compilerOptions: { runes: true, cssHash: ({ hash, css }) => 'w' + hash(css).slice(0, 4) } }
