"""Alarm rules about grades and rewards in number: they disagree, say nothing any more, or have shifted."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce

from grading.models import Grade, Session
from grading.models.sessions import yours
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
from grading.monitoring.flag_rule import flag_rule
from grading.monitoring.pairs import SessionVerdict
from grading.monitoring.rule import Finding, alarm_rule
from grading.monitoring.sameness import (
    ALIKE,
    HAIR,
    LEAST_ARMS,
    LEAST_GRADES,
    SHARE,
    ZEROS,
    alike,
    levelled,
    stuck,
    zeros,
)
from grading.reward import calibrating
from grading.reward.decide import CurrentGrades
from grading.reward.trajectory import EvidenceView
from grading.vocabulary import Source

GAP = 0.4
# What a trajectory saw the whole log for: its work, or evidence that it failed.
COMPARED = (EvidenceView.FULL, EvidenceView.FAILED)


@flag_rule(
    id="A3",
    title="Judge and trajectory disagree",
    means=(
        f"Flags a session whose verdict is {GAP:.1f} or more away from what its trajectory predicts, provided the "
        "trajectory saw the whole log. The prediction uses the bandit’s calibration; until there is one, the "
        f"usual difference between the two (the median of at least {pairs.LEAST_PAIRS} pairs, of the category if "
        "possible, otherwise of all). Opens when, for one harness and category, that difference drifts from its "
        f"past level (a CUSUM tuned to under one false alarm per site and year; stays open for {pairs.HOLDS.days} "
        "days)."
    ),
    todo=(
        "Compare logs and verdicts for some of these sessions: did the rules miss what was done, or did the judge "
        "see what wasn’t?"
    ),
    settled="they agree now",
    every=dt.timedelta(hours=6),
    find=lambda now: find_disagreements(pairs.judged(now), now),
    summarize=lambda _flags: (),  # single sessions open no alarm
    finds_sessions=True,
    list_sessions=None,
)
def disagreement(session: Session, grades: CurrentGrades, _now: dt.datetime) -> str:
    """A parser that misses a new format, or a judge that was talked into something: the two drift apart."""
    judge, trajectory, human = (grades.get(each) for each in (Source.JUDGE, Source.TRAJECTORY, Source.HUMAN))
    if judge is None or judge.value is None or judge.stale or (human is not None and human.is_verdict):
        return ""
    if trajectory is None or trajectory.value is None or trajectory.view not in COMPARED:
        return ""
    rows = {row.pk: row for row in session.grades.all()}
    return compare(session, rows[judge.id], rows[trajectory.id])


def compare(session: Session, verdict: Grade, fallback: Grade) -> str:
    """What is implausible about a verdict beside a fallback's grade of the same session, in words; empty where nothing
    is, and where nobody can say yet what a verdict should be beside such a number.
    """
    judged, number = verdict.value or 0.0, fallback.value or 0.0
    read = calibrating.calibrate(session, fallback)
    if read is not None:
        expected, why = read.value, f"{read.value:.2f} on the judge's scale"
    else:
        usual = pairs.usual(session, verdict, fallback)
        if usual is None:
            return ""
        expected = number + usual.difference
        scope = "this category" if usual.here else "all categories"
        why = f"the judge is usually {_above(usual.difference)} it: the median of {usual.n} sessions of {scope}"
    if not is_wide(judged, expected):
        return ""
    return (
        f"the judge says {judged:.2f}; its {fallback.source}, which saw the whole log, {number:.2f} ({why}): one of "
        "them missed something"
    )


def is_wide(verdict: float, expected: float) -> bool:
    """Whether two numbers for one session are too far apart for both to be right."""
    return round(abs(verdict - expected), 6) >= GAP


def find_disagreements(rows: Sequence[SessionVerdict], now: dt.datetime) -> Iterable[Finding]:
    """The slices whose difference has moved, from all judged sessions in order of time."""
    compared = [each for each in rows if each.trajectory is not None]
    limit = threshold(pairs.a_year(len(compared), now))
    slices = pairs.by(compared, lambda each: (each.slice, each.judge, each.version))
    for (name, judge, version), some in sorted(slices.items()):
        moves = changes([row.verdict - (row.trajectory or 0.0) for row in some], limit)
        if moves and some[moves[-1].at].ended_at > now - pairs.HOLDS:
            last = moves[-1]
            yield Finding(
                about=f"{name} · {judge} · {version}"[:300],
                detail=f"{name}: since {some[last.since].ended_at:%-d %b} the judge is {_above(last.after)} the "
                f"trajectory on average ({last.n_after} sessions); {_above(last.before)} was usual ({last.n_before}). "
                "Either the rules read that harness's log differently now, or the judge grades differently.",
                sessions=tuple(row.key for row in some[last.since :]),
            )


def _above(difference: float) -> str:
    return f"{abs(difference):.2f} {'below' if difference < 0 else 'above'}"


WINDOW = dt.timedelta(days=7)
# Categories are compared with what they were before.
NOW, BEFORE = dt.timedelta(days=5), dt.timedelta(days=28)
# The others grade in few steps, and so repeat themselves where all is well: a journal that names one pull request is
# always worth the same.
SOURCES = (Source.JUDGE, Source.TRAJECTORY)
# Views in which a trajectory's number is not a constant.
MEASURED = (EvidenceView.FULL, EvidenceView.PART)
MACHINES = (Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL, Source.CONSUMPTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineReward:
    """What a machine gave to a session, by its key, of an arm of the category bandit, in [0, 1]."""

    key: int
    arm: str
    ended_at: dt.datetime
    value: float


@alarm_rule(
    id="A9",
    title="Rewards have collapsed",
    means=(
        f"Opens when, within seven days, the last {ALIKE} machine rewards across at least {LEAST_ARMS} categories "
        f"lie within {HAIR:.2f} of each other; when the last {ZEROS} or more, across several categories, are zero; "
        f"when a single number makes up {100 * SHARE:.0f} % or more of at least {LEAST_GRADES} grades from the "
        f"judge (before any cap) or the trajectory; or when categories that differed over the {BEFORE.days} days "
        f"before no longer do over the last {NOW.days}. Floors, abstentions and sessions that found nothing to do "
        "don’t count."
    ),
    todo="Open a few of these sessions: is the grader still reading what they did?",
    every=dt.timedelta(hours=1),
    finds_sessions=True,
)
def collapse(now: dt.datetime) -> Iterable[Finding]:
    """Where every session gets the same, a bandit learns nothing; and nothing else fails."""
    return find_collapse(_rewards(now), _grades(now), now)


def find_collapse(
    rewards: Sequence[MachineReward], grades: Mapping[str, Sequence[float]], now: dt.datetime
) -> Iterable[Finding]:
    """What has collapsed, of the rewards in order of time and the grades of the last seven days, by source."""
    latest = [each for each in rewards if each.ended_at > now - WINDOW]
    week = [(each.arm, each.value) for each in latest]
    run, span = zeros(week), alike(week)
    if run:
        arms = len({arm for arm, _value in week[-run:]})
        detail = f"The last {run} rewards, of {arms} categories, are zero."
        yield Finding(about="zeros", detail=detail, sessions=_keys(latest[-run:]))
    elif span is not None:
        arms = len({arm for arm, _value in week[-ALIKE:]})
        yield Finding(
            about="all alike",
            detail=f"The last {ALIKE} rewards, of {arms} categories, are all between {span[0]:.2f} and {span[1]:.2f}: "
            "they can’t tell one category from another.",
            sessions=_keys(latest[-ALIKE:]),
        )
    recent = [(each.arm, each.value) for each in rewards if each.ended_at > now - NOW]
    before = [(each.arm, each.value) for each in rewards if each.ended_at <= now - NOW]
    flat = levelled(before, recent)
    if flat is not None:
        yield Finding(
            about="levelled",
            detail=f"{flat.arms} categories differed by {flat.before:.2f} (standard deviation of their means); of that "
            f"at most {100 * max(flat.most, 0):.0f} % is left in the rewards of the last {NOW.days} days.",
            sessions=_keys(each for each in latest if each.ended_at > now - NOW),
        )
    for source, values in sorted(grades.items()):
        common = stuck(values)
        if common is not None:
            yield Finding(
                about=source,
                detail=f"{common.count} of {common.total} grades of the {source} in seven days are "
                f"{common.value:.2f}, exactly: {100 * common.share:.0f} %.",
            )


def _keys(rewards: Iterable[MachineReward]) -> tuple[int, ...]:
    return tuple(each.key for each in rewards)


def _rewards(now: dt.datetime) -> list[MachineReward]:
    """The machines' rewards of both windows, each with its category, in order of time: one query."""
    grade = Grade.objects.filter(pk=OuterRef("settlement__grade"))
    rows = (
        Session.objects.yours()
        .filter(ended_at__gt=now - NOW - BEFORE, ended_at__lte=now)
        .exclude(category=None)
        .annotate(
            arm=Coalesce("category__merged_into__name", "category__name"),
            seen=Subquery(grade.values("view")),
        )
        .filter(reward_source__in=MACHINES, reward_value__isnull=False)
        .order_by("ended_at", "pk")
    )
    names = ("pk", "arm", "ended_at", "reward_value", "seen")
    return [
        MachineReward(key=key, arm=arm, ended_at=ended_at, value=value)
        for key, arm, ended_at, value, view in rows.values_list(*names)
        if view != EvidenceView.LOOKED
    ]


