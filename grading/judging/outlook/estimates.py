"""What judging should cost and how long it should take, from what the last verdicts took."""

from dataclasses import dataclass

from django.conf import settings

from grading.judging import inputs, judges
from grading.judging.allowance import limiter, prices
from grading.judging.core import forecast, prompt
from grading.judging.core.forecast import Pace
from grading.judging.core.prompt import Case
from grading.judging.outlook.standing import headroom, standings
from grading.models import JudgeAttempt, JudgePolicy, Rubric
from grading.models.judging import AttemptOutcome, JudgeRole

# The means are of this many verdicts at most, and before the first one a reply is taken to be this long.
LATEST, UNKNOWN_OUTPUT = 200, 700
MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """`count` verdicts at `input_tokens` and `output_tokens` each, prices in dollars a million tokens.

    `measured` verdicts stand behind the token counts; with none, the input is the most that a prompt may hold.
    `discount` is the share of the price that is paid: batches cost half.
    """

    count: int
    input_tokens: float
    output_tokens: float
    price_in: float
    price_out: float
    measured: int
    discount: float = 1.0

    @property
    def in_usd(self) -> float:
        """Dollars for what is read, a verdict."""
        return self.input_tokens * self.price_in / MILLION

    @property
    def out_usd(self) -> float:
        """Dollars for what is written, a verdict."""
        return self.output_tokens * self.price_out / MILLION

    @property
    def each_usd(self) -> float:
        return (self.in_usd + self.out_usd) * self.discount

    @property
    def usd(self) -> float:
        return self.count * self.each_usd


def estimate(count: int, rubric: Rubric) -> CostEstimate:
    """What `count` verdicts under a rubric should cost: what the last ones took, for this rubric's length."""
    judge = judges.first()
    model = judge.model if judge else settings.JUDGE_MODEL
    price_in, price_out = prices.per_million(model)
    latest = JudgeAttempt.objects.filter(
        outcome=AttemptOutcome.GRADED, input_tokens__gt=0, output_tokens__gt=0, model__startswith=model
    ).order_by("-pk")
    columns = ("job__rubric", "output_tokens", "input_tokens", "cache_read_tokens", "cache_write_tokens")
    rows = list(latest.values_list(*columns)[:LATEST])
    lengths = {row.pk: _length(row) for row in Rubric.objects.filter(pk__in={row[0] for row in rows})}
    most = float(settings.JUDGE_INPUT_TOKENS)
    read = [max(sum(filter(None, tokens)) - lengths[pk], 0) for pk, _, *tokens in rows]
    written = [tokens for _, tokens, *_ in rows]
    return CostEstimate(
        count=count,
        input_tokens=min(_length(rubric) + sum(read) / len(read), most) if read else most,
        output_tokens=sum(written) / len(written) if written else UNKNOWN_OUTPUT,
        price_in=price_in,
        price_out=price_out,
        measured=len(rows),
        discount=settings.JUDGE_BATCH_PRICE if JudgePolicy.objects.current().use_batches else 1.0,
    )


def pace(estimate: CostEstimate) -> Pace | None:
    """How fast verdicts of this size can come, by the limits that the provider last named; None until it has."""
    first = standings().get(JudgeRole.FIRST)
    if first is None:
        return None
    each = {"requests": 1.0, "input_tokens": estimate.input_tokens, "output_tokens": estimate.output_tokens}
    return forecast.pace(headroom(first).limits, each, share=limiter.PACE)


def _length(rubric: Rubric) -> int:
    """Tokens of the prompt before any evidence."""
    return prompt.build(Case(metadata={}), inputs.rubric_text(rubric), budget=settings.JUDGE_INPUT_TOKENS).tokens
