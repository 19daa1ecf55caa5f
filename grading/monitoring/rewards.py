"""Alarm rules about many grades and rewards: they disagree, don't differ any more, or have shifted."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mode

from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from grading.models import Grade, Session
from grading.models.sessions import yours
from grading.monitoring import pairs
from grading.monitoring.change_points import (
    BLOCK,
    SERIES,
    Cause,
    ChangePoint,
    Split,
    block_means,
    find_changes,
    split_change,
    threshold,
)
from grading.monitoring.flag_rule import flag_rule
from grading.monitoring.pairs import SessionVerdict
from grading.monitoring.rule import Finding, alarm_rule
from grading.monitoring.sameness import (
    ALIKE,
    LEAST_ARMS,
    LEAST_GRADES,
    MAX_SPAN,
    MIN_SHARE,
    ZEROS,
    count_final_zeros,
    find_levelled,
    find_repeated_number,
    find_span_if_alike,
)
from grading.reward import calibrating
from grading.reward.decide import CurrentGrades
from grading.reward.trajectory import EvidenceView
from grading.vocabulary import Source

GAP = 0.4
# The views for which the trajectory saw the whole log: of the work, or of evidence that it failed.
COMPARED = (EvidenceView.FULL, EvidenceView.FAILED)


@flag_rule(
    id="A3",
    title="Judge and trajectory disagree",
    quotes_verdict=True,
    means=(
        f"Flags a session whose verdict differs by {GAP:.1f} or more from the prediction of its trajectory, if the "
        "trajectory saw the whole log. The prediction uses the bandit’s calibration. Until there is a calibration, "
        f"it uses the usual difference between the two (the median of at least {pairs.LEAST_PAIRS} pairs, of the "
        "category if possible, otherwise of all). An alarm opens when this difference drifts from its past level "
        "for one harness and category (a CUSUM tuned to less than one false alarm per site and year). It stays open "
        f"for {pairs.HOLDS.days} days."
    ),
    todo=(
        "Compare logs and verdicts of some of these sessions. Did the trajectory miss work that was done, or did "
        "the judge credit work that wasn’t?"
    ),
    settled="they agree now",
    every=dt.timedelta(hours=6),
    find=lambda now: find_disagreements(pairs.load_verdicts(now), now),
    summarize=lambda _flags: (),  # single sessions open no alarm
    list_sessions=None,
)
def disagreement(session: Session, grades: CurrentGrades, _now: dt.datetime) -> str:
    """How judge and trajectory disagree about the session, as text; empty if they don't, or if too little is known.

    The trajectory's parser may miss a new format, or a log may persuade the judge.
    """
    judge, trajectory, human = (grades.get(source) for source in (Source.JUDGE, Source.TRAJECTORY, Source.HUMAN))
    has_human_verdict = human is not None and human.is_verdict
    if judge is None or judge.value is None or judge.stale or has_human_verdict:
        return ""
    if trajectory is None or trajectory.value is None or trajectory.view not in COMPARED:
        return ""
    rows = {row.pk: row for row in session.grades.all()}
    verdict, fallback = rows[judge.id], rows[trajectory.id]
    calibrated = calibrating.calibrate(session, fallback)
    if calibrated is not None:
        expected, why = calibrated.value, f"{calibrated.value:.2f} on the judge's scale"
    elif (usual := pairs.usual_difference(session, verdict, fallback)) is not None:
        expected = trajectory.value + usual.difference
        scope = "this category" if usual.in_category else "all categories"
        median = f"the median of {usual.n} sessions of {scope}"
        why = f"the judge’s grades are usually {_above(usual.difference)} it, by {median}"
    else:  # too little is known to expect a verdict
        return ""
    if not are_far_apart(judge.value, expected):
        return ""
    return (
        f"the judge says {judge.value:.2f}, but the {fallback.source}, which saw the whole log, says "
        f"{trajectory.value:.2f} ({why}). One of them missed something"
    )


def are_far_apart(verdict: float, expected: float) -> bool:
    """Whether a verdict and the expected verdict are GAP or more apart, so that they can't both be right."""
    return round(abs(verdict - expected), 6) >= GAP


