"""Alarm rules about single sessions: work that nobody has graded, evidence that is not its own, verdicts in doubt, and
what an agent says afterwards.
"""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Subquery, Value, When

from grading.evidence import material
from grading.models import Alarm, Artifact, Evidence, Flag, Grade, JudgeJob, Session
from grading.models.evidence import LINKS, ArtifactKind, EvidenceKind, Origin
from grading.models.judging import OPEN_STATES, JobState, JudgeRole, Purpose
from grading.models.sessions import yours
from grading.models.submissions import ProposedField
from grading.monitoring.flag_rule import (
    ALLOWED,
    UNKNOWN_HARNESS,
    Flagged,
    flag_rule,
    flagged,
    is_too_often,
    too_many_of_an_agent,
    total,
)
from grading.monitoring.judges import about_judge, judge_out
from grading.monitoring.rule import SOMETIMES, Finding, Severity, stamp
from grading.reward import rereading
from grading.reward.decide import MAX_ADDED, MAX_SPREAD, CurrentGrades, contests, gap, is_claimed
from grading.reward.explain import number
from grading.reward.rereading import CONTESTED
from grading.reward.rewards import CLAIMED_ABOVE, LATE_WORD, policy
from grading.reward.standing import CONTESTED_ABOVE
from grading.reward.trajectory import EvidenceView
from grading.vocabulary import NO_REWARD, Reason, Source
from grading.witness import Witness

# As long a job may wait for its verdict. A batch takes up to a day; what came in late goes after all that is new.
ORDINARY, BACKLOG = dt.timedelta(hours=36), dt.timedelta(days=14)
# What had ended longer ago than this when the judge was asked is history that was imported: nobody waits for it.
RECENT = dt.timedelta(days=14)
# How long a session in doubt may wait to be read again.
LONGEST_WAIT = dt.timedelta(days=2)
# The most claims that a flag lists, and the most characters of what an agent added afterwards.
MAX_CLAIMS, MAX_WORDS = 5, 200
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


def _summarize_ungraded(flags: Sequence[Flagged]) -> Iterable[Finding]:
    count, waiting = total(flags), sum(each.open for each in flags)
    if is_too_often(count):
        todo = "Something in the grading pipeline is broken: review them."
        if waiting == 0:
            todo = "None of them waits any more. Find out what broke, then acknowledge this alarm to close it."
        elif waiting < count:
            todo = f"{waiting} of them still wait{'s' * (waiting == 1)}. {todo}"
        yield Finding(
            detail=f"{count} sessions in seven days left a commit or pull request without a real grade; "
            f"{ALLOWED} would be normal. {todo}"
        )


@flag_rule(
    id="A1",
    title="No real grade for a pull request or commit",
    means=(
        "Flags a session that left a pull request or commit of its own, yet has no grade from a judge or a person "
        f"{ORDINARY / dt.timedelta(hours=1):.0f} hours after the judge was asked (or after it was given up), whatever "
        "its trajectory or journal says; at once if the judge is out, or if there is no judge and no trajectory saw "
        "the work either. Opens at the third such session in seven days. It looks at where a grade came from, never at "
        "its value."
    ),
    todo=(
        "Review these sessions, and check the quota page for what keeps the judge from answering. Once you know the "
        "cause, acknowledge the alarm: that closes it."
    ),
    settled="it has a real grade now, or one is on its way",
    is_rate=True,
    summarize=_summarize_ungraded,
)
def impossible_pair(session: Session, grades: CurrentGrades, now: dt.datetime) -> str:
    """The founding rule: work that everybody can see, and no grade that accounts for it.

    Where a judge was asked, only a verdict accounts for it, whatever a fallback says. Where nobody was ever asked, a
    trajectory that saw the work does: that there is no judge is reported elsewhere, once.
    """
    if any(source in grades and grades[source].is_verdict for source in (Source.JUDGE, Source.HUMAN)):
        return ""
    proof = independent_work(session)
    if not proof:
        return ""
    asked = _asked(session)
    if not lacks_verdict(asked, now, is_accounted=is_accounted(grades), fails=first_judge_fails):
        return ""
    if asked is None or not asked.is_overdue(now):
        return f"{proof}, but no reliable grade"
    waits = f"has waited for its verdict since {stamp(asked.at)}" if asked.is_open else "was given up"
    return f"{proof}, but no judge or person has graded it; it {waits}"


