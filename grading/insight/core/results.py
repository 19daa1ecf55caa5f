"""The results of Insight, as values. Rewards are in [0, 1], costs in microdollars, intervals have 90 % unless noted."""

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum

from grading.insight.core.measures import Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The days from `first` to `last`, both included, in the site's zone."""

    first: dt.date
    last: dt.date

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean with its 90 % interval. All three are None if no session has a value. The interval alone is None if only
    one session has a value, or if all values are equal.

    `sessions`: all sessions. `known`: those with a value, which the mean is of. `provisional`: those of `known` whose
    reward may still change.
    """

    value: float | None
    low: float | None
    high: float | None
    sessions: int
    known: int
    provisional: int

    @property
    def missing(self) -> int:
        """Sessions without a value."""
        return self.sessions - self.known


# Trends


class TrendStep(StrEnum):
    """How long a point of a trend is. Weeks begin on Monday."""

    DAY = "day"
    WEEK = "week"


class TrendSplit(StrEnum):
    """What a trend can be split by. The values name the filters of `CellFilter` and of the session list."""

    CATEGORY = "category"
    HARNESS = "harness"
    VERSION = "version"
    MODEL = "model"
    AGENT = "agent"
    PROJECT = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """The mean over some days. For the measure "sessions", `mean.value` is a number of sessions without interval."""

    span: Span
    mean: Mean


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendLine:
    """A line of a trend. `name` is the value of the split, "" for sessions without a value. All lines of a trend have
    the same spans, even without sessions. `total` is the mean over all spans.
    """

    name: str
    points: tuple[TrendPoint, ...]
    total: Mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A measure over time: `whole` for all sessions, and `lines` by the split, the one with the most sessions first.

    `groups` counts the values of the split. There may be more values than lines.
    """

    measure: Measure
    step: TrendStep
    split: TrendSplit | None
    whole: TrendLine
    lines: tuple[TrendLine, ...]
    groups: int


# What changed between two periods


class PartName(StrEnum):
    """Mix: other work. Within: same work, other result. Graders: another judge, rubric or source. Missing: who is
    graded.
    """

    MIX = "mix"
    WITHIN = "within"
    GRADERS = "graders"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePart:
    """One part of a difference, or several that cannot be told apart and have only a sum.

    `names` has one name if the part is identified. `value` is None if not even the sum is known; it is never 0 for
    lack of knowledge. `why` says in a sentence why the part is not identified, and is empty if it is. `sessions`: how
    many sessions it is about (those of changed work, of new graders, those without a grade).
    """

    names: tuple[PartName, ...]
    value: float | None
    low: float | None
    high: float | None
    sessions: int
    why: str = ""

    @property
    def is_identified(self) -> bool:
        return len(self.names) == 1 and self.value is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryContribution:
    """The same parts for one category. The parts of all categories add up to those of the whole.

    `parts` has the same names in the same order as `PeriodChange.parts`.
    """

    name: str
    before: Mean
    after: Mean
    parts: tuple[ChangePart, ...]
    # The contribution of the category to the difference: the sum of its parts.
    difference: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeOffer:
    """A proposal to re-read sessions so that two graders can be told apart from the work.

    `old` and `new` name the graders. `read_by_both` counts the sessions that both have read already, and `needed` how
    many more it takes. `cost_micro` is what these would cost, None if no call of this judge has a known cost.

    `sessions` are the keys of sessions that the old grader has read, for a run of the judge under `rubric` (the hash of
    the new rubric). Both are empty if too few sessions can be re-read, or the new grader is not a judge.
    """

    old: str
    new: str
    read_by_both: int
    needed: int
    cost_micro: int | None
    rubric: str
    sessions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChange:
    """The change on tasks that recur, with a 95 % interval. `tasks` have sessions in both periods, `sessions` in total.

    Other work may have got harder, but these tasks are the same. Tasks whose graders can't be compared don't count.
    """

    tasks: int
    sessions: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodChange:
    """The difference of two means in parts, which add up to `difference` exactly. If one of the periods has no value,
    nothing but its means is known.

    `missing_low` is the difference if all missing grades were .3, and `missing_high` if all were .8; both are None if
    no grades are missing. With missing grades of 0 and of 1, `within_least` is the smaller and `within_most` the larger
    value of the part "within". `tasks` is None if too few tasks recur. `bridge` is offered if graders cannot be told
    apart.
    """

    measure: Measure
    before_span: Span
    after_span: Span
    before: Mean
    after: Mean
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    parts: tuple[ChangePart, ...] = ()
    categories: tuple[CategoryContribution, ...] = ()
    missing_low: float | None = None
    missing_high: float | None = None
    within_least: float | None = None
    within_most: float | None = None
    tasks: TaskChange | None = None
    bridge: BridgeOffer | None = None

    def part(self, name: PartName) -> ChangePart | None:
        """The part that includes `name`, alone or with others. None if the periods can't be compared."""
        return next((part for part in self.parts if name in part.names), None)


