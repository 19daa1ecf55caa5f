"""What shows that an alarm rule is needed: a figure of this benchmark, a fault of the drill, or an incident."""

import re
from collections.abc import Mapping
from pathlib import Path

from benchmarks.drill.phases import PHASES

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (A\d+) \|.*`(tests/[^`]*): (\w+)` \|$", re.MULTILINE)
# Faults of the drill that a rule notices besides the one that the drill waits for.
ALSO_NOTICED = {"A43": "disk full and back", "A48": "truncated blob"}


def find_evidence(measured: Mapping[str, object]) -> dict[str, str]:
    """What shows that each rule of docs/laws.md is needed, as text; empty if nothing does.

    `measured` has the rules with figures of their own. An incident counts if it names the rule, or the rule's test.
    """
    incidents = (ROOT / "docs" / "incidents.md").read_text(encoding="utf-8")
    drilled = ALSO_NOTICED | {phase.rule: phase.name for phase in PHASES if phase.rule}
    attacks = sorted((ROOT / "tests" / "redteam").glob("*.py"))
    evidence = {}
    for rule, file, test in ROW.findall((ROOT / "docs" / "laws.md").read_text(encoding="utf-8")):
        sections = [text for text in incidents.split("\n### ")[1:] if re.search(rf"\b{rule}\b|\b{test}\b", text)]
        if rule in measured:
            evidence[rule] = "figures above"
        elif rule in drilled:
            evidence[rule] = f"drill: {drilled[rule]}"
        elif attack := next(
            (path.stem for path in attacks if re.search(rf"\b{rule}\b", path.read_text(encoding="utf-8"))), ""
        ):
            evidence[rule] = f"attack: {attack}"
        elif sections or "/incidents/" in file:
            evidence[rule] = f"incident {sections[0].splitlines()[0] if sections else test}"
        else:
            evidence[rule] = ""
    return evidence
