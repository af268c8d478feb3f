package chart

// colours are those of a light page, and of a dark one for who prefers that.
const colours = `:root{--page:#fff;--ink:#1c2733;--soft:#5b6b7b;--rule:#d5dce3;--plain:#9aa9b8;--good:#2f7ed8;--faint:#b7d3f3;--bad:#d9483b;--accent:#b7791f}
@media (prefers-color-scheme:dark){:root{--page:#12181f;--ink:#e6edf3;--soft:#9aa7b4;--rule:#2f3a45;--plain:#6b7a89;--good:#4c9bf0;--faint:#274a70;--bad:#f0685a;--accent:#e0b050}}
`

// marks is how what is drawn is painted.
const marks = `text{font:12px ui-sans-serif,system-ui,sans-serif;fill:var(--ink)}
.title{font-size:15px;font-weight:600}.about,.note,.tick{fill:var(--soft)}.note,.tick{font-size:11px}.name{font-family:ui-monospace,monospace}
.page{fill:var(--page)}.base{stroke:var(--rule);fill:none}.guide{stroke:var(--rule);stroke-dasharray:2 3;fill:none}
.plain{fill:var(--plain)}.good{fill:var(--good)}.faint{fill:var(--faint)}.bad{fill:var(--bad)}
.accent{stroke:var(--accent);stroke-width:1.5;fill:none}.cross{stroke:var(--bad);stroke-width:1.3;fill:none}
`

const sheetStyle = colours + marks

const pageStyle = colours + marks + `body{margin:0 auto;max-width:1000px;padding:24px 16px;background:var(--page);color:var(--ink);font:15px/1.5 ui-sans-serif,system-ui,sans-serif}
h1{font-size:20px}h2{font-size:16px;margin-top:28px}svg{max-width:100%;height:auto}.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:13px}th,td{padding:4px 12px 4px 0;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
th:first-child,td:first-child,td.word,th.word{text-align:left}th{color:var(--soft);font-weight:500}p{max-width:72ch}
`
