"""Makes `docs/incidents.md` from the docstrings of the tests: `python docs/incidents.py`.

An incident is described once, by the docstring of one test: `I34, the judge read a shared log: impossible. How.` Other
tests belong to it by their name (`test_i34_…`) or by a docstring that begins with its code.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "incidents.md"
WIDTH = 120
SECTIONS = {
    1: "Evidence and parsing",
    34: "The judge",
    46: "Chain and fallback",
    55: "Store and durability",
    69: "The bandit's arithmetic",
    83: "Selection, exploration and supply",
    109: "Attribution: lessons, models, harnesses",
    123: "Monitoring",
    141: "Cost",
    146: "Review by people",
}
NAMED = re.compile(r"(?<=_)i(\d{2,3})(?=_)")
CODES = re.compile(r"I\d{2,3}(?:, I\d{2,3})*\b")
DESCRIBED = re.compile(r"(?P<codes>I\d{2,3}(?:, I\d{2,3})*), (?!I\d)(?P<title>[^:]+): (?P<shown>.+)")
HEAD = """\
# Incidents

What went wrong in agents that learned from grades, and what stops it here. The codes are those of a published series
of incidents of one autonomous agent; what concerns this project is replayed by tests against the real thing:
intake through its own function, the SDK over a socket to the simulated judge, rows in the database. A fault is
**impossible** by construction, raises an **alarm** (its code is in [laws.md](laws.md)) or a flag within so many
sessions, is **told** on the page it concerns or refused before it happens, or is **repaired** to the last bit.

This page is made by `python docs/incidents.py` from the docstrings of the tests; change those.

## The two founding stories

**Seed 000, what you read.** Sessions that read news were graded by their commits, so each was worth .1 whatever it
found, and the bandit stopped reading. The answer was a second grade from what such a session leaves behind: ideas .4,
tasks .2, posts .2, notes .1, showing up .1, each with diminishing returns, joined to the other by `max`; and feedback:
a category of reading whose grades of 14 days average .5 or more is chosen more often, one below .3 less often. Its
numbers are replayed in `tests/stories/test_seed_000.py`.

**Seed 001, the signal that lied.** Two sessions with real pull requests were graded .1. Three faults met: all sessions
wrote their log to one shared path, so that the judge was given another's; the judge's quota was gone, and its failure
became a bare "no value"; and the trajectory of a worktree was a stub without calls. The fallback's floor was learned
as if it were a grade, where what their journals said is worth .32, and monitoring counted that everything had been
graded. It is replayed end to end in
`tests/stories/test_seed_001.py`, and can be lived through: [31 March](march31.md).
"""

TAIL = """\
## Not replayed

| incident | what it was | why not |
|---|---|---|
| I39 | the judge prefers brevity | nothing compares the trend of verdicts with that of what was left behind |
| I77 | learning that nobody samples | reads of a posterior are not recorded |
| I80 | one penalty for any loop | there is no penalty for loops |
| I100, I101 | endless work of little worth | nothing but people's grades says what work is worth |
| I103, I105 | recommendations and dispatches that nobody takes up | an agent's own business |
| I117 | triggers of lessons too broad, or ignored | the caller's; the page says how often a lesson matches |
"""


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(described())} incidents or groups of them")


def page() -> str:
    """The whole page. ValueError where an incident is described twice, or tests name one that none describes."""
    entries, tests = described(), by_code()
    unknown = sorted(tests.keys() - {code for codes in entries for code in codes})
    if unknown:
        raise ValueError(f"no docstring describes {', '.join(unknown)}: let one begin with “{unknown[0]}, what: how”")
    lines, starts = [HEAD], list(SECTIONS)
    for codes, (title, shown) in sorted(entries.items(), key=lambda entry: number(entry[0][0])):
        while starts and number(codes[0]) >= starts[0]:
            lines.append(f"## {SECTIONS[starts.pop(0)]}\n")
        how = textwrap.fill(shown[0].upper() + shown[1:], WIDTH, break_long_words=False, break_on_hyphens=False)
        lines.append(f"### {', '.join(codes)}: {title}\n\n{how}\n")
        held = dict.fromkeys(test for code in codes for test in tests[code])
        lines.append("\n".join(f"- `{test}`" for test in held) + "\n")
    return "\n".join([*lines, TAIL])


def described() -> dict[tuple[str, ...], tuple[str, str]]:
    """Title and what is shown, by the codes that one docstring describes."""
    found: dict[tuple[str, ...], tuple[str, str]] = {}
    for where, _name, text in functions():
        match = DESCRIBED.fullmatch(first_paragraph(text))
        if match:
            codes = tuple(match["codes"].split(", "))
            if {code for group in found for code in group} & set(codes):
                raise ValueError(f"{where} describes {match['codes']}, which another test describes too")
            found[codes] = match["title"], match["shown"]
    return found


def by_code() -> dict[str, list[str]]:
    """The tests of each incident, as `file: name`."""
    tests: dict[str, list[str]] = {}
    for where, name, text in functions():
        match = CODES.match(text)
        codes = [f"I{found}" for found in NAMED.findall(name)] + (match[0].split(", ") if match else [])
        for code in dict.fromkeys(codes):
            tests.setdefault(code, []).append(f"{where}: {name}")
    return tests


def functions() -> Iterator[tuple[str, str, str]]:
    """File, name and docstring of each test."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield path.relative_to(ROOT).as_posix(), node.name, ast.get_docstring(node) or ""


def first_paragraph(text: str) -> str:
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())


def number(code: str) -> int:
    return int(code[1:])


if __name__ == "__main__":
    main()
