"""Results of Insight as text, for the page, the letter, e-mail and webhook. Pure: no Django.

Every statement about a result is made here, so that one benchmark can check what people are told. "The agents did
worse" is said only of tasks that recur; a mark is named with "since", never with "because".
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from math import floor

from grading.insight.core.like_work import MIN_SHARED
from grading.insight.core.measures import Measure, MeasureUnit
from grading.insight.core.results import (
    AgentCard,
    BridgeOffer,
    ChangePart,
    EffectFinding,
    MarkEffect,
    MarkKind,
    Mean,
    PartName,
    PeriodChange,
    Span,
    TimeMark,
)
from grading.plain import counted

MICRODOLLARS = 1_000_000
AGENTS_DID_WORSE = "the agents did worse"
AGENTS_DID_BETTER = "the agents did better"
# Rewards and shares are printed in thousandths.
THOUSAND = 1000
# Counts from here on have no decimals.
MANY = 100
WEEK = 7
DAY_SECONDS, HOUR_SECONDS = 86_400, 3_600

NAMES = {
    PartName.MIX: "mix",
    PartName.WITHIN: "within",
    PartName.GRADERS: "graders",
    PartName.MISSING: "missing",
}
# What each part is, as the subject of a sentence.
SUBJECTS = {
    PartName.MIX: "other work",
    PartName.WITHIN: "other results on comparable work",
    PartName.GRADERS: "other graders",
    PartName.MISSING: "other missing grades",
}


# Numbers


def write_value(measure: Measure, value: float | None) -> str:
    """A value with its unit: .619, 12 %, 1.4, 3.2 min, $1.20. A dash if it is unknown."""
    if value is None:
        return "–"
    sign = "−" if value < 0 and float(f"{value:.3f}") != 0 else ""  # never −.000
    size = abs(value)
    if measure.unit is MeasureUnit.REWARD:
        return sign + f"{size:.3f}".removeprefix("0")
    if measure.unit is MeasureUnit.SHARE:
        return f"{sign}{100 * size:.1f} %"
    if measure.unit is MeasureUnit.MICRODOLLARS:
        return f"{sign}${size / MICRODOLLARS:,.2f}"
    if measure.unit is MeasureUnit.MINUTES:
        return f"{sign}{size:,.1f} min"
    return f"{sign}{size:,.0f}" if measure.unit is MeasureUnit.SESSIONS or size >= MANY else f"{sign}{size:,.2f}"


def write_signed(measure: Measure, value: float | None) -> str:
    """A difference with its sign: +.020."""
    text = write_value(measure, value)
    return text if value is None or text.startswith("−") else f"+{text}"


def write_interval(measure: Measure, low: float | None, high: float | None) -> str:
    return f"{write_signed(measure, low)} to {write_signed(measure, high)}"


def write_in_parentheses(measure: Measure, low: float | None, high: float | None) -> str:
    """An interval after its value: " (+.002 to +.018)"; empty if both ends are written alike."""
    is_point = write_signed(measure, low) == write_signed(measure, high)
    return "" if is_point else f" ({write_interval(measure, low, high)})"


def write_size(measure: Measure, value: float) -> str:
    """The size of a difference without its sign."""
    return write_value(measure, abs(value))


def write_span(span: Span) -> str:
    """A span of days: "30 Mar – 5 Apr"."""
    return f"{span.first:%-d %b} – {span.last:%-d %b}"


# What changed between two periods


def write_headline(change: PeriodChange) -> str:
    """One sentence for the top of the page and the letter: what sessions earned, and the change on the period before.

    "16 Nov – 22 Nov: 341 sessions earned .619 on average, up .020 on the week before."
    """
    after, before = change.after, change.before
    if not after.sessions:
        return f"No session ended in {write_span(change.after_span)}."
    if after.value is None:
        sessions = counted(after.sessions, "session")
        return f"{write_span(change.after_span)}: {sessions} ended, but none has a value yet."
    verb = "earned" if change.measure.unit is MeasureUnit.REWARD else f"had {change.measure.title.lower()} of"
    span = write_span(change.after_span)
    sessions = counted(after.known, "session")
    text = f"{span}: {sessions} {verb} {write_value(change.measure, after.value)} on average"
    if change.difference is not None and before.value is not None:
        text += f", {_direction(change)} {_earlier_period(change)}"
    if after.provisional and change.measure.unit is MeasureUnit.REWARD:
        text += f"; {after.provisional} of these rewards {'is' if after.provisional == 1 else 'are'} provisional"
    return f"{text}."


def _direction(change: PeriodChange) -> str:
    """How the mean changed. The earlier period follows: "up .020 on the week before", "as the week before"."""
    difference = change.difference or 0.0
    size = write_size(change.measure, difference)
    if size == write_size(change.measure, 0.0):
        return "as"
    within_chance = change.low is not None and change.high is not None and change.low <= 0 <= change.high
    chance = ", which may be chance," if within_chance else ""
    return f"{'up' if difference > 0 else 'down'} {size}{chance} on"


def _earlier_period(change: PeriodChange) -> str:
    before, after = change.before_span, change.after_span
    is_week_before = before.days == after.days == (after.first - before.first).days == WEEK
    return "the week before" if is_week_before else write_span(before)


def round_parts(change: PeriodChange) -> PeriodChange:
    """The change with its parts rounded to the printed digits so that they add up to the printed difference.

    All parts are rounded down, then those closest to the next step are raised by one. Nothing is rounded if a part is
    unknown, or the measure is not printed in thousandths.
    """
    values = [part.value for part in change.parts if part.value is not None]
    has_thousandths = change.measure.unit in (MeasureUnit.REWARD, MeasureUnit.SHARE)
    if not has_thousandths or change.difference is None or len(values) < len(change.parts):
        return change
    steps = [floor(THOUSAND * value) for value in values]
    missing = round(THOUSAND * change.difference) - sum(steps)
    by_remainder = sorted(range(len(values)), key=lambda index: steps[index] - THOUSAND * values[index])
    for index in by_remainder[: max(missing, 0)]:
        steps[index] += 1
    parts = (replace(part, value=step / THOUSAND) for part, step in zip(change.parts, steps, strict=True))
    return replace(change, parts=tuple(parts))


def write_change(change: PeriodChange) -> tuple[str, ...]:
    """Sentences about the parts of a change: what is known of them, and what cannot be told. Never names a cause."""
    change = round_parts(change)
    if change.difference is None:
        empty = change.before_span if not change.before.known else change.after_span
        return (f"Nothing can be compared: no session of {write_span(empty)} has a value.",)
    sentences = [_sum_up(change)]
    sentences += [_cannot_tell_apart(change, part) for part in change.parts if len(part.names) > 1]
    conclusion = _conclude(change)
    if conclusion:
        sentences.append(conclusion)
    if change.bridge is not None and change.bridge.rubric:
        sentences.append(write_bridge(change.bridge))
    return tuple(sentences)


def _sum_up(change: PeriodChange) -> str:
    """The mean's change and the identified parts that matter, the largest first."""
    difference = change.difference or 0.0
    size = write_size(change.measure, difference)
    if size == write_size(change.measure, 0.0):
        start = "The mean is the same as before"
    else:
        start = f"The mean {'rose' if difference > 0 else 'fell'} by {size}"
    identified = [part for part in change.parts if part.is_identified and not _is_small(change.measure, part)]
    identified.sort(key=lambda part: -abs(part.value or 0.0))
    clauses = [_clause(change.measure, part) for part in identified]
    return f"{start}: {'; '.join(clauses)}." if clauses else f"{start}."


