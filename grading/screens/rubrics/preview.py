"""The exact prompt that a rubric makes of a session, with its size and price; and sessions as people name them."""

from dataclasses import dataclass
from typing import Self

from django.conf import settings

from grading.judging import inputs, judges
from grading.judging.allowance import limiter
from grading.judging.core.prompt import CHARS_PER_TOKEN, Prompt
from grading.judging.outlook.estimates import CostEstimate, estimate
from grading.models import Rubric, Session
from grading.vocabulary import Reason

SEVERAL, RECENT = 2, 30


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPreview:
    """A prompt exactly as it would be sent; None if the evidence can't be read, and `problem` says why."""

    session: Session
    prompt: Prompt | None
    estimate: CostEstimate
    problem: str = ""

    @classmethod
    def for_session(cls, session: Session, rubric: Rubric) -> Self:
        """For a saved rubric or a draft."""
        usual = estimate(1, rubric)
        judge = judges.first()
        ratio = CHARS_PER_TOKEN if judge is None else limiter.shared().characters_per_token(judge.name)
        try:
            prompt = inputs.build(session, rubric, budget=settings.JUDGE_INPUT_TOKENS, chars_per_token=ratio)
        except (OSError, ValueError) as error:
            return cls(session=session, prompt=None, estimate=usual, problem=f"{Reason.UNREADABLE.words}: {error}")
        return cls(session=session, prompt=prompt, estimate=usual)

    @property
    def usd(self) -> float | None:
        """What asking should cost: the prompt's own size, and a reply as long as they usually are."""
        if self.prompt is None:
            return None
        full = self.prompt.tokens * self.estimate.price_in + self.estimate.output_tokens * self.estimate.price_out
        return full / 1_000_000


def recent_sessions() -> list[dict[str, str]]:
    """The latest sessions, to choose from: what names each, and what a person knows it by. Samples while there are no
    others.
    """
    latest = Session.objects.with_people().order_by("-ended_at", "-pk")
    rows = list(latest.yours()[:RECENT]) or latest.samples()[:RECENT]
    return [{"value": full_name(row), "label": f"{row} {row.title}".strip()[:120]} for row in rows]


def full_name(session: Session) -> str:
    """What names a session and no other one: agent/id."""
    return f"{session.agent.name}/{session.external_id}"


def find_session(named: str) -> tuple[Session | None, str]:
    """The session of agent/id, an id, or an id's end (as the screens show it); else None, and why in a sentence."""
    named = named.replace("\0", "").strip()
    if not named:
        return None, ""
    sessions = Session.objects.with_people().order_by("-ended_at", "-pk")
    agent, _, own = named.partition("/")
    ways = ({"agent__name": agent, "external_id": own}, {"external_id": named}, {"external_id__endswith": named})
    for way in ways:
        matches = list(sessions.filter(**way)[:SEVERAL])
        if len(matches) == 1:
            return matches[0], ""
        if matches:
            return None, f"Several sessions have an id that ends in “{named[:60]}”. Enter more characters of the id."
    return None, f"No session has the id “{named[:60]}” or an id that ends in it. The sessions list shows the ids."
