"""Judges two known logs once a day: if their grades change, the grading has changed.

They pass through the reader, the signals, the trajectory grade, the judge's prompt, the call and the score. They are
not sessions: only `CanaryRun` and the call's cost are stored, so that no list, figure or bandit contains them.
"""

import datetime as dt
from io import BytesIO
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from grading import clock, formats
from grading.judging import client, inputs, judges, key_tests, reader, results
from grading.judging.allowance import budget, limiter, quota
from grading.judging.core.order import LogBytes, PromptOrder
from grading.judging.core.prompt import Case
from grading.judging.core.ratelimits import CallCost
from grading.judging.core.verdict import Deferred, Graded
from grading.judging.core.verdict_score import VERSION
from grading.judging.judges import Judge
from grading.models import CanaryRun, JudgePolicy, Rubric
from grading.models.canary import Canary
from grading.models.quota import QuotaState
from grading.reward import trajectory
from grading.reward.production import collect
from grading.reward.trajectory import TrajectoryInput
from grading.signals import extract
from grading.signals.facts import ObservedFacts
from grading.vocabulary import Reason, WorkKind

LOGS = Path(__file__).parent / "canaries"


def run_due(now: dt.datetime) -> list[CanaryRun]:
    """Judge both canaries, unless that was done today, no judge is available, or the budget is spent."""
    judge = judges.first()
    rubric = Rubric.objects.active(WorkKind.PRODUCTION)
    if not settings.CANARY or judge is None or rubric is None:
        return []
    if quota.current(judge).state != QuotaState.OPEN:  # a probe is for a session that waits
        return []
    return [run for canary in Canary if (run := _judge(canary, judge, rubric, now)) is not None]


def _judge(canary: Canary, judge: Judge, rubric: Rubric, now: dt.datetime) -> CanaryRun | None:
    """Judge one canary. None if that was done today, or if the day's budget does not allow the call."""
    data = (LOGS / f"{canary}.jsonl").read_bytes()
    signals = extract(formats.read(BytesIO(data)))
    production = collect(signals)
    trajectory_grade = trajectory.grade(TrajectoryInput(signals=signals, production=production, facts=ObservedFacts()))
    case = Case(metadata={"kind of work": "code"}, signals=signals, production=production)
    # The prompt is built by the same process as the prompts of sessions.
    order = PromptOrder(
        case=case,
        logs=[LogBytes(data=data, filename=f"{canary}.jsonl")],
        foreign=frozenset(),
        rubric=inputs.rubric_text(rubric),
        budget=settings.JUDGE_INPUT_TOKENS,
        smaller=1.0,
        chars_per_token=limiter.shared().characters_per_token(judge.name),
    )
    prompt = reader.shared().fill(order)
    expected = CallCost(input_tokens=prompt.tokens, output_tokens=client.MAX_OUTPUT_TOKENS)
    limit = JudgePolicy.objects.current().daily_budget_usd
    if limit is not None and budget.spent_today(now) + budget.estimate(judge, expected) > limit:
        return None  # not by `budget.affords`, which would also hold back the calls for sessions until midnight
    row, is_new = CanaryRun.objects.get_or_create(
        canary=canary,
        day=timezone.localdate(now),
        defaults={
            "rubric": rubric.sha256,
            "version": VERSION,
            "trajectory": trajectory_grade.value,
            "trajectory_version": trajectory_grade.version,
        },
    )
    if not is_new:
        return None
    call = key_tests.begin(judge)
    row.call = call
    row.save()  # before the call, so that the call is on record as a canary's
    outcome = client.send(judge, prompt, rubric)
    row.model = outcome.model or judge.model
    row.route = judge.route
    if isinstance(outcome.result, Graded):
        scored = results.compute_score(outcome.result, rubric)
        row.verdict = None if scored is None else scored.value
    else:
        call.reason = outcome.result.reason if isinstance(outcome.result, Deferred) else Reason.UNPARSABLE_VERDICT
        call.detail = outcome.result.detail
    key_tests.finish(call, judge, outcome.model, outcome.row)
    row.save()
    quota.learn(judge, outcome.result, started_at=call.started_at, now=clock.now())
    return row
