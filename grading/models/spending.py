"""What sessions used of models and what that cost, and the prices that people typed."""

from collections.abc import Iterable
from decimal import Decimal

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from grading.models.fields import enum_field, one_of, redacted_char
from grading.models.sessions import MICRODOLLARS, Session
from grading.vocabulary import LabelledEnum

# A price column has ten-thousandths of a dollar for a million tokens.
PRICE_UNITS = 10_000
MAX_PRICE = 1_000 * PRICE_UNITS
PRICE_COLUMNS = ("input_price", "cached_price", "cache_write_price", "output_price")
TOKEN_COLUMNS = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens")
# The most tokens of a kind in a row. With the highest price, a row's cost fits into 64 bits.
MAX_ROW_TOKENS = 10**11


class CostBasis(LabelledEnum):
    """What the cost of a usage row is computed from."""

    TOKENS = "tokens", "its tokens, at the model’s prices"
    REPORTED = "reported", "reported by the caller or its log"


class SessionUsage(models.Model):
    """The tokens that a session used of a model on a day of the site's zone, and their cost in millionths of a dollar.

    `input_tokens` are those that were not cached. `list_cost_micro` is the cost at the published prices, `cost_micro`
    that at the prices that apply here; None means unknown. A session whose tokens or prices are not all known, but
    whose cost was reported, has one more row with the basis REPORTED. Its `list_cost_micro` is the whole reported cost,
    and its `cost_micro` the part of it that the priced rows do not explain.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="usage", db_index=False)
    model = redacted_char(max_length=120, blank=True)
    day = models.DateField()
    basis = enum_field(CostBasis, default=CostBasis.TOKENS)
    input_tokens = models.BigIntegerField(null=True)
    cached_tokens = models.BigIntegerField(null=True)
    cache_write_tokens = models.BigIntegerField(null=True)
    output_tokens = models.BigIntegerField(null=True)
    list_cost_micro = models.BigIntegerField(null=True)
    cost_micro = models.BigIntegerField(null=True)

    class Meta:
        ordering = ["day", "model"]
        verbose_name_plural = "session usage"
        constraints = [
            models.UniqueConstraint(fields=["session", "day", "model", "basis"], name="usage_once"),
            one_of("sessionusage", "basis", CostBasis),
            models.CheckConstraint(
                condition=Q(input_tokens=None, cached_tokens=None, cache_write_tokens=None, output_tokens=None)
                | Q(
                    input_tokens__range=(0, MAX_ROW_TOKENS),
                    cached_tokens__range=(0, MAX_ROW_TOKENS),
                    cache_write_tokens__range=(0, MAX_ROW_TOKENS),
                    output_tokens__range=(0, MAX_ROW_TOKENS),
                ),
                name="usage_tokens_in_range",
            ),
            models.CheckConstraint(condition=Q(cost_micro=None) | Q(cost_micro__gte=0), name="usage_cost_not_negative"),
        ]
        indexes = [
            models.Index(fields=["day"], name="usage_by_day"),
            models.Index(fields=["model", "day"], name="usage_by_model"),
        ]

    def __str__(self) -> str:
        return f"{self.model or 'an unnamed model'} on {self.day} in {self.session}"

    @classmethod
    def reported(cls, session: Session, priced: int) -> "SessionUsage":
        """The unsaved row of the cost that was reported for a session, of which its rows explain `priced`."""
        assert session.cost_usd is not None  # noqa: S101 - the caller has checked it
        whole = round(session.cost_usd * MICRODOLLARS)
        return cls(
            session=session,
            model=session.model,
            day=timezone.localdate(session.ended_at),
            basis=CostBasis.REPORTED,
            list_cost_micro=whole,
            cost_micro=max(0, whole - priced),
        )


def sum_tokens(rows: Iterable[SessionUsage]) -> dict[str, int] | None:
    """The tokens of a session by column, None if there are none or those of some row are unknown."""
    counted = [row for row in rows if row.basis == CostBasis.TOKENS]
    if not counted or any(row.input_tokens is None for row in counted):
        return None
    return {name: sum(getattr(row, name) for row in counted) for name in TOKEN_COLUMNS}


class MessageClaim(models.Model):
    """A session whose logs contain the message of a model. One of the sessions with a message owns it
    (`grading.spending.messages`), and only that session pays for it.
    """

    pk = models.CompositePrimaryKey("message", "session_id")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="message_claims")
    message = models.BigIntegerField()  # a hash of the provider's id

    def __str__(self) -> str:
        return f"message {self.message:x} of {self.session}"


class ModelPrice(models.Model):
    """What a model costs from a day on, as a person typed it: it takes precedence over the published price.

    Prices are ten-thousandths of a dollar for a million tokens.
    """

    # As the transcripts name it.
    model = redacted_char(max_length=120)
    valid_from = models.DateField()
    input_price = models.PositiveIntegerField()
    cached_price = models.PositiveIntegerField()
    cache_write_price = models.PositiveIntegerField()
    output_price = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        ordering = ["model", "-valid_from"]
        constraints = [
            models.UniqueConstraint(fields=["model", "valid_from"], name="model_price_once_a_day"),
            models.CheckConstraint(condition=~Q(model=""), name="model_price_has_model"),
            models.CheckConstraint(
                condition=Q(
                    input_price__lte=MAX_PRICE,
                    cached_price__lte=MAX_PRICE,
                    cache_write_price__lte=MAX_PRICE,
                    output_price__lte=MAX_PRICE,
                ),
                name="model_price_in_range",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} from {self.valid_from}"

    def describe(self) -> str:
        """The prices as text: "$3 input, $0.30 cached input, $3.75 cache writes, $15 output"."""
        names = ("input", "cached input", "cache writes", "output")
        prices = [_exact_dollars(getattr(self, column)) for column in PRICE_COLUMNS]
        return ", ".join(f"{price} {name}" for price, name in zip(prices, names, strict=True))


def _exact_dollars(units: int) -> str:
    """A price column with as many digits as it has: $3, $0.30, $0.0375."""
    price = Decimal(units) / PRICE_UNITS
    for digits in (0, 2):
        if price == round(price, digits):
            return f"${price:.{digits}f}"
    return f"${price.normalize():f}"
