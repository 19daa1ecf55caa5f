"""Work that no judge and no person has graded (A1)."""

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Case, Exists, F, OuterRef, QuerySet, Value, When

from grading.models import Alarm, Artifact, Flag, Grade, JudgeJob, Session
from grading.models.evidence import LINKS, ArtifactKind, Origin
from grading.models.judging import OPEN_STATES, JobState, JudgeRole, Purpose
from grading.monitoring.flag_rule import ALLOWED, Flagged, FlagRule, is_too_often, total
from grading.monitoring.judges import JudgeOut, about_judge
from grading.monitoring.rule import Finding, stamp
from grading.reward.decide import CurrentGrades
from grading.reward.rewards import policy
from grading.reward.trajectory import EvidenceView
from grading.vocabulary import Reason, Source

# As long a job may wait for its verdict. A batch takes up to a day; what came in late goes after all that is new.
ORDINARY, BACKLOG = dt.timedelta(hours=36), dt.timedelta(days=14)
# What had ended longer ago than this when the judge was asked is history that was imported: nobody waits for it.
RECENT = dt.timedelta(days=14)
# What keeps every session from being judged until somebody does something about it.
OUT = frozenset({Reason.QUOTA_EXHAUSTED, Reason.AUTH})


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """That a judge was asked for a verdict, when, and what has become of it. `is_backlog`: new sessions go first;
    `is_history`: it had ended long before; `is_held_up`: nobody is judged until somebody does something about it.
    """

    at: dt.datetime
    is_open: bool
    is_backlog: bool
    is_history: bool
    is_held_up: bool

    def is_overdue(self, now: dt.datetime) -> bool:
        """Whether the verdict should be there: it was given up, or has taken longer than it should."""
        is_late = now - self.at >= (BACKLOG if self.is_backlog else ORDINARY)
        return not self.is_open or (is_late and not self.is_history)


class ImpossiblePair(FlagRule):
    """The founding rule: work that everybody can see, and no grade that accounts for it.

    Where a judge was asked, only a verdict accounts for it, whatever a fallback says. Where nobody was ever asked, a
    trajectory that saw the work does: that there is no judge is said elsewhere, once.
    """

    id = "A1"
    title = "No real grade for a pull request or commit"
    means = (
        "Opens at the third session in seven days that left a pull request or commit of its own, yet has no grade "
        f"from a judge or a person {ORDINARY / dt.timedelta(hours=1):.0f} hours after the judge was asked (or "
        "after it was given up), whatever its trajectory or journal says. Opens at once if the judge is out, or "
        "if there is no judge and no trajectory saw the work either. It looks at where a grade came from, never "
        "at its value."
    )
    todo = "Review these sessions, and check the quota page for what keeps the judge from answering."
    settled = "it has a real grade now, or one is on its way"
    is_rate = True

    def finding(self, session: Session, holds: CurrentGrades, now: dt.datetime) -> str:
        if any(source in holds and holds[source].is_verdict for source in (Source.JUDGE, Source.HUMAN)):
            return ""
        proof = independent_work(session)
        if not proof:
            return ""
        asked = _asked(session)
        if not speaks(asked, now, is_accounted=is_accounted(holds), fails=first_judge_fails):
            return ""
        if asked is None or not asked.is_overdue(now):
            return f"{proof}, but no judge, person or log above the floor has graded it"
        waits = f"has waited for its verdict since {stamp(asked.at)}" if asked.is_open else "was given up"
        return f"{proof}, but no judge or person has graded it; it {waits}"

    def told(self, flags: Sequence[Flagged]) -> Iterable[Finding]:
        count, waiting = total(flags), sum(each.open for each in flags)
        if is_too_often(count) and not self.has_known_cause(flags):
            todo = "Something in the grading pipeline is broken: review them."
            if waiting == 0:
                todo = "None of them waits any more. Find out what broke, then acknowledge this alarm to close it."
            elif waiting < count:
                todo = f"{waiting} of them still wait{'s' * (waiting == 1)}. {todo}"
            yield Finding(
                detail=f"{count} sessions in seven days left a commit or pull request without a real grade; "
                f"{ALLOWED} would be normal. {todo}"
            )


