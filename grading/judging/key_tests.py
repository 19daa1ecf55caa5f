"""Testing a judge's key: one small call through the judge's own client, recorded with its cost."""

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

# The longest test call, in seconds: a person is waiting for the page.
SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTest:
    """The row of a test, and its `error`: None if the judge answered."""

    row: JudgeKeyTest
    error: Deferred | None

    @property
    def refused(self) -> bool:
        """Whether the key, the model or the address is wrong, so that a retry cannot help."""
        return self.error is not None and self.error.scope is DeferralScope.CONFIGURATION


def test(judge: Judge, by: User) -> KeyTest:
    """Make the test call. Its row is written first, so that every call is on record."""
    row = begin(judge, by)
    error, model, counts = client.greet(judge, seconds=min(SECONDS, settings.JUDGE_TIMEOUT))
    if error is not None:
        row.reason = error.reason
        row.detail = error.detail
    finish(row, judge, model, counts)
    return KeyTest(row=row, error=error)


def begin(judge: Judge, by: User | None = None) -> JudgeKeyTest:
    """Create the row of a call that judges no session. Done before the call. Of the key, only its last characters are
    stored.
    """
    return JudgeKeyTest.objects.create(
        hint=judge.api_key[-HINT_LENGTH:], model=judge.model, by=by, started_at=clock.now()
    )


def finish(row: JudgeKeyTest, judge: Judge, model: str, counts: Mapping[str, Any]) -> None:
    """Record the end of a call. `model` is the model that answered, empty without an answer. `counts` are the token
    counts and the cost, by column.
    """
    row.finished_at = clock.now()
    row.model = model or row.model
    # The service may echo the key.
    row.detail = row.detail.replace(judge.api_key, f"…{row.hint}")
    for column in ("input_tokens", "output_tokens", "cost_usd"):
        setattr(row, column, counts.get(column))
    row.save()


def learn(judge: Judge, tested: KeyTest) -> None:
    """Update the judge's quota by a test of the key in use, as any other call does."""
    times = {"started_at": tested.row.started_at, "now": clock.now()}
    if tested.error is None:
        quota.reopen_after_answer(judge, **times)
    else:
        quota.learn(judge, tested.error, **times)