def _grades(now: dt.datetime) -> dict[str, list[float]]:
    """The grades that hold of the window's sessions, by source: one query. A judge's later failure hides no verdict."""
    rows = Grade.objects.chain().filter(
        yours(), session__ended_at__gt=now - WINDOW, session__ended_at__lte=now, source__in=SOURCES
    )
    current = {
        (source, session): (value, view, mean)
        for source, session, value, view, mean in rows.order_by("pk").values_list(
            "source", "session", "value", "view", "mean"
        )
        if value is not None or source != Source.JUDGE
    }
    by_source: dict[str, list[float]] = defaultdict(list)
    for (source, _session), (value, view, mean) in current.items():
        if value is not None and (source == Source.JUDGE or view in MEASURED):
            # What holds a score down (harm, or work that came only so far) does so at one number.
            by_source[source].append(value if mean is None else mean)
    return by_source


ALL, JUDGE = "all sessions", "another judge"


@alarm_rule(
    id="A10",
    title="Verdicts have shifted",
    means=(
        "Opens when verdicts for one harness, model and category drift from their past level, or when verdicts "
        "overall do. It says whether the mix of work changed, the levels within it, or whether that can’t be told "
        f"apart. CUSUMs tuned to under one false alarm per site and year; stays open for {pairs.HOLDS.days} days."
    ),
    todo="Find out what changed that day: the model, the prompt, the tools, the judge or the kind of work.",
    every=dt.timedelta(hours=6),
    finds_sessions=True,
)
def drift(now: dt.datetime) -> Iterable[Finding]:
    """A mean may fall because the work got worse, or because there is more of the harder work."""
    return find_drift(pairs.judged(now), now)


def find_drift(rows: Sequence[SessionVerdict], now: dt.datetime) -> Iterable[Finding]:
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


def _latest(rows: Sequence[SessionVerdict], changes: Sequence[ChangePoint], now: dt.datetime) -> ChangePoint | None:
    """The last change, as long as it is told."""
    return changes[-1] if changes and rows[changes[-1].at].ended_at > now - pairs.HOLDS else None


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
