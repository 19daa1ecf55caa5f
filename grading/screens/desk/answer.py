"""Can the reward be trusted today? One word, one sentence and one thing to do; pure, so that every state is told."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from grading.monitoring import title_of
from grading.review.calibration import ENOUGH, Calibration
from grading.review.trust import Share
from grading.reward.explain import number
from grading.templatetags.gradingsite_tags import is_advisory

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
# What these find is told in words of its own.
TOLD = frozenset({"A1", "A2"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustFacts:
    """What the answer rests on.

    `today`: provisional of today's rewards; `ungraded`: today's sessions without one. `contradicted`: open items with a
    commit or pull request and no real grade. `trouble`: what keeps the judge from answering, in words; empty while it
    answers. `alarms`: ids of open alarms. `compared`: the judge against people. `blind`: open items of the random
    slice; `queue`: all open items.
    """

    any_sessions: bool = True
    today: Share = field(default_factory=lambda: Share(part=0, whole=0))
    ungraded: int = 0
    contradicted: int = 0
    trouble: str = ""
    alarms: tuple[str, ...] = ()
    compared: Calibration | None = None
    blind: int = 0
    queue: int = 0
    may_review: bool = False
    may_operate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """The one thing to do: what the button says, the screen's name and its query."""

    label: str
    screen: str
    query: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustAnswer:
    word: str
    sentence: str
    step: NextStep | None
    is_bad: bool = False


def answer(facts: TrustFacts) -> TrustAnswer:
    """The worst that holds decides the word; the sentence says all that is true beside it."""
    others = [rule for rule in facts.alarms if rule not in TOLD and not is_advisory(rule)]
    step = next(_steps(facts, others), None)
    # What is not final today, where there is such a thing.
    rest = f"; {_today(facts)}" if facts.today.part or facts.ungraded else ""
    if not facts.any_sessions:
        return TrustAnswer(
            word="There are no rewards yet.",
            sentence="None of your own sessions has arrived yet.",
            step=step,
        )
    if facts.trouble:
        problems = ", and ".join(filter(None, (_today(facts), _against(facts.contradicted))))
        return TrustAnswer(word="Not fully.", sentence=f"{facts.trouble}: {problems}.", step=step, is_bad=True)
    if facts.contradicted:
        sentence = _capital(_against(facts.contradicted)) + f"{rest}."
        return TrustAnswer(word="Not fully.", sentence=sentence, step=step, is_bad=True)
    if others or "A1" in facts.alarms:
        title = title_of(others[0]) if others else "too many sessions went ungraded this week, but all are graded now"
        more = f", with {len(others) - 1} more," if len(others) > 1 else ""
        sentence = f"An alarm{more} is open: {title[:1].lower()}{title[1:]}{rest}."
        return TrustAnswer(word="Not fully.", sentence=sentence, step=step, is_bad=True)
    compared = facts.compared
    if compared is not None and not compared.is_calibrated:
        return TrustAnswer(
            word="Unproven.",
            sentence=f"The judge isn’t calibrated yet: it has {compared.whole.n} of the {ENOUGH} blind grades that it "
            f"needs{rest}.",
            step=step,
        )
    if facts.today.part or facts.ungraded:
        until = " until a verdict or a person makes them final" if facts.today.part else ""
        sentence = f"The judge is open; {_today(facts, until)}."
        return TrustAnswer(word="Mostly.", sentence=sentence, step=step)
    measured = ""
    if compared is not None and (error := compared.whole.error) is not None:
        measured = (
            f", and the judge differs from people by {number(error.mean)} on average, over {compared.whole.n} blind "
            "grades"
        )
    word = "Yes." if facts.today.whole else "Yes, so far."
    sentence = f"{_capital(_today(facts))}, no rule has flagged a session{measured}."
    return TrustAnswer(word=word, sentence=sentence, step=step)


def _today(facts: TrustFacts, until: str = "") -> str:
    """What of today’s sessions is provisional (`until` a verdict comes, in words) and what is not graded."""
    rewards, ungraded = facts.today, facts.ungraded
    provisional = "none of today’s rewards is provisional"
    if rewards.part:
        verb = "is" if rewards.part == 1 else "are"
        provisional = f"{rewards.part} of today’s {rewards.whole} rewards {verb} provisional{until}"
        if rewards.whole == 1:
            provisional = f"today’s only reward is provisional{until}"
    if rewards.whole and ungraded:
        return f"{provisional}, and {ungraded} of today’s sessions {'is' if ungraded == 1 else 'are'} not graded yet"
    if rewards.whole:
        return provisional
    if ungraded > 1:
        return f"none of today’s {ungraded} sessions is graded yet"
    return "today’s only session is not graded yet" if ungraded else "no sessions to grade have ended today"


def _against(contradicted: int) -> str:
    if not contradicted:
        return ""
    rewards = "1 reward contradicts" if contradicted == 1 else f"{contradicted} rewards contradict"
    return f"{rewards} a commit or a pull request"


def _steps(facts: TrustFacts, others: list[str]) -> Iterator[NextStep]:
    """What there is to do, the most urgent first."""
    if not facts.any_sessions:
        if facts.may_operate:
            yield NextStep(label="Connect an agent", screen="connect")
        return
    verb, compared = "Review" if facts.may_review else "See", facts.compared
    if facts.contradicted:
        yield NextStep(label=f"{verb} the {count(facts.contradicted)}", screen="review", query="rule=A1")
    if facts.trouble:
        yield NextStep(label="See the judge's quota", screen="quota")
    if others or "A1" in facts.alarms:
        yield NextStep(label="See the alarm", screen="alarms")
    if compared is not None and not compared.is_calibrated and facts.blind and facts.may_review:
        label = f"Grade {count(min(ENOUGH - compared.whole.n, facts.blind))} blind"
        yield NextStep(label=label, screen="review", query="entered_as=slice")
    if facts.today.part:
        yield NextStep(
            label=f"See the {count(facts.today.part)} provisional", screen="sessions", query="behind=provisional"
        )
    if facts.queue:
        yield NextStep(label=f"{verb} the {count(facts.queue)} waiting", screen="review")
    if facts.today.whole or facts.ungraded:
        yield NextStep(label="See today's sessions", screen="sessions", query="behind=today")
    yield NextStep(label="See the sessions", screen="sessions")


def count(n: int) -> str:
    """A number as one says it: in words up to twelve."""
    return NUMBERS[n] if n < len(NUMBERS) else f"{n:,}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