def _is_small(measure: Measure, part: ChangePart) -> bool:
    return write_size(measure, part.value or 0.0) == write_size(measure, 0.0)


def _clause(measure: Measure, part: ChangePart) -> str:
    """What an identified part adds to the mean or takes from it: "other graders add .010 (+.002 to +.018)"."""
    value = part.value or 0.0
    size = write_size(measure, value)
    subject = SUBJECTS[part.names[0]]
    is_singular = part.names[0] is PartName.MIX  # "other work"
    add, take = ("adds", "takes") if is_singular else ("add", "take")
    effect = f"{take} {size} away" if value < 0 else f"{add} {size}"
    return f"{subject} {effect}{write_in_parentheses(measure, part.low, part.high)}"


def _cannot_tell_apart(change: PeriodChange, part: ChangePart) -> str:
    """A sentence about parts that can't be told apart, with the reason and their sum."""
    names = " and ".join(SUBJECTS[name] for name in part.names)
    interval = write_in_parentheses(change.measure, part.low, part.high)
    total = f"{write_signed(change.measure, part.value)}{interval}"
    return f"The effects of {names} cannot be separated, because {part.why}. Together they amount to {total}."


def _conclude(change: PeriodChange) -> str:
    """Whether the agents did worse or better, as far as that can be told. Empty if the measure is neither good nor bad,
    or the periods can't be compared.
    """
    within = change.part(PartName.WITHIN)
    better = change.measure.better
    if within is None or not better:
        return ""
    if not within.is_identified:
        return "It is unclear whether the agents changed."
    if within.low is None or within.high is None or within.low <= 0 <= within.high:
        return "On comparable work, the change may be chance."
    sign = -1 if within.high < 0 else 1
    guard = _missing_guard(change, within, sign)
    end_near_zero = within.high if sign < 0 else within.low
    if end_near_zero * sign <= guard:
        return "Allowing for sessions without a grade, the change on comparable work may be chance."
    tasks = change.tasks
    if tasks is None:
        return "It is unclear whether the agents or the difficulty of the work changed, because too few tasks recur."
    recurring = f"On {counted(tasks.tasks, 'task')} that recur"
    interval = f"{write_signed(change.measure, tasks.value)} ({write_interval(change.measure, tasks.low, tasks.high)})"
    tasks_end_near_zero = tasks.high if sign < 0 else tasks.low
    if tasks_end_near_zero * sign <= guard:
        return f"{recurring}, the change may be chance or missing grades ({interval}). The other work may differ."
    claim = AGENTS_DID_BETTER if sign * better > 0 else AGENTS_DID_WORSE
    return f"{recurring}, {claim}: {interval}."


