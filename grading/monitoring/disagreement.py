"""Judge and trajectory disagree: of one session, or more and more of a harness and category (A3)."""

import datetime as dt
from collections.abc import Iterable, Sequence

from grading.models import Grade, Session
from grading.monitoring import pairs
from grading.monitoring.change_points import changes, threshold
from grading.monitoring.flag_rule import Flagged, FlagRule
from grading.monitoring.pairs import SessionVerdict
from grading.monitoring.rule import Finding
from grading.reward import calibrating
from grading.reward.decide import CurrentGrades
from grading.reward.trajectory import EvidenceView
from grading.vocabulary import Source

GAP = 0.4
# What a trajectory saw the whole log for: its work, or evidence that it failed.
COMPARED = (EvidenceView.FULL, EvidenceView.FAILED)


class Disagreement(FlagRule):
    """A parser that misses a new format, or a judge that was talked into something: the two drift apart."""

    id = "A3"
    title = "Judge and trajectory disagree"
    means = (
        f"Flags a session whose verdict is {GAP:.1f} or more away from what its trajectory predicts, provided the "
        "trajectory saw the whole log. The prediction uses the bandit’s calibration; until there is one, the "
        f"usual difference between the two (the median of at least {pairs.LEAST_PAIRS} pairs, of the category if "
        "possible, otherwise of all). Opens when, for one harness and category, that difference drifts from its "
        f"past level (a CUSUM tuned to under one false alarm per site and year; stays open for {pairs.HOLDS.days} "
        "days)."
    )
    todo = (
        "Compare logs and verdicts for some of these sessions: did the rules miss what was done, or did the judge "
        "see what wasn’t?"
    )
    settled = "they agree now"
    every = dt.timedelta(hours=6)

    def finding(self, session: Session, holds: CurrentGrades, now: dt.datetime) -> str:  # noqa: ARG002 - every rule is asked alike
        judge, trajectory, human = (holds.get(each) for each in (Source.JUDGE, Source.TRAJECTORY, Source.HUMAN))
        if judge is None or judge.value is None or judge.stale or (human is not None and human.is_verdict):
            return ""
        if trajectory is None or trajectory.value is None or trajectory.view not in COMPARED:
            return ""
        rows = {row.pk: row for row in session.grades.all()}
        return compare(session, rows[judge.id], rows[trajectory.id])

    def told(self, flags: Sequence[Flagged]) -> Iterable[Finding]:  # noqa: ARG002 - single sessions are no alarm here
        return ()

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        yield from found(pairs.judged(now), now)

    def sessions(self, about: str, now: dt.datetime) -> Sequence[int]:
        return next((each.sessions for each in self.look(now) if each.about == about), ())


def compare(session: Session, verdict: Grade, fallback: Grade) -> str:
    """What is implausible about a verdict beside a fallback's grade of the same session, in words; empty where nothing
    is, and where nobody can say yet what a verdict should be beside such a number.
    """
    said, number = verdict.value or 0.0, fallback.value or 0.0
    read = calibrating.calibrate(session, fallback)
    if read is not None:
        expected, why = read.value, f"{read.value:.2f} on the judge's scale"
    else:
        usual = pairs.usual(session, verdict, fallback)
        if usual is None:
            return ""
        expected = number + usual.difference
        of = "this category" if usual.here else "all categories"
        why = f"the judge is usually {_above(usual.difference)} it: the median of {usual.n} sessions of {of}"
    if not is_wide(said, expected):
        return ""
    return (
        f"the judge says {said:.2f}; its {fallback.source}, which saw the whole log, {number:.2f} ({why}): one of them "
        "missed something"
    )


def is_wide(verdict: float, expected: float) -> bool:
    """Whether two numbers for one session are too far apart for both to be right."""
    return round(abs(verdict - expected), 6) >= GAP


def found(rows: Sequence[SessionVerdict], now: dt.datetime) -> Iterable[Finding]:
    """The slices whose difference has moved, from all judged sessions in order of time."""
    compared = [each for each in rows if each.trajectory is not None]
    limit = threshold(pairs.a_year(len(compared), now))
    slices = pairs.by(compared, lambda each: (each.slice, each.judge, each.version))
    for (name, judge, version), some in sorted(slices.items()):
        moved = changes([row.verdict - (row.trajectory or 0.0) for row in some], limit)
        if moved and some[moved[-1].at].ended_at > now - pairs.HOLDS:
            last = moved[-1]
            yield Finding(
                about=f"{name} · {judge} · {version}"[:300],
                detail=f"{name}: since {some[last.since].ended_at:%-d %b} the judge is {_above(last.after)} the "
                f"trajectory on average ({last.n_after} sessions); {_above(last.before)} was usual ({last.n_before}). "
                "Either the rules read that harness's log differently now, or the judge grades differently.",
                sessions=tuple(row.key for row in some[last.since :]),
            )


def _above(difference: float) -> str:
    return f"{abs(difference):.2f} {'below' if difference < 0 else 'above'}"
