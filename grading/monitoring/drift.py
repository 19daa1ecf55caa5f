"""The level of judged sessions changed: in a harness, model and category, or over all (A10)."""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import replace

from grading.monitoring import pairs
from grading.monitoring.change_points import (
    BLOCK,
    SERIES,
    Cause,
    ChangePoint,
    Split,
    blocks,
    changes,
    commonest,
    split,
    threshold,
)
from grading.monitoring.pairs import SessionVerdict
from grading.monitoring.rule import Finding, RuleOfSessions

ALL, JUDGE = "all sessions", "another judge"


class Drift(RuleOfSessions):
    """A mean may fall because the work got worse, or because there is more of the harder work."""

    id = "A10"
    title = "Verdicts have shifted"
    means = (
        "Opens when verdicts for one harness, model and category drift from their past level, or when verdicts "
        "overall do. It says whether the mix of work changed, the levels within it, or whether that can’t be told "
        f"apart. CUSUMs tuned to under one false alarm per site and year; stays open for {pairs.HOLDS.days} days."
    )
    todo = "Find out what changed that day: the model, the prompt, the tools, the judge or the kind of work."
    every = dt.timedelta(hours=6)

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        return found(pairs.judged(now), now)


def found(rows: Sequence[SessionVerdict], now: dt.datetime) -> Iterable[Finding]:
    """What has moved in the judged sessions, in order of time. Cells that moved with a change of the judge are one."""
    limit = threshold(SERIES * pairs.a_year(len(rows), now))
    cells = {
        name: (cell, change)
        for name, cell in sorted(pairs.by(rows, lambda each: each.cell).items())
        if (change := _latest(cell, changes([row.verdict for row in cell], limit), now)) is not None
    }
    judges = {name: _judges(*each) for name, each in cells.items()}
    for name, each in cells.items():
        if not judges[name]:
            yield Finding(about=name[:300], detail=f"Drift in {name}: {_moved(*each)}", sessions=_since(*each))
    with_judge = [name for name in cells if judges[name]]
    if with_judge:
        name = max(with_judge, key=lambda each: len(cells[each][0]))
        more = f" {len(with_judge) - 1} more moved with it." if len(with_judge) > 1 else ""
        detail = f"{name}: {_moved(*cells[name])}{judges[name]}{more}"
        yield Finding(about=JUDGE, detail=detail, sessions=_since(*cells[name]))
    means = blocks([row.verdict for row in rows])
    limit = threshold(SERIES * pairs.a_year(len(means), now))
    change = _latest(rows, [_of_sessions(each) for each in changes(means, limit)], now)
    if change is not None:
        why = split(_parts(rows[: change.since]), _parts(rows[change.since :]))
        if not (cells and why.cause is Cause.LEVELS):
            judge = _judges(rows, change)
            detail = f"All judged sessions: {_moved(rows, change)} {_because(why)}{judge}"
            yield Finding(about=ALL, detail=detail, sessions=_since(rows, change))


def _since(rows: Sequence[SessionVerdict], change: ChangePoint) -> tuple[int, ...]:
    return tuple(row.key for row in rows[change.since :])


def _of_sessions(change: ChangePoint) -> ChangePoint:
    """A change in a series of blocks, counted in sessions."""
    return replace(
        change,
        since=change.since * BLOCK,
        at=change.at * BLOCK + BLOCK - 1,
        n_before=change.n_before * BLOCK,
        n_after=change.n_after * BLOCK,
    )


def _latest(rows: Sequence[SessionVerdict], found: Sequence[ChangePoint], now: dt.datetime) -> ChangePoint | None:
    """The last change, as long as it is told."""
    return found[-1] if found and rows[found[-1].at].ended_at > now - pairs.HOLDS else None


def _moved(rows: Sequence[SessionVerdict], change: ChangePoint) -> str:
    return (
        f"{change.after:.2f} on average since {rows[change.since].ended_at:%-d %b} ({change.n_after} sessions), where "
        f"{change.before:.2f} was usual ({change.n_before})."
    )


def _judges(rows: Sequence[SessionVerdict], change: ChangePoint) -> str:
    """That another judge gave most verdicts since than before, in words; empty where it is the same."""
    before = rows[change.since - change.n_before : change.since]
    old, new = (commonest(row.judge for row in some) for some in (before, rows[change.since :]))
    return "" if old == new else f" The judge changed too ({old}; now {new}): it may be the judge, not the work."


def _because(why: Split) -> str:
    shares = f"levels {why.levels:+.2f}, mix {why.mix:+.2f}"
    if why.cause is Cause.MIX:
        return f"The mix of work shifted; no part of it got better or worse ({shares})."
    if why.cause is Cause.LEVELS:
        return f"The shift is spread over harnesses, models and categories ({shares})."
    return (
        f"Whether the work or its mix changed can’t be told: only {100 * why.evaluable:.0f} % of the sessions have a "
        "harness, model and category with enough sessions both before and since."
    )


def _parts(rows: Iterable[SessionVerdict]) -> list[tuple[str, float]]:
    return [(row.cell, row.verdict) for row in rows]