def _missing_guard(change: PeriodChange, within: ChangePart, sign: int) -> float:
    """How much of a fall (`sign` -1) or rise (1) on like work the sessions without a grade could explain at most."""
    bound = change.within_most if sign < 0 else change.within_least
    if bound is None or within.value is None:
        return 0.0
    return max(0.0, (within.value - bound) * sign)


def write_part(part: ChangePart) -> str:
    """A few words under a part's figure: "other work", "cannot be told apart from graders"."""
    if part.is_identified:
        return SUBJECTS[part.names[0]]
    names = " + ".join(NAMES[name] for name in part.names)
    return f"{names}: cannot be separated, because {part.why}"


def write_bridge(bridge: BridgeOffer) -> str:
    """The offer as a sentence: "If the judge grades 30 sessions again for about $1.20, … can be compared with …"."""
    price = "" if bridge.cost_micro is None else f" for about ${bridge.cost_micro / MICRODOLLARS:,.2f}"
    more = "more " if bridge.read_by_both else ""
    return (
        f"If the judge grades {bridge.needed} {more}sessions again{price}, {bridge.new} can be compared with "
        f"{bridge.old}."
    )


def write_missing_bound(change: PeriodChange) -> str:
    """The bound for missing grades; empty if no grades are missing."""
    if change.missing_low is None or change.missing_high is None:
        return ""
    low, high = (write_signed(change.measure, value) for value in (change.missing_low, change.missing_high))
    return f"If all missing grades were .3, the change would be {low}; if all were .8, {high}."


