"""The exact prompt for a session under a rubric, with its size and price; and finding a session by a typed id."""

from dataclasses import dataclass
from typing import Self

from django.conf import settings

from grading.judging import inputs, judges
from grading.judging.allowance import limiter
from grading.judging.core.prompt import CHARS_PER_TOKEN, Prompt
from grading.judging.outlook.estimates import CostEstimate, estimate
from grading.models import Rubric, Session
from grading.vocabulary import Reason

# How many recent sessions are offered, and how many matches are enough to see that a text is ambiguous.
RECENT, SEVERAL = 30, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPreview:
    """The prompt that would be sent; None if the evidence can't be read, and `problem` says why."""

    session: Session
    prompt: Prompt | None
    estimate: CostEstimate
    problem: str = ""

    @classmethod
    def for_session(cls, session: Session, rubric: Rubric) -> Self:
        """The preview of this session's prompt under a saved rubric or a draft."""
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
        """The expected cost of the call: of this prompt, and of a reply of the usual length."""
        if self.prompt is None:
            return None
        full = self.prompt.tokens * self.estimate.price_in + self.estimate.output_tokens * self.estimate.price_out
        return full / 1_000_000


def recent(limit: int) -> list[Session]:
    """The latest sessions; samples if there are no others."""
    latest = Session.objects.with_people().order_by("-ended_at", "-pk")
    return list(latest.yours()[:limit]) or list(latest.samples()[:limit])


def recent_sessions() -> list[dict[str, str]]:
    """The latest sessions as choices: the full name as `value`, and a `label`. Samples if there are no others."""
    return [{"value": full_name(row), "label": f"{row} {row.title}".strip()[:120]} for row in recent(RECENT)]


def full_name(session: Session) -> str:
    """The unique name of a session: agent/id."""
    return f"{session.agent.name}/{session.external_id}"


def find_session(text: str) -> tuple[Session | None, str]:
    """The session named by agent/id, by its id, or by the end of its id; or None, and the problem as a sentence."""
    text = text.replace("\0", "").strip()
    if not text:
        return None, ""
    sessions = Session.objects.with_people().order_by("-ended_at", "-pk")
    agent, _, external_id = text.partition("/")
    lookups = (
        {"agent__name": agent, "external_id": external_id},
        {"external_id": text},
        {"external_id__endswith": text},
    )
    for lookup in lookups:
        matches = list(sessions.filter(**lookup)[:SEVERAL])
        if len(matches) == 1:
            return matches[0], ""
        if matches:
            return None, f"Several sessions have an id that ends in “{text[:60]}”. Enter more characters of the id."
    return None, f"No session has the id “{text[:60]}” or an id that ends in it. The sessions list shows the ids."
