"""Which harness and model does best on the work of this site?"""

import datetime as dt
from dataclasses import replace

from django.utils import timezone
from pydantic import TypeAdapter, ValidationError

from bandit.models import Arm
from grading.insight.bridges import load_pairs
from grading.insight.changes import rank_graders
from grading.insight.core.bridge import fit_scale
from grading.insight.core.like_work import compare_on_like_work
from grading.insight.core.results import AgentCard, Span
from grading.insight.loading import CellFilter, last_weeks, load_cells
from grading.models import Session, Settlement, StoredReading
from grading.models.readings import last_keys

MEASURES = ("reward", "cost", "minutes")
# The cards of this many weeks are stored for pages.
WEEKS = 10
STORED_NAME = "insight agents"
STORED_FORM = TypeAdapter(tuple[AgentCard, ...])


def compare_agents(span: Span, *, filters: CellFilter | None = None) -> tuple[AgentCard, ...]:
    """A card for each harness and model with sessions in the span, the one with the most sessions first. Four
    queries.
    """
    columns = ("category", "project", "harness", "model", "grader")
    table = load_cells(span, columns=columns, measures=MEASURES, filters=filters)
    graders = rank_graders(table, "reward")
    cards = compare_on_like_work(table, MEASURES, fit_scale(graders, load_pairs(span, graders)))
    titles = {arm.name: str(arm) for arm in Arm.objects.filter(bandit__name="harness")}
    return tuple(replace(card, title=titles.get(card.harness, card.harness)) for card in cards)


def latest_cards() -> tuple[AgentCard, ...]:
    """The cards of all sessions of the last WEEKS, as the worker last stored them. Empty if it has stored none yet."""
    stored = StoredReading.objects.filter(name=STORED_NAME).first()
    try:
        return () if stored is None else STORED_FORM.validate_python(stored.value)
    except ValidationError:  # stored by another version
        return ()


def store(now: dt.datetime) -> None:
    """Store the cards for pages, if sessions, rewards or the day changed since."""
    inputs = f"{timezone.localdate(now)} {last_keys(Session, Settlement)}"
    span = last_weeks(now, WEEKS)
    StoredReading.objects.renew(
        STORED_NAME, inputs, lambda: STORED_FORM.dump_python(compare_agents(span), mode="json"), now
    )
