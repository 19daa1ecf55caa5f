"""Adds up what a session used and what it cost, and stores both.

own logs and subagents' ─► each response once ─► without messages that other sessions own ─► rows by model and day
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from django.utils import timezone

from grading.evidence import ownership, store
from grading.evidence.material import graded_logs
from grading.evidence.usage import ModelResponse, load_usage
from grading.models import ModelPrice, Session, SessionUsage
from grading.models.spending import MAX_ROW_TOKENS, TOKEN_COLUMNS, sum_tokens
from grading.plain import plain_text
from grading.spending import messages
from grading.spending.prices import PublishedPrices, Tokens, price_on
from grading.vocabulary import CostUnknown

# The most rows of a session, about: responses of further days count for the day on which the session ended.
MAX_ROWS = 1_000
ROW_COLUMNS = ("model", "day", "basis", *TOKEN_COLUMNS, "list_cost_micro", "cost_micro")
# The counts of a response by the column of a row.
COUNTS = {
    "input_tokens": "input_tokens",
    "cached_tokens": "cache_read_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "output_tokens": "output_tokens",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionResponses:
    """The responses in a session's logs. `problem` says why they do not show what it used, or is None."""

    responses: Sequence[ModelResponse] = ()
    problem: CostUnknown | None = None


def record(session: Session) -> None:
    """Store what a session used and cost. Do the same for other sessions that lose or regain messages by it.

    Runs in the caller's transaction, after `ownership.lock`, once `ownership.update` has decided which logs count.
    """
    loaded = load_responses(session)
    claimed = [response.message for response in loaded.responses if response.message is not None]
    foreign, others = messages.update_claims(session, claimed)
    _store(session, loaded, foreign)
    for other in Session.objects.filter(pk__in=others).with_people().prefetch_related("evidence"):
        _store(other, load_responses(other), messages.foreign_messages(other))


def load_responses(session: Session) -> SessionResponses:
    """The responses in the logs of a session and its subagents, each once. Records of other sessions are left out.

    Empty, with a problem, for a subagent's session: the responses of its root session include its own.
    """
    log = store.log_of(session)
    if log is not None and log.part_of_id is not None:
        return SessionResponses(problem=CostUnknown.ELSEWHERE)
    rows = graded_logs(session)
    if not rows:
        return SessionResponses(problem=CostUnknown.NO_LOG)
    foreign_records = ownership.foreign_records(session)
    by_message: dict[int, ModelResponse] = {}
    without_message: list[ModelResponse] = []
    records_of_earlier_logs: set[int] = set()
    has_foreign = False
    for row in rows:
        try:
            usage = load_usage(row)
        except (store.Damaged, store.Gone):
            return SessionResponses(problem=CostUnknown.NO_LOG)
        if not usage.is_whole:
            return SessionResponses(problem=CostUnknown.NO_TOKENS)
        for response in usage.responses:
            if response.record in foreign_records:
                has_foreign = True
            elif response.message is not None:
                earlier = by_message.get(response.message)
                # A log that was copied while the response was streamed has fewer of its tokens.
                if earlier is None or response.output_tokens > earlier.output_tokens:
                    by_message[response.message] = response
            elif response.record not in records_of_earlier_logs:
                without_message.append(response)
        records_of_earlier_logs |= {response.record for response in usage.responses if response.record is not None}
    responses = [*by_message.values(), *without_message]
    if not responses:
        return SessionResponses(problem=CostUnknown.ELSEWHERE if has_foreign else CostUnknown.NO_TOKENS)
    return SessionResponses(responses=responses)


def _store(session: Session, loaded: SessionResponses, foreign: frozenset[int]) -> None:
    """Replace the session's usage rows by those of the loaded responses without the `foreign` messages, and update its
    cost columns.
    """
    problem = loaded.problem
    own_responses = [response for response in loaded.responses if response.message not in foreign]
    if loaded.responses and not own_responses:
        problem = CostUnknown.ELSEWHERE
    rows = usage_rows(session, own_responses)
    known_costs = [row.cost_micro for row in rows if row.cost_micro is not None]
    if len(known_costs) < len(rows):
        has_all_tokens = all(row.input_tokens is not None for row in rows)
        problem = CostUnknown.NO_PRICE if has_all_tokens else CostUnknown.NO_TOKENS
    # If the tokens do not show the cost, the reported cost counts.
    if problem not in {None, CostUnknown.ELSEWHERE} and session.cost_usd is not None:
        rows.append(SessionUsage.reported(session, sum(known_costs)))
        problem = None
    stored = set(session.usage.values_list(*ROW_COLUMNS))
    if stored != {tuple(getattr(row, name) for name in ROW_COLUMNS) for row in rows}:
        if stored:
            session.usage.all().delete()
        SessionUsage.objects.bulk_create(rows)
    tokens = sum_tokens(rows)
    session.tokens = None if tokens is None else sum(tokens.values())
    session.cost_micro = None if problem else sum(row.cost_micro or 0 for row in rows)
    session.cost_unknown = problem or ""
    Session.objects.filter(pk=session.pk).update(
        tokens=session.tokens, cost_micro=session.cost_micro, cost_unknown=session.cost_unknown
    )


def usage_rows(session: Session, responses: Sequence[ModelResponse]) -> list[SessionUsage]:
    """Unsaved usage rows of these responses, by model and day.

    A response without a model gets the session's model. A response without a plausible time gets the session's end.
    """
    groups = defaultdict[tuple[str, dt.date], list[tuple[ModelResponse, dt.datetime]]](list)
    earliest = (session.started_at or session.ended_at).timestamp()
    for response in responses:
        at = session.ended_at
        if response.at is not None and earliest <= response.at <= session.ended_at.timestamp():
            at = dt.datetime.fromtimestamp(response.at, dt.UTC)
        model = plain_text(response.model or session.model)
        day = timezone.localdate(at)
        if (model, day) not in groups and len(groups) >= MAX_ROWS:
            day = timezone.localdate(session.ended_at)
        groups[model, day].append((response, at))
    published = PublishedPrices()
    typed = list(ModelPrice.objects.filter(model__in={model for model, _day in groups}))
    rows = []
    for (model, day), group in sorted(groups.items(), key=lambda item: item[0]):
        row = SessionUsage(session=session, model=model, day=day)
        rows.append(row)
        counts = {column: sum(getattr(response, name) for response, _at in group) for column, name in COUNTS.items()}
        is_known = all(response.is_known for response, _at in group)
        if not is_known or max(counts.values()) > MAX_ROW_TOKENS:
            continue  # the row's tokens and cost stay unknown
        for column, count in counts.items():
            setattr(row, column, count)
        list_cost = published.cost(model, group)
        if list_cost is not None:
            row.list_cost_micro = int(list_cost.quantize(Decimal(1), rounding=ROUND_HALF_UP))
        price = price_on(typed, model, day)
        row.cost_micro = row.list_cost_micro if price is None else Tokens(**counts).cost_at(price)
    return rows