def speaks(asked: Asked | None, now: dt.datetime, *, is_accounted: bool, fails: Callable[[], bool]) -> bool:
    """Whether work without a verdict is a finding now. `asked` None: no judge was. `fails`: the judge's calls do.

    A verdict that is overdue is one whatever a fallback says. Before that, only what nothing accounts for, and only
    where nobody was asked or the judge is out.
    """
    if asked is not None and asked.is_overdue(now):
        return True
    return not is_accounted and (asked is None or asked.is_held_up or fails())


def overdue(now: dt.datetime) -> QuerySet[Session]:
    """Sessions whose work has waited too long for its verdict, and that have not been flagged for it."""
    # One comparison: of two with "or" between them the database takes the index of `created_at`, and reads all jobs.
    limit = Case(When(backlog=True, then=Value(now - BACKLOG)), default=Value(now - ORDINARY))
    jobs = JudgeJob.objects.open().filter(created_at__lte=limit, purpose=Purpose.VERDICT)
    work = Artifact.objects.owned().filter(session=OuterRef("pk"), origin=Origin.FACTS, kind__in=LINKS)
    known = Flag.objects.filter(session=OuterRef("pk"), rule=ImpossiblePair.id)
    said = Grade.objects.chain().filter(session=OuterRef("pk"))
    graded = said.filter(source=Source.HUMAN) | said.verdicts()
    recent = jobs.exclude(reason=Reason.NOT_CONFIGURED).filter(session__ended_at__gt=F("created_at") - RECENT)
    waiting = Session.objects.yours().filter(pk__in=recent.values("session"))
    return waiting.filter(Exists(work), ~Exists(known), ~Exists(graded)).order_by("pk")


def independent_work(session: Session) -> str:
    """The commits and pull requests that the caller observed itself, in words; empty where there are none."""
    facts = [row for row in session.artifacts.all() if row.origin == Origin.FACTS and row.owned_by_id is None]
    kinds = [row.kind for row in facts]
    counts = {kind: sum(1 for seen in kinds if seen == kind) for kind in set(kinds)}
    parts = [
        _plural(counts.get(ArtifactKind.PULL_REQUEST, 0), "pull request"),
        _plural(counts.get(ArtifactKind.COMMIT, 0), "commit"),
    ]
    return " and ".join(part for part in parts if part)


def is_accounted(holds: CurrentGrades) -> bool:
    """Whether a trajectory accounts for the work: it saw it in the log. One from facts alone repeats the caller's word.

    Conditions on the source, not the value: an honest judge may say .1 of a session with commits.
    """
    trajectory = holds.get(Source.TRAJECTORY)
    if trajectory is None or trajectory.value is None:
        return False
    return trajectory.value > policy().threshold and trajectory.view != EvidenceView.FACTS


def first_judge_fails() -> bool:
    """Whether an open alarm says that the first judge's calls fail."""
    return Alarm.objects.filter(rule=JudgeOut.id, about=about_judge(JudgeRole.FIRST), resolved_at=None).exists()


def _asked(session: Session) -> Asked | None:
    """The last time a judge was asked about it; None where none was, a person called it off, there was nothing to ask,
    or there is no judge any more.
    """
    jobs = session.judge_jobs.filter(purpose=Purpose.VERDICT, state__in=(*OPEN_STATES, JobState.ABANDONED))
    job = jobs.exclude(reason=Reason.NOT_CONFIGURED).order_by("-pk").first()
    if job is None:
        return None
    return Asked(
        at=job.created_at,
        is_open=job.state in OPEN_STATES,
        is_backlog=job.backlog,
        is_history=session.ended_at <= job.created_at - RECENT,
        is_held_up=job.reason in OUT,
    )


def _plural(count: int, noun: str) -> str:
    return "" if count == 0 else f"{count} {noun}" + ("" if count == 1 else "s")
