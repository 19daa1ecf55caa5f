"""What judging should cost and how long it should take, from what the last verdicts took."""

from dataclasses import dataclass
from statistics import fmean

from django.conf import settings

from grading.judging import inputs, judges
from grading.judging.allowance import limiter, prices
from grading.judging.core import forecast, prompt
from grading.judging.core.forecast import Pace
from grading.judging.core.prompt import Case
from grading.judging.outlook.standing import headroom, standings
from grading.models import JudgeAttempt, JudgePolicy, Rubric
from grading.models.judging import AttemptOutcome, JudgeRole

# The means are over this many of the latest verdicts.
LATEST = 200
# The assumed output tokens of a verdict before the first one.
UNKNOWN_OUTPUT = 700
MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """`count` verdicts of `input_tokens` and `output_tokens` each, at prices in dollars per million tokens.

    The token counts are means of `measured` verdicts; without any, the input is the longest possible prompt. `discount`
    is the share of the price that is paid: batches cost half.
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
        """Dollars per verdict for its input, without the discount."""
        return self.input_tokens * self.price_in / MILLION

    @property
    def out_usd(self) -> float:
        """Dollars per verdict for its output, without the discount."""
        return self.output_tokens * self.price_out / MILLION

    @property
    def each_usd(self) -> float:
        return (self.in_usd + self.out_usd) * self.discount

    @property
    def usd(self) -> float:
        return self.count * self.each_usd


def estimate(count: int, rubric: Rubric) -> CostEstimate:
    """The expected cost of `count` verdicts under a rubric, from the tokens of the latest verdicts.

    The input is the rubric's length and the mean length of the evidence.
    """
    judge = judges.first()
    model = judge.model if judge else settings.JUDGE_MODEL
    price_in, price_out = prices.per_million(model)
    latest = JudgeAttempt.objects.filter(
        outcome=AttemptOutcome.GRADED, input_tokens__gt=0, output_tokens__gt=0, model__startswith=model
    ).order_by("-pk")
    columns = ("job__rubric", "output_tokens", "input_tokens", "cache_read_tokens", "cache_write_tokens")
    rows = list(latest.values_list(*columns)[:LATEST])
    rubric_ids = {rubric_id for rubric_id, *_tokens in rows}
    rubric_tokens = {row.pk: _rubric_tokens(row) for row in Rubric.objects.filter(pk__in=rubric_ids)}
    longest = float(settings.JUDGE_INPUT_TOKENS)
    evidence: list[int] = []
    output: list[int] = []
    for rubric_id, output_tokens, *input_tokens in rows:
        evidence.append(max(sum(filter(None, input_tokens)) - rubric_tokens[rubric_id], 0))
        output.append(output_tokens)
    return CostEstimate(
        count=count,
        input_tokens=min(_rubric_tokens(rubric) + fmean(evidence), longest) if evidence else longest,
        output_tokens=fmean(output) if output else UNKNOWN_OUTPUT,
        price_in=price_in,
        price_out=price_out,
        measured=len(rows),
        discount=settings.JUDGE_BATCH_PRICE if JudgePolicy.objects.current().use_batches else 1.0,
    )


def pace(estimate: CostEstimate) -> Pace | None:
    """The pace of verdicts of this size under the provider's latest limits; None if they are not known yet."""
    first = standings().get(JudgeRole.FIRST)
    if first is None:
        return None
    per_verdict = {"requests": 1.0, "input_tokens": estimate.input_tokens, "output_tokens": estimate.output_tokens}
    return forecast.pace(headroom(first).limits, per_verdict, share=limiter.PACE)


def _rubric_tokens(rubric: Rubric) -> int:
    """The tokens of a prompt with this rubric and no evidence."""
    return prompt.build(Case(metadata={}), inputs.rubric_text(rubric), budget=settings.JUDGE_INPUT_TOKENS).tokens