# What came with it


class MarkKind(StrEnum):
    """What a mark on the time axis is."""

    VERSION = "version"
    MODEL = "model"
    INSTRUCTIONS = "instructions"
    RUBRIC = "rubric"
    JUDGE = "judge"
    POLICY = "policy"
    OUTAGE = "outage"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeMark:
    """Something that happened at a moment: "Claude Code 2.1.4", "rubric 4", "judge out 12 h".

    `until` is set for an outage that is over. `is_change`: whether its effect on sessions is estimated (all but an
    outage). `key` identifies it among all marks. A new version or model is of a `harness` and is its `value`; a changed
    instruction file is of a `project` or, in the home folder, of an `agent`.
    """

    kind: MarkKind
    at: dt.datetime
    day: dt.date
    label: str
    key: str
    until: dt.datetime | None = None
    harness: str = ""
    value: str = ""
    project: str = ""
    agent: str = ""

    @property
    def is_change(self) -> bool:
        return self.kind is not MarkKind.OUTAGE


class EffectFinding(StrEnum):
    """What an effect's interval says.

    WORSE and BETTER are about recurring tasks alone. HARDER_OR_WORSE: results got worse, but it is unknown whether the
    agent or the work changed. CHANGED: a measure that is neither good nor bad changed. NOT_ENOUGH: too few sessions or
    days for an interval.
    """

    WORSE = "worse"
    BETTER = "better"
    HARDER_OR_WORSE = "harder_or_worse"
    EASIER_OR_BETTER = "easier_or_better"
    CHANGED = "changed"
    UNCLEAR = "unclear"
    NOT_ENOUGH = "not_enough"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkEffect:
    """What changed in a measure since a mark, on like work, adjusted for weekday and grader.

    `marks` has several marks if too few sessions lie between them to tell them apart. `low` and `high` bound the
    effect at all times together: a person who looks every day is ever wrong in at most 10 % of cases. All three are
    None with NOT_ENOUGH. `before` and `after` count sessions with a value.

    `tasks` counts the recurring tasks; it is 0 if they are too few to say whether the work itself got harder. Otherwise
    `task_effect` is the effect on these tasks alone, and decides the finding. Its bounds are ever wrong in at most 5 %
    of cases.

    `p_value` is the p-value for "no effect" after allowing for missing grades. It is valid at every time.
    """

    marks: tuple[TimeMark, ...]
    measure: Measure
    effect: float | None
    low: float | None
    high: float | None
    before: int
    after: int
    days_before: int
    days_after: int
    tasks: int
    finding: EffectFinding
    why: str = ""
    task_effect: float | None = None
    task_low: float | None = None
    task_high: float | None = None
    p_value: float | None = None

    @property
    def width(self) -> float | None:
        """The width of the interval."""
        return None if self.low is None or self.high is None else self.high - self.low


@dataclass(frozen=True, slots=True, kw_only=True)
class SinceReading:
    """Marks, the oldest first, and the effects of the newest ones. `read_at`: when the worker stored them, None if they
    were computed just now.
    """

    marks: tuple[TimeMark, ...]
    effects: tuple[MarkEffect, ...]
    read_at: dt.datetime | None = None


# Which agent on my work?


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCard:
    """A harness and a model on like work. The means are weighted to the work that all cards have in common.

    `reward`, `cost` (microdollars) and `minutes` are None if there are too few data; then `why` says what is missing.
    `shared` counts the sessions in cells that at least one other card has too. `is_best`: its reward is higher than all
    other cards' rewards beyond chance. `title` is the harness's name for people.
    """

    harness: str
    model: str
    sessions: int
    shared: int
    reward: Mean | None
    cost: Mean | None
    minutes: Mean | None
    is_best: bool
    why: str = ""
    title: str = ""


# Advisories


@dataclass(frozen=True, slots=True, kw_only=True)
class WorseAdvisory:
    """A measure that got worse beyond chance since a mark. `about` identifies it, so that it has one alarm."""

    about: str
    effect: MarkEffect
    text: str