def find_disagreements(rows: Sequence[SessionVerdict], now: dt.datetime) -> Iterable[Finding]:
    """A finding for each harness and category where verdict minus trajectory grade has changed recently.

    `rows` are all judged sessions in order of time.
    """
    compared = [row for row in rows if row.trajectory is not None]
    limit = threshold(pairs.yearly_rate(len(compared), now))
    slices = pairs.group_by(compared, lambda row: (row.slice, row.judge, row.version))
    for (name, judge, version), slice_rows in sorted(slices.items()):
        change = _recent_change(slice_rows, [row.verdict - (row.trajectory or 0.0) for row in slice_rows], limit, now)
        if change is not None:
            yield Finding(
                about=f"{name} · {judge} · {version}"[:300],
                detail=f"{name}: since {_day_of(slice_rows[change.since])}, the judge’s grades have "
                f"been {_above(change.after)} the trajectory’s on average ({change.n_after} sessions). Before, they "
                f"were {_above(change.before)} ({change.n_before}). Either the trajectory now reads this harness’s log "
                "differently, or the judge grades differently.",
                sessions=_sessions_since(slice_rows, change),
            )


def _day_of(row: SessionVerdict) -> str:
    """The day on which the session ended, in the site's zone."""
    return f"{timezone.localtime(row.ended_at):%-d %b}"


def _above(difference: float) -> str:
    """A difference in words, such as "0.12 above" or "0.12 below"."""
    return f"{abs(difference):.2f} {'below' if difference < 0 else 'above'}"


