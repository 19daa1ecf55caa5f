"""Prices that people type, and what they change: the cost of the sessions that used the model. Nothing else moves.

A typed price is valid from its day until the day of the next typed price. It takes precedence over the published price.
"""

import datetime as dt

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, Exists, F, OuterRef, QuerySet, Subquery, Sum, Value, When
from django.utils import timezone

from grading.access.recording import record
from grading.evidence import ownership
from grading.models import Agent, ModelPrice, Session, SessionUsage
from grading.models.audit import AuditKind
from grading.models.spending import PRICE_COLUMNS, PRICE_UNITS, CostBasis
from grading.vocabulary import CostUnknown


@transaction.atomic
def set_price(price: ModelPrice, *, by: User) -> int:
    """Save a typed price, and price the sessions that used the model. Returns the number of these sessions.

    An earlier typed price of the same model and day is replaced.
    """
    ownership.lock()  # an intake at the same time prices by the old prices or by the new ones, but not by both
    columns = {name: getattr(price, name) for name in PRICE_COLUMNS}
    earlier = ModelPrice.objects.filter(model=price.model, valid_from=price.valid_from).first()
    saved, _created = ModelPrice.objects.update_or_create(
        model=price.model,
        valid_from=price.valid_from,
        defaults={**columns, "created_at": timezone.now(), "created_by": by},
    )
    detail = f"before: {earlier.describe()}" if earlier else ""
    record(AuditKind.PRICE, f"set the price of {saved}: {saved.describe()}", detail=detail)
    return reprice(saved.model)


@transaction.atomic
def remove_price(price: ModelPrice) -> int:
    """Delete a typed price: the typed price before it is valid again, or else the published price. Returns the number
    of sessions that used the model.
    """
    ownership.lock()
    record(AuditKind.PRICE, f"removed the price of {price}: {price.describe()}")
    price.delete()
    return reprice(price.model)


@transaction.atomic
def set_subscription(agent: Agent, *, has_subscription: bool) -> None:
    """Say whether an agent's models are paid by a subscription. No cost changes, only what pages call it."""
    if agent.has_subscription == has_subscription:
        return
    agent.has_subscription = has_subscription
    agent.save(update_fields=["has_subscription"])
    record(AuditKind.PRICE, f"said that {agent} runs {'on a' if has_subscription else 'without a'} subscription")


def reprice(model: str) -> int:
    """Price the sessions that used a model again, from their stored tokens. Returns their number.

    It takes a few statements, however many sessions there are: about 2 s for 200,000.
    """
    rows = SessionUsage.objects.filter(model=model, basis=CostBasis.TOKENS)
    until = dt.date.max
    for price in ModelPrice.objects.filter(model=model).order_by("-valid_from"):
        rows.filter(day__gte=price.valid_from, day__lt=until).update(cost_micro=_cost_at(price))
        until = price.valid_from
    rows.filter(day__lt=until).update(cost_micro=F("list_cost_micro"))
    used = Session.objects.filter(pk__in=rows.values("session"))
    _replace_reported(used)
    return _update_sessions(used)


def _cost_at(price: ModelPrice) -> F:
    """The cost of a row's tokens, as `prices.Tokens.cost_at` computes it. NULL if its tokens are unknown."""
    units = (
        F("input_tokens") * price.input_price
        + F("cached_tokens") * price.cached_price
        + F("cache_write_tokens") * price.cache_write_price
        + F("output_tokens") * price.output_price
    )
    return (units + PRICE_UNITS // 2) / PRICE_UNITS  # type: ignore[return-value]  # a combined expression


def _replace_reported(sessions: QuerySet[Session]) -> None:
    """Replace the rows of reported costs. Only a session with tokens of unknown cost has such a row. It has the part of
    the reported cost that the session's other rows do not explain.
    """
    SessionUsage.objects.filter(session__in=sessions, basis=CostBasis.REPORTED).delete()
    unknown = SessionUsage.objects.filter(session=OuterRef("pk"), cost_micro=None)
    incomplete = sessions.filter(Exists(unknown), cost_usd__isnull=False).annotate(priced=Sum("usage__cost_micro"))
    SessionUsage.objects.bulk_create(
        SessionUsage.reported(session, vars(session)["priced"] or 0) for session in incomplete.iterator()
    )


def _update_sessions(sessions: QuerySet[Session]) -> int:
    """Update the cost columns of these sessions from their rows, as `recording` does. Returns their number."""
    usage = SessionUsage.objects.filter(session=OuterRef("pk")).order_by()
    is_unknown = Exists(usage.filter(cost_micro=None)) & ~Exists(usage.filter(basis=CostBasis.REPORTED))
    has_no_tokens = Exists(usage.filter(input_tokens=None, basis=CostBasis.TOKENS))
    total = usage.values("session").annotate(total=Sum("cost_micro")).values("total")
    return Session.objects.filter(pk__in=sessions.values("pk")).update(
        cost_micro=Case(When(is_unknown, then=None), default=Subquery(total)),
        cost_unknown=Case(
            When(is_unknown & has_no_tokens, then=Value(CostUnknown.NO_TOKENS.value)),
            When(is_unknown, then=Value(CostUnknown.NO_PRICE.value)),
            default=Value(""),
        ),
    )