# What came with it


def write_mark(mark: TimeMark) -> str:
    """A mark with its time: "claude-code 2.1.4, 5 Apr", "judge out for 12 h from 5 Apr 09:47 UTC"."""
    if mark.kind is not MarkKind.OUTAGE:
        return f"{mark.label}, {mark.day:%-d %b}"
    start = f"{mark.at.astimezone(dt.UTC):%-d %b %H:%M} UTC"
    if mark.until is None:
        return f"{mark.label} since {start}"
    seconds = (mark.until - mark.at).total_seconds()
    length = f"{seconds / DAY_SECONDS:.0f} days" if seconds >= 2 * DAY_SECONDS else f"{seconds / HOUR_SECONDS:.0f} h"
    return f"{mark.label} for {length} from {start}"


def write_effect(effect: MarkEffect) -> str:
    """What changed since the mark on comparable work, with the interval: one sentence, or two if the change may come
    from the work.
    """
    start = _since(effect)
    title = effect.measure.title.lower()
    if effect.finding is EffectFinding.NOT_ENOUGH:
        counts = f"{counted(effect.before, 'session')} before and {effect.after:,} after"
        return f"{start} there is not enough data on {title}: {effect.why} ({counts})."
    if effect.finding in {EffectFinding.WORSE, EffectFinding.BETTER}:
        return f"{start} {_on_tasks(effect, title)}"
    numbers = _numbers(effect)
    if effect.finding is EffectFinding.UNCLEAR:
        return f"{start} {title} did not change beyond chance on comparable work: {numbers}."
    direction = "lower" if (effect.effect or 0.0) < 0 else "higher"
    text = f"{start} {title} is {direction} on comparable work: {numbers}."
    if effect.finding is EffectFinding.CHANGED:
        return text
    if not effect.tasks:
        return f"{text} It is unclear whether the agents or the work changed, because too few tasks recur."
    same = write_interval(effect.measure, effect.task_low, effect.task_high)
    return f"{text} On {counted(effect.tasks, 'task')} that recur, it did not change beyond chance ({same})."


def _since(effect: MarkEffect) -> str:
    """The start of a sentence, with the marks of an effect: "Since claude-code 2.0,"."""
    labels = [mark.label for mark in reversed(effect.marks)]
    if len(labels) == 1:
        return f"Since {labels[0]},"
    return f"Since {', '.join(labels[:-1])} and {labels[-1]}, which are too close together to separate,"


def _numbers(effect: MarkEffect) -> str:
    """The effect with its interval and the interval's width."""
    interval = write_interval(effect.measure, effect.low, effect.high)
    width = "–" if effect.width is None else write_value(effect.measure, effect.width)
    return f"{write_signed(effect.measure, effect.effect)} ({interval}, width {width})"


def _on_tasks(effect: MarkEffect, title: str) -> str:
    """What changed on recurring tasks, as the rest of a sentence. `title` is the measure's name in it."""
    value = effect.task_effect or 0.0
    interval = write_interval(effect.measure, effect.task_low, effect.task_high)
    width = write_value(effect.measure, (effect.task_high or 0.0) - (effect.task_low or 0.0))
    numbers = f"{write_signed(effect.measure, value)} ({interval}, width {width})"
    where = f"on {counted(effect.tasks, 'task')} that recur"
    if effect.measure.unit is MeasureUnit.REWARD:
        claim = AGENTS_DID_WORSE if effect.finding is EffectFinding.WORSE else AGENTS_DID_BETTER
        return f"{claim} {where}: {numbers}."
    return f"{title} is {'lower' if value < 0 else 'higher'} {where}: {numbers}."


# Which agent on my work?


