"""Results of Insight as text, for the page, the letter, e-mail and webhook. Pure: no Django."""

from grading.insight.core.results import AgentCard, BridgeOffer, ChangePart, MarkEffect, PeriodChange, TimeMark


def write_headline(change: PeriodChange) -> str:
    """One sentence for the top of the page and the letter: what sessions earned, and the change on the period before.

    "347 sessions earned .619 on average, up .020 on the week before; 9 of 341 grades are still provisional."
    """
    raise NotImplementedError


def write_change(change: PeriodChange) -> tuple[str, ...]:
    """Sentences about the parts: what is known of each, and what cannot be told. Never names a cause.

    Says "the agents did worse on like work" only if `within` is identified and below 0 beyond chance, and never if the
    work may have got harder without a reference.
    """
    raise NotImplementedError


def write_part(part: ChangePart) -> str:
    """A few words under a part's figure: "other work", "same work, better", "cannot be told apart from graders"."""
    raise NotImplementedError


def write_bridge(bridge: BridgeOffer) -> str:
    """The offer as a question: "Re-read 30 sessions for about $1.20?"."""
    raise NotImplementedError


def write_missing_bound(change: PeriodChange) -> str:
    """The bound for missing grades: "If all missing grades were .3, the change would be −.012; if all were .8, +.004".
    Empty without missing grades.
    """
    raise NotImplementedError


def write_effect(effect: MarkEffect) -> str:
    """One sentence: what changed since the mark, on like work, with the interval and its width. "since", never
    "because".
    """
    raise NotImplementedError


def write_mark(mark: TimeMark) -> str:
    """A mark's label with its time: "judge out for 12 h from 5 Apr 09:47 UTC"."""
    raise NotImplementedError


def write_agent(card: AgentCard) -> str:
    """One sentence about a card, or that there is not enough to say and what is missing."""
    raise NotImplementedError


def write_subject(change: PeriodChange) -> str:
    """The subject of the weekly letter: "Week of 30 March: .619, up .020, of which .015 is better work"."""
    raise NotImplementedError


def write_letter(
    change: PeriodChange, effects: tuple[MarkEffect, ...], marks: tuple[TimeMark, ...], cards: tuple[AgentCard, ...]
) -> tuple[str, ...]:
    """The statistical sentences of the weekly letter, at most four: the mean, its parts, what came with it, and
    which agent. The fifth, about sessions to review, is the letter's own.
    """
    raise NotImplementedError