def lacks_verdict(asked: Asked | None, now: dt.datetime, *, is_accounted: bool, fails: Callable[[], bool]) -> bool:
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
    flags = Flag.objects.filter(session=OuterRef("pk"), rule=impossible_pair.id)
    grades = Grade.objects.chain().filter(session=OuterRef("pk"))
    graded = grades.filter(source=Source.HUMAN) | grades.verdicts()
    recent = jobs.exclude(reason=Reason.NOT_CONFIGURED).filter(session__ended_at__gt=F("created_at") - RECENT)
    waiting = Session.objects.yours().filter(pk__in=recent.values("session"))
    return waiting.filter(Exists(work), ~Exists(flags), ~Exists(graded)).order_by("pk")


def independent_work(session: Session) -> str:
    """The commits and pull requests that the caller observed itself, in words; empty where there are none."""
    facts = [row for row in session.artifacts.all() if row.origin == Origin.FACTS and row.owned_by_id is None]
    kinds = [row.kind for row in facts]
    counts = {kind: sum(1 for other in kinds if other == kind) for kind in set(kinds)}
    parts = [
        _plural(counts.get(ArtifactKind.PULL_REQUEST, 0), "pull request"),
        _plural(counts.get(ArtifactKind.COMMIT, 0), "commit"),
    ]
    return " and ".join(part for part in parts if part)


def is_accounted(grades: CurrentGrades) -> bool:
    """Whether a trajectory accounts for the work: it saw it in the log. One from facts alone repeats the caller's word.

    Conditions on the source, not the value: an honest judge may say .1 of a session with commits.
    """
    trajectory = grades.get(Source.TRAJECTORY)
    if trajectory is None or trajectory.value is None:
        return False
    return trajectory.value > policy().threshold and trajectory.view != EvidenceView.FACTS


def first_judge_fails() -> bool:
    """Whether an open alarm says that the first judge's calls fail."""
    return Alarm.objects.filter(rule=judge_out.id, about=about_judge(JudgeRole.FIRST), resolved_at=None).exists()


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


# What is shorter may well be the same by chance: "# Done", an empty patch.
LEAST_BYTES = 200
# Facts may well be the same: that all checks passed. Whose the commits in them are is asked elsewhere.
KINDS = (EvidenceKind.TRANSCRIPT, EvidenceKind.JOURNAL, EvidenceKind.PATCH)
# Of the files of one kind, the latest are looked at.
LATEST = 20