def write_agent(card: AgentCard) -> str:
    """One sentence about a card, or that there is not enough to say and what is missing."""
    name = _agent_name(card)
    if card.reward is None or card.reward.value is None:
        return f"{name}: not enough data. {card.why[:1].upper()}{card.why[1:]}."
    best = ", more than all others beyond chance" if card.is_best else ""
    text = f"{name} earns {_write_reward(card.reward)}{' on comparable work' if card.shared else ''}{best}"
    extras = []
    if card.cost is not None and card.cost.value is not None:
        extras.append(f"costs ${card.cost.value / MICRODOLLARS:,.2f}")
    if card.minutes is not None and card.minutes.value is not None:
        extras.append(f"takes {card.minutes.value:,.1f} minutes")
    more = f" It {' and '.join(extras)} a session." if extras else ""
    return f"{text} ({counted(card.shared or card.sessions, 'session')}).{more}"


def write_too_few(cards: Sequence[AgentCard]) -> list[str]:
    """Why some cards have no reward: one sentence for all with too few sessions, and one for each of the others."""
    missing = [card for card in cards if card.reward is None or card.reward.value is None]
    with_too_few = [card for card in missing if card.shared < MIN_SHARED and len(cards) > 1]
    sentences = [write_agent(card) for card in missing if card not in with_too_few]
    if not with_too_few:
        return sentences
    counts = ", ".join(f"{_agent_name(card)} has {card.shared}" for card in with_too_few)
    need = f"{MIN_SHARED} graded sessions on work that another harness also does are needed to compare"
    return [f"{need}: {counts}.", *sentences]


def _agent_name(card: AgentCard) -> str:
    return f"{card.title or card.harness or 'No harness'} with {card.model or 'an unnamed model'}"


def _write_reward(mean: Mean) -> str:
    """A mean reward with half of its interval's width: ".619 ± .021"."""
    value = f"{mean.value or 0.0:.3f}".removeprefix("0")
    half = ""
    if mean.low is not None and mean.high is not None:
        half = " ± " + f"{(mean.high - mean.low) / 2:.3f}".removeprefix("0")
    return value + half


# The weekly letter


def write_subject(change: PeriodChange) -> str:
    """The subject of the weekly letter: "Week of 30 March: .619, up .020"."""
    week = f"Week of {change.after_span.first:%-d %B}"
    if change.after.value is None:
        return f"{week}: no grades"
    value = write_value(change.measure, change.after.value)
    if change.difference is None:
        return f"{week}: {value}"
    size = write_size(change.measure, change.difference)
    if size == write_size(change.measure, 0.0):
        return f"{week}: {value}, the same as the week before"
    return f"{week}: {value}, {'up' if change.difference > 0 else 'down'} {size}"


def write_letter(
    change: PeriodChange, effects: tuple[MarkEffect, ...], outages: tuple[TimeMark, ...], cards: tuple[AgentCard, ...]
) -> tuple[str, ...]:
    """The statistical sentences of the weekly letter, at most four: the mean, its parts, what came with it, and
    which agent. The fifth, about sessions to review, is the letter's own. `outages` are those of the week.
    """
    sentences = [write_headline(change), " ".join(write_change(change))]
    news = _most_telling(effects)
    if news is not None:
        sentences.append(write_effect(news))
    elif outages:
        noun = "Judge outage" if len(outages) == 1 else "Judge outages"
        sentences.append(f"{noun}: {'; '.join(write_mark(mark) for mark in outages)}.")
    best = next((card for card in cards if card.is_best), None)
    if best is not None:
        sentences.append(write_agent(best))
    elif len(cards) > 1:
        sentences.append("It is not yet clear which harness and model does best on comparable work.")
    return tuple(sentences)


def _most_telling(effects: tuple[MarkEffect, ...]) -> MarkEffect | None:
    """The first effect beyond chance. If something got worse, the first of those. None if there are no such effects."""
    order = (
        EffectFinding.WORSE,
        EffectFinding.HARDER_OR_WORSE,
        EffectFinding.BETTER,
        EffectFinding.EASIER_OR_BETTER,
    )
    beyond_chance = [effect for effect in effects if effect.finding in order]
    return min(beyond_chance, key=lambda effect: order.index(effect.finding), default=None)
