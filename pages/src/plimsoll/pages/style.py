"""The style of the report's page: light and dark by the reader's setting, and eight looks for the lines of charts.

Every look has its own dash besides its colour, so that the page also reads without colours.
"""

from __future__ import annotations

_DASHES = ("none", "none", "7 3", "2 3", "9 3 2 3", "none", "7 3", "2 3")

_BASE = """
:root { color-scheme: light dark; --ink: #1c2430; --dim: #5b6675; --paper: #fbfbf9; --card: #ffffff;
  --rule: #d9dde3; --good: #11633b; --bad: #a3161b;
  --c0: #52606d; --c1: #0b5fa5; --c2: #b3540a; --c3: #1b7a4b; --c4: #8a2f8f; --c5: #0b5fa5; --c6: #b3540a;
  --c7: #52606d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaee; --dim: #a0abb8; --paper: #14181d; --card: #1b2128;
  --rule: #343d48; --good: #6fd39d; --bad: #ff8d8a;
  --c0: #b4bfca; --c1: #6bb6f5; --c2: #f0a35e; --c3: #68d09a; --c4: #d892dd; --c5: #6bb6f5; --c6: #f0a35e;
  --c7: #b4bfca; } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 1360px; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem; margin: 0 0 .25rem }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem }
h3 { font-size: 1rem; margin: 0 }
p, li { max-width: 75ch }
.dim, figcaption { color: var(--dim) }
figcaption { font-size: .875rem }
.verdict { border-left: .5rem solid; background: var(--card); padding: .75rem 1rem; margin: 1rem 0 }
.verdict strong { font-size: 1.25rem }
.passed { border-color: var(--good) }
.passed strong { color: var(--good) }
.failed { border-color: var(--bad) }
.failed strong { color: var(--bad) }
.figures { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: .75rem 0 0 }
.figures div { display: flex; flex-direction: column }
dt { color: var(--dim); font-size: .875rem }
dd { margin: 0; font-size: 1.35rem; font-variant-numeric: tabular-nums }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 1rem }
figure { margin: 0; background: var(--card); border: 1px solid var(--rule); border-radius: 6px; padding: .75rem 1rem }
svg { width: 100%; height: auto; display: block }
.grid { stroke: var(--rule); stroke-width: 1 }
.tick { fill: var(--dim); font-size: 11px }
.name { font-size: 12px; font-weight: 600 }
path { fill: none; stroke-width: 1.8; stroke-linejoin: round }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; background: var(--card) }
th, td { border: 1px solid var(--rule); padding: .3rem .6rem; text-align: right }
th:first-child, td:first-child { text-align: left }
"""

STYLE = _BASE + "".join(
    f"path.s{i} {{ stroke: var(--c{i}); stroke-dasharray: {dash} }} text.s{i} {{ fill: var(--c{i}) }}\n"
    for i, dash in enumerate(_DASHES)
)