WINDOW = dt.timedelta(days=7)
# The lengths of the two windows in which categories are compared: the days up to now, and the days before those.
RECENT_WINDOW, EARLIER_WINDOW = dt.timedelta(days=5), dt.timedelta(days=28)
# The sources whose grades are checked for a repeated number. Others grade in few steps, so they repeat themselves even
# on a healthy site: each journal that names one pull request gets the same grade.
CONTINUOUS_SOURCES = (Source.JUDGE, Source.TRAJECTORY)
# Views for which a trajectory's grade is no constant.
MEASURED = (EvidenceView.FULL, EvidenceView.PART)
MACHINES = (Source.JUDGE, Source.TRAJECTORY, Source.JOURNAL, Source.CONSUMPTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineReward:
    """A machine's reward in [0, 1] for the session with this key, of an arm of the category bandit."""

    key: int
    arm: str
    ended_at: dt.datetime
    value: float


@alarm_rule(
    id="A9",
    title="Rewards have collapsed",
    means=(
        f"Opens in any of four cases within seven days: the last {ALIKE} machine-graded rewards across at least "
        f"{LEAST_ARMS} categories are within {MAX_SPAN:.2f} of each other; the last {ZEROS} or more, across several "
        f"categories, are zero; one number makes up {100 * MIN_SHARE:.0f} % or more of at least {LEAST_GRADES} grades "
        "from the judge (before any cap) or the trajectory; or categories that differed over the "
        f"{EARLIER_WINDOW.days} days before don’t differ over the last {RECENT_WINDOW.days}. Floors, abstentions and "
        "sessions that found nothing to do don’t count."
    ),
    todo="Open a few of these sessions and check whether the grader still reads what they did.",
    every=dt.timedelta(hours=1),
)
def collapse(now: dt.datetime) -> Iterable[Finding]:
    """If every session gets the same reward, the bandits learn nothing, and nothing else fails."""
    return find_collapse(_machine_rewards(now), _week_of_grades(now), now)


def find_collapse(
    rewards: Sequence[MachineReward], grades: Mapping[str, Sequence[float]], now: dt.datetime
) -> Iterable[Finding]:
    """The signs that rewards have collapsed: equal rewards, arms that stopped differing, one grade given too often.

    `rewards` are in order of time. `grades` are the last seven days' grades by source.
    """
    week = [reward for reward in rewards if reward.ended_at > now - WINDOW]
    zeros = count_final_zeros([(reward.arm, reward.value) for reward in week])
    span = find_span_if_alike([(reward.arm, reward.value) for reward in week])
    if zeros:
        arms = len({reward.arm for reward in week[-zeros:]})
        detail = f"The last {zeros} rewards, in {arms} categories, are all zero."
        yield Finding(about="zeros", detail=detail, sessions=_keys(week[-zeros:]))
    elif span is not None:
        lowest, highest = span
        arms = len({reward.arm for reward in week[-ALIKE:]})
        yield Finding(
            about="all alike",
            detail=f"The last {ALIKE} rewards, in {arms} categories, are all between {lowest:.2f} and {highest:.2f}, "
            "so they can’t tell categories apart.",
            sessions=_keys(week[-ALIKE:]),
        )
    recent = [reward for reward in rewards if reward.ended_at > now - RECENT_WINDOW]
    earlier = [reward for reward in rewards if reward.ended_at <= now - RECENT_WINDOW]
    levelled = find_levelled(
        [(reward.arm, reward.value) for reward in earlier], [(reward.arm, reward.value) for reward in recent]
    )
    if levelled is not None:
        yield Finding(
            about="levelled",
            detail=f"The means of {levelled.arms} categories had a standard deviation of {levelled.before:.2f}. In "
            f"the rewards of the last {RECENT_WINDOW.days} days, at most {100 * max(levelled.most, 0):.0f} % of it is "
            "left.",
            sessions=_keys(recent),
        )
    for source, values in sorted(grades.items()):
        repeated = find_repeated_number(values)
        if repeated is not None:
            yield Finding(
                about=source,
                detail=f"{repeated.count} of {repeated.total} grades ({100 * repeated.share:.0f} %) of the {source} in "
                f"seven days are exactly {repeated.value:.2f}.",
            )


def _keys(rewards: Iterable[MachineReward]) -> tuple[int, ...]:
    return tuple(reward.key for reward in rewards)


def _machine_rewards(now: dt.datetime) -> list[MachineReward]:
    """The machines' rewards of both windows in order of time. One query."""
    grade = Grade.objects.filter(pk=OuterRef("settlement__grade"))
    rows = (
        Session.objects.yours()
        .filter(ended_at__gt=now - RECENT_WINDOW - EARLIER_WINDOW, ended_at__lte=now)
        .exclude(category=None)
        .annotate(
            arm=Coalesce("category__merged_into__name", "category__name"),
            view=Subquery(grade.values("view")),
        )
        .filter(reward_source__in=MACHINES, reward_value__isnull=False)
        .order_by("ended_at", "pk")
    )
    names = ("pk", "arm", "ended_at", "reward_value", "view")
    return [
        MachineReward(key=key, arm=arm, ended_at=ended_at, value=value)
        for key, arm, ended_at, value, view in rows.values_list(*names)
        if view != EvidenceView.LOOKED
    ]


def _week_of_grades(now: dt.datetime) -> dict[str, list[float]]:
    """By source, the values of the current grades of the sessions of the last seven days. One query."""
    rows = Grade.objects.chain().filter(
        yours(), session__ended_at__gt=now - WINDOW, session__ended_at__lte=now, source__in=CONTINUOUS_SOURCES
    )
    # By source and session; None if the value doesn't count. Later rows replace earlier ones, except that a judge's
    # failure doesn't replace its verdict.
    current: dict[tuple[str, int], float | None] = {}
    columns = ("source", "session", "value", "view", "mean")
    for source, session, value, view, mean in rows.order_by("pk").values_list(*columns):
        if source == Source.JUDGE and value is None:
            continue
        is_measured = value is not None and (source == Source.JUDGE or view in MEASURED)
        # The mean before any cap (for harm, or partial work), since every capped grade is the same number.
        uncapped = value if mean is None else mean
        current[source, session] = uncapped if is_measured else None
    by_source: dict[str, list[float]] = defaultdict(list)
    for (source, _session), uncapped in current.items():
        if uncapped is not None:
            by_source[source].append(uncapped)
    return by_source


ALL, JUDGE = "all sessions", "another judge"


@alarm_rule(
    id="A10",
    title="Verdicts have shifted",
    means=(
        "Opens when verdicts for one harness, model and category, or verdicts overall, drift from their past level. "
        "The alarm says whether the mix of work changed or the results within it, or that these can’t be separated. "
        "The test is a CUSUM tuned to less than one false alarm per site and year. The alarm stays open for "
        f"{pairs.HOLDS.days} days."
    ),
    todo="Find out what changed that day: the model, the prompt, the tools, the judge or the kind of work.",
    every=dt.timedelta(hours=6),
)
def drift(now: dt.datetime) -> Iterable[Finding]:
    """A mean falls if the work gets worse, or if there is more of the harder work."""
    return find_drift(pairs.load_verdicts(now), now)


def find_drift(rows: Sequence[SessionVerdict], now: dt.datetime) -> Iterable[Finding]:
    """The recent changes of the level of verdicts: in cells (harness, model and category), then over all sessions.

    `rows` are the judged sessions in order of time. All cells in which the judge changed too share one finding. A
    change over all sessions isn't reported if it comes from the cells' levels and a cell has a finding.
    """
    limit = threshold(SERIES * pairs.yearly_rate(len(rows), now))
    has_cell_drift = False
    with_other_judge: list[tuple[str, list[SessionVerdict], ChangePoint]] = []
    for name, cell in sorted(pairs.group_by(rows, lambda row: row.cell).items()):
        change = _recent_change(cell, [row.verdict for row in cell], limit, now)
        if change is None:
            continue
        has_cell_drift = True
        if _note_if_judge_changed(cell, change):
            with_other_judge.append((name, cell, change))
        else:
            detail = f"Drift in {name}: {_describe_change(cell, change)}"
            yield Finding(about=name[:300], detail=detail, sessions=_sessions_since(cell, change))
    if with_other_judge:
        name, cell, change = max(with_other_judge, key=lambda drifted: len(drifted[1]))  # the largest cell
        others = len(with_other_judge) - 1
        more = f" {others} more changed at the same time." if others else ""
        detail = f"{name}: {_describe_change(cell, change)}{_note_if_judge_changed(cell, change)}{more}"
        yield Finding(about=JUDGE, detail=detail, sessions=_sessions_since(cell, change))
    means = block_means([row.verdict for row in rows])
    changes_of_blocks = find_changes(means, threshold(SERIES * pairs.yearly_rate(len(means), now)))
    overall = _last_if_recent(rows, [_in_sessions(change) for change in changes_of_blocks], now)
    if overall is None:
        return
    by_cause = split_change(_cells_and_verdicts(rows[: overall.since]), _cells_and_verdicts(rows[overall.since :]))
    if not has_cell_drift or by_cause.cause is not Cause.LEVELS:
        note = _note_if_judge_changed(rows, overall)
        detail = f"All judged sessions: {_describe_change(rows, overall)} {_describe_split(by_cause)}{note}"
        yield Finding(about=ALL, detail=detail, sessions=_sessions_since(rows, overall))


def _sessions_since(rows: Sequence[SessionVerdict], change: ChangePoint) -> tuple[int, ...]:
    """The keys of the sessions since the change."""
    return tuple(row.key for row in rows[change.since :])


def _in_sessions(change: ChangePoint) -> ChangePoint:
    """A change in a series of blocks, with its indexes and counts in sessions."""
    return replace(
        change,
        since=change.since * BLOCK,
        detected_at=change.detected_at * BLOCK + BLOCK - 1,
        n_before=change.n_before * BLOCK,
        n_after=change.n_after * BLOCK,
    )


def _recent_change(
    rows: Sequence[SessionVerdict], values: Sequence[float], limit: float, now: dt.datetime
) -> ChangePoint | None:
    """The last change of `values`, one for each row, if it is recent; None otherwise."""
    return _last_if_recent(rows, find_changes(values, limit), now)


def _last_if_recent(
    rows: Sequence[SessionVerdict], changes: Sequence[ChangePoint], now: dt.datetime
) -> ChangePoint | None:
    """The last of the changes in the series of these rows, if its alarm should still be open; None otherwise."""
    return changes[-1] if changes and rows[changes[-1].detected_at].ended_at > now - pairs.HOLDS else None


def _describe_change(rows: Sequence[SessionVerdict], change: ChangePoint) -> str:
    """A sentence with the means since the change and before it."""
    return (
        f"{change.after:.2f} on average since {_day_of(rows[change.since])} ({change.n_after} sessions), "
        f"{change.before:.2f} before ({change.n_before})."
    )


def _note_if_judge_changed(rows: Sequence[SessionVerdict], change: ChangePoint) -> str:
    """A note if the judge that gave most verdicts before the change isn't the one since; empty otherwise."""
    old = mode(row.judge for row in rows[change.since - change.n_before : change.since])
    new = mode(row.judge for row in rows[change.since :])
    if old == new:
        return ""
    return f" The judge changed too ({old}; now {new}), so the cause may be the judge and not the work."


def _describe_split(by_cause: Split) -> str:
    """A sentence about why the overall mean changed."""
    contributions = f"levels {by_cause.levels:+.2f}, mix {by_cause.mix:+.2f}"
    if by_cause.cause is Cause.MIX:
        return f"The mix of work shifted; no part of it got better or worse ({contributions})."
    if by_cause.cause is Cause.LEVELS:
        return f"The shift is spread over harnesses, models and categories ({contributions})."
    return (
        f"Changes of the work and of its mix can’t be separated, because only {100 * by_cause.evaluable:.0f} % of the "
        "sessions have a harness, model and category with enough sessions both before and after."
    )


def _cells_and_verdicts(rows: Iterable[SessionVerdict]) -> list[tuple[str, float]]:
    return [(row.cell, row.verdict) for row in rows]
