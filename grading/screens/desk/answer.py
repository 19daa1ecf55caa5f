"""The dashboard's answer to "can the reward be trusted today?": a word, a sentence and a next step. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from grading.monitoring.judges import ENOUGH
from grading.monitoring.rule import is_advisory, title_of
from grading.review.calibration import Calibration
from grading.review.trust import Share
from grading.reward.explain import number

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
# Alarms that have a sentence of their own.
OWN_SENTENCE = frozenset({"A1", "A2"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustFacts:
    """The input of the answer.

    `today`: the provisional share of today's rewards. `ungraded`: the number of today's sessions without a reward.
    `contradicted`: open review items with a commit or pull request and no real grade. `trouble`: why the judge does not
    answer, as text; empty while it does. `alarms`: ids of open alarms. `compared`: the judge compared with people.
    `blind`: open items of the random check. `queue`: all open items.
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
    """The next thing to do: the button's label, the screen's name and its query."""

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
    """The most serious problem decides the word and the sentence, which also says what of today is not final."""
    others = [rule for rule in facts.alarms if rule not in OWN_SENTENCE and not is_advisory(rule)]
    step = next(_steps(facts, others), None)
    rest = f"; {_today(facts)}" if facts.today.part or facts.ungraded else ""
    if not facts.any_sessions:
        return TrustAnswer(
            word="No rewards yet.",
            sentence="None of your own sessions has arrived.",
            step=step,
        )
    if facts.trouble:
        sentence = f"{facts.trouble}: {_today(facts)}."
        if facts.contradicted:
            sentence += f" {_capital(_against(facts.contradicted))}."
        return TrustAnswer(word="Not fully.", sentence=sentence, step=step, is_bad=True)
    if facts.contradicted:
        sentence = _capital(_against(facts.contradicted)) + f"{rest}."
        return TrustAnswer(word="Not fully.", sentence=sentence, step=step, is_bad=True)
    if others or "A1" in facts.alarms:
        title = "too many sessions went ungraded this week, but all are graded now"
        if others:
            title = title_of(others[0])
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
    """How many of today's rewards are provisional and how many sessions are not graded. `until` is appended to the
    former.
    """
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
    """The possible next steps, the most urgent first."""
    if not facts.any_sessions:
        if facts.may_operate:
            yield NextStep(label="Connect an agent", screen="connect")
        return
    verb, compared = "Review" if facts.may_review else "See", facts.compared
    if facts.contradicted:
        yield NextStep(label=f"{verb} the {count(facts.contradicted)}", screen="review", query="rule=A1")
    if facts.trouble:
        yield NextStep(label="See the judge’s quota", screen="quota")
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
        yield NextStep(label="See today’s sessions", screen="sessions", query="behind=today")
    yield NextStep(label="See the sessions", screen="sessions")


def count(n: int) -> str:
    """A number in words up to twelve, else in digits."""
    return NUMBERS[n] if n < len(NUMBERS) else f"{n:,}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
