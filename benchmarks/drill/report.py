"""The table of faults and outcomes, and the figures in its last line."""

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field

HEADINGS = ("fault", "sessions", "attempts", "graded", "lost", "double", "unrecorded", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One fault's outcome: counts, and a remark."""

    fault: str
    sessions: int
    attempts: int
    graded: int
    lost: int
    double: int
    unrecorded: int
    note: str = ""


@dataclass(slots=True, kw_only=True)
class Report:
    """All rows; `broken` are the promises that were not kept, in words."""

    rows: list[Row] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    figures: dict[str, float | None] = field(default_factory=dict)

    def total(self, column: str) -> int:
        return sum(getattr(row, column) for row in self.rows)

    def all_broken(self) -> list[str]:
        """What was promised and not kept; empty after a drill that went well."""
        counts = {name: self.total(name) for name in ("lost", "double", "unrecorded")}
        return [f"{count} {name}" for name, count in counts.items() if count] + self.broken

    def text(self) -> str:
        """The table, what is broken, and as the last line the figures as JSON."""
        names = ("sessions", "lost", "double", "unrecorded")
        last = json.dumps({**{name: self.total(name) for name in names}, **self.figures})
        broken = [f"BROKEN: {said}" for said in self.all_broken()]
        return "\n".join(["", *table(self.rows), "", *broken, last])


def table(rows: Sequence[Row]) -> list[str]:
    """Lines of columns: text to the left, numbers to the right."""
    cells = [HEADINGS, *(tuple(map(str, astuple(row))) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            text.ljust(width) if place in (0, len(widths) - 1) else text.rjust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]