@flag_rule(
    id="A5",
    title="Two sessions share the same evidence",
    means=(
        "Flags a session whose only log, journal or patch (200 bytes or more) is byte for byte the same as another "
        "session’s, or whose only log says it belongs to another session. A subagent’s log may also appear under its "
        "parent. Opens at an agent’s third in seven days."
    ),
    todo="Check where the agent takes its files from: each session has its own log, named after the session’s id.",
    settled="it has evidence of its own now",
    summarize=too_many_of_an_agent(
        "{count} sessions of {agent} in seven days came with files already submitted for another session, or with its "
        "log. They would be graded on work that isn’t theirs."
    ),
)
def repeated(session: Session, _grades: CurrentGrades, _now: dt.datetime) -> str:
    """Whoever takes "the last log" instead of a session's own grades one session by the work of another."""
    files = [row for row in session.evidence.all() if row.kind in KINDS]
    hashes = {row.sha256 for row in files}
    is_own = not _is_elsewhere(session, hashes)
    if is_own and not any(row.problem == Reason.LOG_OVERWRITTEN for row in files):
        return ""
    # Each file's `earlier`: the first that was the same and had come for a session that is no part of this one, and
    # that this one is no part of.
    # The word of another graded agent is no such first, where somebody saw this one's file: it could be anybody's.
    same = Evidence.objects.filter(
        session__is_sample=session.is_sample, sha256=OuterRef("sha256"), kind__in=KINDS, pk__lt=OuterRef("pk")
    )
    own = Q(session__agent=session.agent_id)
    same = same.filter(own | ~Q(witness=Witness.CLAIMED) | Q(witness=OuterRef("witness")))
    others = same.exclude(session=session)
    others = others.exclude(session__log__part_of=session).exclude(session__parts__session=session)
    first = Subquery(others.order_by("pk").values("pk")[:1])
    rows = list(session.evidence.filter(kind__in=KINDS).annotate(earlier=first).order_by("pk"))
    problems = [problem for kind in KINDS if (problem := _foreign([row for row in rows if row.kind == kind]))]
    originals = Evidence.objects.select_related("session__agent").in_bulk([pk for pk, _words in problems if pk])
    words = []
    for pk, what in problems:
        if pk is None:
            words.append(what)
        elif pk in originals:
            file = originals[pk]
            words.append(f"{what} as the {file.kind} of session {file.session.external_id} of {file.session.agent}")
    return "; ".join(words)


def _is_elsewhere(session: Session, hashes: Collection[str]) -> bool:
    """Whether another session, a sample or not as this one, has a file with one of these hashes."""
    files = Evidence.objects.filter(session__is_sample=session.is_sample, sha256__in=hashes, kind__in=KINDS)
    return files.exclude(session=session).exists()


def _foreign(rows: Sequence[Evidence]) -> tuple[int | None, str] | None:
    """What is wrong with the last file of a kind, and the key of what it repeats, where none is the session's own."""
    if not rows or not all(_is_repeated(row) or row.problem == Reason.LOG_OVERWRITTEN for row in rows[-LATEST:]):
        return None
    last = rows[-1]
    if not _is_repeated(last):
        return None, last.detail or Reason.LOG_OVERWRITTEN.words
    return last.earlier, f"its {last.kind} ({last.size:,} bytes) had come before,"  # type: ignore[attr-defined] # annotated


def _is_repeated(row: Evidence) -> bool:
    return row.size >= LEAST_BYTES and row.earlier is not None  # type: ignore[attr-defined] # annotated


def _summarize_contended(flags: Sequence[Flagged]) -> Iterable[Finding]:
    count = total(flags)
    if is_too_often(count):
        yield Finding(
            detail=f"{count} sessions in seven days claimed what another agent's session had claimed before. Two "
            "agents send each other's logs or facts."
        )


@flag_rule(
    id="A34",
    title="Another agent’s work is claimed",
    means=(
        "Flags a session that claims a commit, pull request or log already claimed by another agent’s session. The "
        "earlier session keeps it. Opens at the third in seven days."
    ),
    todo=(
        "Look at the flagged sessions, and where each agent takes its logs and facts from. Once you know the cause, "
        "acknowledge the alarm: that closes it."
    ),
    settled="none of it belongs to another agent now",
    is_rate=True,
    summarize=_summarize_contended,
)
def contended(session: Session, _grades: CurrentGrades, _now: dt.datetime) -> str:
    """Two agents claim one thing. The first receipt holds; people look at both."""
    claims = material.owned_by_other_agents(session)
    if not claims:
        return ""
    more = f"; and {len(claims) - MAX_CLAIMS} more" if len(claims) > MAX_CLAIMS else ""
    text = f"session {session.external_id} of {session.agent} claims what another agent's session claimed first: "
    return text + "; ".join(claims[:MAX_CLAIMS]) + more


def _summarize_unreadable(flags: Sequence[Flagged]) -> Iterable[Finding]:
    counts: Counter[str] = Counter()
    for each in flags:
        counts[each.harness or UNKNOWN_HARNESS] += each.open
    for harness, count in sorted((+counts).items()):
        yield Finding(
            about=harness,
            detail=f"{count} {'log' if count == 1 else 'logs'} of {harness} in seven days could not be read well "
            "enough to grade: its format may have changed. The judge still reads them; no rule does.",
        )


