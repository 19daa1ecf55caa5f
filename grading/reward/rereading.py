"""Which sessions the judge is to read again, and which reading comes next.

It reads a session up to three times where its verdict matters more than usual: where it is far from what the rules make
of the session, where what was left behind contests it, and where the rule about such disagreements speaks. Once for
each state of the evidence, so that nobody has the dice thrown again by sending things: what counts is what the first
verdict had read, as far as that can make a verdict stale.
"""

import datetime as dt
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from grading.models import Flag, Grade, JudgeJob, JudgeKey, Rubric, Session
from grading.models.judging import JobState, Purpose
from grading.reward import one_scale, rewards
from grading.reward.decide import READINGS, Decision, contests, decide, fallback, gap
from grading.reward.explain import number
from grading.reward.freshness import EvidenceState
from grading.vocabulary import Outcome, Source

# A verdict so far from what the rules would give, on its own scale, is read again; and the rule that says so of numbers
# on their own scales.
APART = 0.4
DISAGREEMENT = "A3"
# The rule that tells people of what nobody settles by asking the judge again.
CONTESTED = "A38"
MISSED_WITHIN = dt.timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextReading:
    """The next reading: its number, from 2, the first verdict's row, the rubric that asked for it, and why."""

    number: int
    first: Grade
    rubric: Rubric
    why: str


def why_again(decision: Decision, *, rules: float | None, flagged: bool) -> str:
    """Why the judge should read a session again, in words; empty where it should not.

    `rules`: what the session would be worth without the judge, in [0, 1] on the judge's scale; None where that is not
    known. `flagged`: the rule about disagreements has flagged it.
    """
    judge = decision.holds.get(Source.JUDGE)
    if judge is None or judge.value is None or judge.stale or judge.samples or decision.decider in (Source.HUMAN, None):
        return ""
    if contests(decision.holds):
        return f"what the session left behind would be worth {number(gap(decision.holds))} more"
    if rules is not None and round(abs(judge.value - rules), 6) >= APART:
        return f"without the judge it would be worth {number(rules)}"
    return f"{DISAGREEMENT} speaks" if flagged else ""


def due(session: Session) -> NextReading | None:
    """The reading to be asked for now; None where none is wanted, one is under way, or they were asked for before."""
    if session.is_sample or not settings.JUDGE_MODEL:
        return None
    grades = rewards.chain_of(session)
    if not any(grade.source == Source.JUDGE and grade.value is not None for grade in grades):
        return None
    if not JudgeKey.objects.access().api_key:
        return None
    views, policy = rewards.views(grades), rewards.policy()
    decision = decide(views, policy, judge_open=False, outcome=Outcome(session.outcome))
    # What the session would be worth without the judge, on the judge's scale, once judged sessions have shown what that
    # is: raw, a trajectory's number is on another scale, and no measure of a judge.
    row = fallback(views, policy)
    grade = None if row is None else next(grade for grade in grades if grade.pk == row.id)
    read = None if grade is None else one_scale.of(session, grade)
    rules = read.value if read is not None and read.pairs else None
    flagged = Flag.objects.open().filter(session=session, rule=DISAGREEMENT).exists()
    why = why_again(decision, rules=rules, flagged=flagged)
    if not why:
        return None
    first = next(grade for grade in grades if grade.pk == decision.holds[Source.JUDGE].id)
    rubric = Rubric.objects.filter(sha256=first.rubric).first()
    jobs = session.judge_jobs.filter(purpose=Purpose.SAMPLE, rubric__sha256=first.rubric).select_related("sample_of")
    kept = jobs.exclude(state=JobState.CANCELLED).order_by("pk")
    # The further readings that were asked for of this state of the evidence, under this rubric.
    before = [job for job in kept if job.sample_of is not None and _state(job.sample_of) == _state(first)]
    goes_on = all(job.state == JobState.DONE and job.sample_of_id == first.pk for job in before)
    if rubric is None or not goes_on or len(before) >= READINGS - 1:
        return None
    return NextReading(number=len(before) + 2, first=first, rubric=rubric, why=why)


def missed(now: dt.datetime) -> QuerySet[Session]:
    """Sessions whose verdict became contested of late without anybody being asked: old ones under new rules, those
    whose correction was undone, or that settled while no judge was there.

    Of what artifacts decide, only a contested reward counts less than its source does.
    """
    own = rewards.policy().weights[Source.CONSUMPTION]
    contested = Q(reward_source=Source.CONSUMPTION, reward_final=False, reward_weight__lt=own)
    late = contested & Q(settlement__created_at__gt=now - MISSED_WITHIN)
    judged = Grade.objects.chain().verdicts().filter(session=OuterRef("pk"))
    asked = JudgeJob.objects.filter(session=OuterRef("pk"), purpose=Purpose.SAMPLE)
    told = Flag.objects.filter(session=OuterRef("pk"), rule=CONTESTED)
    return Session.objects.yours().filter(late, Exists(judged), ~Exists(asked), ~Exists(told)).order_by("pk")


def is_coming(session: Session) -> bool:
    """Whether a further reading is under way, or will be asked for."""
    return session.judge_jobs.open().filter(purpose=Purpose.SAMPLE).exists() or due(session) is not None


def is_wanted(job: JudgeJob) -> bool:
    """Whether a further reading still makes a difference: its first verdict holds, and no person has spoken."""
    holds = rewards.holding(job.session)
    judge, human = holds.get(Source.JUDGE), holds.get(Source.HUMAN)
    return human is None and judge is not None and judge.id == job.sample_of_id and not judge.samples


def _state(verdict: Grade) -> str:
    """The state of the evidence that a verdict has read."""
    read = EvidenceState.from_dict(verdict.evidence.get("read"))
    return verdict.inputs_sha256 if read is None else read.fingerprint
