"""Which sessions the judge reads again, and which reading comes next.

The judge reads a session up to three times if its verdict is far from the grade that the session would have without a
judge, if what was left behind contests it, or if the alarm rule about such disagreements has flagged the session. This
happens once for each state of the evidence that the first verdict had read, so that nobody can repeat it by sending
more evidence.
"""

import datetime as dt
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from grading.models import Flag, Grade, JudgeJob, JudgeKey, Rubric, Session
from grading.models.judging import JobState, Purpose
from grading.reward import calibrating, rewards
from grading.reward.decide import MAX_READINGS, Decision, contests, decide, fallback, gap
from grading.reward.explain import number
from grading.reward.freshness import EvidenceState
from grading.vocabulary import Outcome, Source

# A session is read again if its verdict is this far from its grade without the judge, on the judge's scale.
MIN_DISTANCE = 0.4
# The alarm rule about verdicts that are far from a fallback's grade.
DISAGREEMENT = "A3"
# The alarm rule about contested verdicts that no further reading settles.
CONTESTED = "A38"
MAX_MISSED_AGE = dt.timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextReading:
    """The next reading: its number, from 2, the first verdict's row, the rubric that asked for it, and why."""

    number: int
    first: Grade
    rubric: Rubric
    why: str


def why_again(decision: Decision, *, without_judge: float | None, flagged: bool) -> str:
    """Why the judge should read a session again, as text; empty if it should not.

    `without_judge`: the grade that the session would have without the judge, in [0, 1] on the judge's scale; None if
    that is not known. `flagged`: the rule about disagreements has flagged it.
    """
    judge = decision.grades.get(Source.JUDGE)
    # There is no fresh verdict, it is the median of three already, or it makes no difference.
    if judge is None or judge.value is None or judge.stale or judge.samples or decision.decider in (Source.HUMAN, None):
        return ""
    if contests(decision.grades):
        return f"the session’s artifacts would earn {number(gap(decision.grades))} more"
    if without_judge is not None and round(abs(judge.value - without_judge), 6) >= MIN_DISTANCE:
        return f"without the judge, the reward would be {number(without_judge)}"
    return "a rule has flagged that judge and trajectory disagree" if flagged else ""


def next_reading(session: Session) -> NextReading | None:
    """The further reading to request now; None if none is needed, one is under way, or all were requested before.

    Those requested before are counted for the state of the evidence that the first verdict had read, and its rubric.
    """
    if session.is_sample or not settings.JUDGE_MODEL:
        return None
    grades = rewards.chain_of(session)
    if not any(grade.source == Source.JUDGE and grade.value is not None for grade in grades):
        return None
    if not JudgeKey.objects.access().api_key:
        return None
    views, policy = rewards.views(grades), rewards.policy()
    decision = decide(views, policy, judge_open=False, outcome=Outcome(session.outcome))
    # The grade without the judge is only known if judged sessions (`pairs`) have shown how to read it on the judge's
    # scale: raw grades of other sources can't be compared with a verdict.
    without_judge = None
    fallback_view = fallback(views, policy)
    if fallback_view is not None:
        fallback_grade = next(grade for grade in grades if grade.pk == fallback_view.id)
        calibrated = calibrating.calibrate(session, fallback_grade)
        without_judge = None if calibrated is None else calibrated.value
    flagged = Flag.objects.open().filter(session=session, rule=DISAGREEMENT).exists()
    why = why_again(decision, without_judge=without_judge, flagged=flagged)
    if not why:
        return None
    first = next(grade for grade in grades if grade.pk == decision.grades[Source.JUDGE].id)
    rubric = Rubric.objects.filter(sha256=first.rubric).first()
    jobs = session.judge_jobs.filter(purpose=Purpose.SAMPLE, rubric__sha256=first.rubric).select_related("sample_of")
    jobs = jobs.exclude(state=JobState.CANCELLED).order_by("pk")
    # The further readings requested for this state of the evidence. If an earlier first verdict on it had any, this one
    # gets none, so that asking for another verdict doesn't lead to more readings.
    earlier = [job for job in jobs if job.sample_of is not None and _read_state(job.sample_of) == _read_state(first)]
    all_done = all(job.state == JobState.DONE and job.sample_of_id == first.pk for job in earlier)
    if rubric is None or not all_done or len(earlier) >= MAX_READINGS - 1:
        return None
    return NextReading(number=len(earlier) + 2, first=first, rubric=rubric, why=why)


def contested_without_reading(now: dt.datetime) -> QuerySet[Session]:
    """Sessions whose contested reward was settled in the last week, with neither a further reading nor a flag.

    Settling requests a reading or leads to a flag. It may do neither for old sessions under new rules, after a
    correction was undone, or while no judge was available.
    """
    # A contested reward shows by its weight: of rewards that artifacts decide, only such ones are below their source's.
    source_weight = rewards.policy().weights[Source.CONSUMPTION]
    contested = Q(reward_source=Source.CONSUMPTION, reward_final=False, reward_weight__lt=source_weight)
    recent = contested & Q(settlement__created_at__gt=now - MAX_MISSED_AGE)
    verdicts = Grade.objects.chain().verdicts().filter(session=OuterRef("pk"))
    readings = JudgeJob.objects.filter(session=OuterRef("pk"), purpose=Purpose.SAMPLE)
    flags = Flag.objects.filter(session=OuterRef("pk"), rule=CONTESTED)
    return Session.objects.yours().filter(recent, Exists(verdicts), ~Exists(readings), ~Exists(flags)).order_by("pk")


def is_coming(session: Session) -> bool:
    """Whether a further reading is under way, or will be requested."""
    return session.judge_jobs.open().filter(purpose=Purpose.SAMPLE).exists() or next_reading(session) is not None


def is_wanted(job: JudgeJob) -> bool:
    """Whether a further reading still matters: its first verdict is current, and no person has graded the session."""
    grades = rewards.current_grades(job.session)
    judge, human = grades.get(Source.JUDGE), grades.get(Source.HUMAN)
    return human is None and judge is not None and judge.id == job.sample_of_id and not judge.samples


def _read_state(verdict: Grade) -> str:
    """The state of the evidence that a verdict has read; for an old verdict that doesn't say, its inputs' hash."""
    read = EvidenceState.from_dict(verdict.evidence.get("read"))
    return verdict.inputs_sha256 if read is None else read.fingerprint