@flag_rule(
    id="A4",
    title="A log can’t be read",
    means=(
        "Opens as soon as one log has more than 30 % unreadable calls, no shell call that shows its command, or no "
        "result that says whether its call worked and no visible effect either. Rules then grade from facts and patch "
        "only."
    ),
    todo=(
        "Check whether the harness’s version has changed since logs were last readable; update the site, then grade "
        "again."
    ),
    settled="its log is readable now",
    summarize=_summarize_unreadable,
)
def unreadable_log(_session: Session, grades: CurrentGrades, _now: dt.datetime) -> str:
    """A harness changed its log's format, and nobody noticed: its sessions would all look alike."""
    trajectory = grades.get(Source.TRAJECTORY)
    return trajectory.detail if trajectory is not None and trajectory.reason is Reason.FORMAT_BLIND else ""


@flag_rule(
    id="A35",
    title="A session says it doesn’t count, without evidence",
    means=(
        "Flags a session submitted as infrastructure or refused although neither its log nor its exit status shows "
        "that. It is graded as usual. Opens at an agent’s third open flag in seven days."
    ),
    severity=Severity.ADVISORY,
    settled="its log or exit status supports it now",
    summarize=too_many_of_an_agent(
        "{count} sessions of {agent} in seven days claimed an outcome that would leave them without a reward, and "
        "nothing supports it. See what they have in common.",
        only_open=True,
    ),
)
def unsupported_outcome(session: Session, _grades: CurrentGrades, _now: dt.datetime) -> str:
    """An agent may not take its own session out of the bandits."""
    if session.outcome_claimed not in NO_REWARD or session.outcome in NO_REWARD:
        return ""
    claim = f"{session.outcome_claimed} ({session.claim_reason})"
    return f"submitted as {claim}, which neither its log nor its exit status shows; graded as usual"


def _summarize_unsteady(flags: Sequence[Flagged]) -> Iterable[Finding]:
    count = total(flags)
    if is_too_often(count):
        yield Finding(
            detail=f"Of {count} sessions in seven days three readings of the judge are more than "
            f"{number(MAX_SPREAD)} apart."
        )


@flag_rule(
    id="A37",
    title="The judge’s readings of a session are far apart",
    means=(
        f"Flags a session with three readings more than {number(MAX_SPREAD)} apart; the median is the verdict. Opens "
        "at the third such session in seven days."
    ),
    todo="Grade them. If it keeps happening, look at where the readings differ: the rubric may not cover such work.",
    severity=Severity.ADVISORY,
    settled="it has a different verdict now",
    every=SOMETIMES,
    summarize=_summarize_unsteady,
)
def unsteady_judge(_session: Session, grades: CurrentGrades, _now: dt.datetime) -> str:
    """Three readings of one session, and as many opinions: its verdict says little about it."""
    judge = grades.get(Source.JUDGE)
    if judge is None or not judge.samples or judge.readings_agree or Source.HUMAN in grades:
        return ""
    readings = ", ".join(map(number, judge.samples))
    return f"the judge’s three readings are {number(judge.spread)} apart: {readings}; the median counts"


def _find_contested(now: dt.datetime) -> Iterable[Finding]:
    yield from contested.find_in(flagged(now).get(contested.id, ()))
    late = JudgeJob.objects.open().filter(yours(), purpose=Purpose.SAMPLE, created_at__lte=now - LONGEST_WAIT)
    if count := late.count():
        yield Finding(
            about="readings",
            detail=f"Sessions in doubt that have waited to be read again for more than two days: {count}. "
            "Until then the bandits learn little or nothing from them, and bad sessions may be among them. Extra "
            "readings come last: give the judge more budget or quota, or grade them yourself.",
        )


