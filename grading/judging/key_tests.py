"""Testing a judge's key: one small call through the judge's own client, on record with its price."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from grading import clock
from grading.judging import client
from grading.judging.allowance import quota
from grading.judging.core.verdict import DeferralScope, Deferred
from grading.judging.judges import Judge
from grading.models import JudgeKeyTest
from grading.models.judge_keys import HINT_LENGTH

# Nobody waits longer than this for a page.
SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTest:
    """What came of a test: the row, and what went wrong, None where the judge answered."""

    row: JudgeKeyTest
    trouble: Deferred | None

    @property
    def refused(self) -> bool:
        """The key, the model or the address is wrong: no later try would do better."""
        return self.trouble is not None and self.trouble.scope is DeferralScope.CONFIGURATION


def test(judge: Judge, by: User) -> KeyTest:
    """Ask once. The row is written first, so that nothing is sent unrecorded; of the key it holds the end alone."""
    row = begin(judge, by)
    said = client.greet(judge, seconds=min(SECONDS, settings.JUDGE_TIMEOUT))
    if said.trouble is not None:
        row.reason, row.detail = said.trouble.reason, said.trouble.detail
    finish(row, judge, said.model, said.row)
    return KeyTest(row=row, trouble=said.trouble)


def begin(judge: Judge, by: User | None = None) -> JudgeKeyTest:
    """The row of a call that judges no session, to be written before it."""
    return JudgeKeyTest.objects.create(
        hint=judge.api_key[-HINT_LENGTH:], model=judge.model, by=by, started_at=clock.now()
    )


def finish(row: JudgeKeyTest, judge: Judge, model: str, counts: Mapping[str, Any]) -> None:
    """Write down that a call is over. `model` is what answered, "" if nothing did; `counts` its tokens and cost."""
    row.finished_at, row.model = clock.now(), model or row.model
    # Whoever is asked may send back what it was asked with.
    row.detail = row.detail.replace(judge.api_key, f"…{row.hint}")
    for column in ("input_tokens", "output_tokens", "cost_usd"):
        setattr(row, column, counts.get(column))
    row.save()


def learn(judge: Judge, tested: KeyTest) -> None:
    """Let the test of the key in use move its quota, as any other call does."""
    at = {"started_at": tested.row.started_at, "now": clock.now()}
    if tested.trouble is None:
        quota.answered(judge, **at)
    else:
        quota.learn(judge, tested.trouble, **at)