@flag_rule(
    id=CONTESTED,
    title="What a session left behind contradicts the judge",
    means=(
        f"Flags a session whose artifacts would be worth more than {number(CONTESTED_ABOVE)} above its current "
        "verdict, once the judge has read it three times or won’t read it again. Opens at an agent’s third such "
        "session in seven days, or when one has been waiting for the judge for two days."
    ),
    todo=(
        "Look at what it left behind. If it is filler, make the artifact rules stricter; if it is good, the rubric "
        "misses such work."
    ),
    settled="the judge and the artifacts agree now, or the judge will read it again",
    every=SOMETIMES,
    find=_find_contested,
    summarize=too_many_of_an_agent(
        "{count} sessions of {agent} in seven days left behind what would be worth far more than the judge says."
    ),
)
def contested(session: Session, grades: CurrentGrades, _now: dt.datetime) -> str:
    """Artifacts and judge contradict each other, and asking the judge again has not settled it, or only for the most
    part.
    """
    if Source.HUMAN in grades or not _is_judged(grades) or session.outcome in NO_REWARD or not contests(grades):
        return ""
    above = f"its artifacts would be worth {number(gap(grades))} more than the judge says"
    if grades[Source.JUDGE].readings_agree:
        return f"{above}, after three readings; they add {number(MAX_ADDED)} to the verdict, and no more"
    if rereading.is_coming(session):
        return ""
    return f"{above}, and the judge won’t read it again: until a person grades it, it counts little or nothing"


@flag_rule(
    id=CLAIMED_ABOVE,
    title="An agent claims far more than the judge saw",
    means=(
        "Flags a session whose artifacts, vouched for by its agent alone, would be worth more than "
        f"{number(CONTESTED_ABOVE)} above its verdict. The verdict stands. Opens at an agent’s third such session "
        "in seven days."
    ),
    todo=(
        "Check whether the claims are true. Either the agent makes them up, or the judge isn’t shown what it left "
        "behind."
    ),
    severity=Severity.ADVISORY,
    settled="the judge and the claims agree now",
    every=SOMETIMES,
    summarize=too_many_of_an_agent("{count} sessions of {agent} in seven days claim far more than the judge saw."),
)
def claimed_above(session: Session, grades: CurrentGrades, _now: dt.datetime) -> str:
    """An agent claims far more than its judge saw. The verdict stands; people are told."""
    if Source.HUMAN in grades or not _is_judged(grades) or session.outcome in NO_REWARD:
        return ""
    if gap(grades) <= CONTESTED_ABOVE or not is_claimed(grades):
        return ""
    return (
        f"the agent claims artifacts that would be worth {number(gap(grades))} more than the judge says; "
        "the verdict stands"
    )


def _is_judged(grades: CurrentGrades) -> bool:
    return Source.JUDGE in grades and grades[Source.JUDGE].value is not None


@flag_rule(
    id=LATE_WORD,
    title="An agent changes its story about a session",
    means=(
        "Flags a session about which its agent, or the hook beside it, says something new after a verdict or "
        "after the first hour: another outcome or category, other facts, dates or lessons. Also one whose end is "
        "dated before its decision or more than a week back. None of it counts until somebody adopts it. Opens at "
        "an agent’s third in seven days."
    ),
    todo="On each session’s page, adopt what is true and reject the rest.",
    settled="all of it has been answered",
    summarize=too_many_of_an_agent(
        "{agent} said something new of {count} of its sessions in seven days, after they had been graded or dated out "
        "of bounds. None of it counts. An agent that learns what it earns will try this: compare what it wanted "
        "changed with what those sessions are worth."
    ),
)
def late_word(session: Session, _grades: CurrentGrades, _now: dt.datetime) -> str:
    """Whoever is graded tries to take a session out, move it or date it once it is known what it is worth."""
    open_ = [row for row in session.proposals.all() if row.answered_at is None]
    words = [f"{ProposedField(row.field).words}: {row.summary}" for row in open_ if row.field != ProposedField.TITLE]
    return f"said afterwards, not adopted: {'; '.join(words)[:MAX_WORDS]}" if words else ""
