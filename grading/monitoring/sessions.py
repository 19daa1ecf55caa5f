"""Flag rules about single sessions: ungraded work, evidence of other sessions, doubtful verdicts, and what an agent
submits afterwards.
"""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

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
    is_too_often,
    recent_flags,
    too_many,
    too_many_of_an_agent,
)
from grading.monitoring.judges import about_judge, judge_out
from grading.monitoring.rule import SOMETIMES, Finding, Severity, stamp
from grading.plain import counted
from grading.reward import rereading
from grading.reward.decide import MAX_ADDED, MAX_SPREAD, CurrentGrades, contests, gap, is_claimed
from grading.reward.explain import number
from grading.reward.rereading import CONTESTED
from grading.reward.rewards import CLAIMED_ABOVE, LATE_WORD, policy
from grading.reward.standing import CONTESTED_ABOVE
from grading.reward.trajectory import EvidenceView
from grading.vocabulary import NO_REWARD, Reason, Source
from grading.witness import Witness

# How long a job may wait for its verdict. A batch takes up to a day; the backlog is judged after all new sessions.
ORDINARY, BACKLOG = dt.timedelta(hours=36), dt.timedelta(days=14)
# A session that had ended longer ago than this when its verdict was requested is imported history, which may wait.
RECENT = dt.timedelta(days=14)
# How long a doubtful session may wait for another reading.
LONGEST_WAIT = dt.timedelta(days=2)
# The most claims that a flag lists, and the most characters of what an agent submitted afterwards.
MAX_CLAIMS, MAX_CHARACTERS = 5, 200
# Reasons for which nothing is judged until somebody acts.
OUTAGES = frozenset({Reason.QUOTA_EXHAUSTED, Reason.AUTH})


def _summarize_ungraded(flags: Sequence[Flagged]) -> Iterable[Finding]:
    """A finding if too many sessions were flagged. It says how many of them still wait for a grade."""
    count = sum(flagged.n for flagged in flags)
    waiting = sum(flagged.open for flagged in flags)
    if is_too_often(count):
        todo = "The page of each session says why."
        if waiting == 0:
            todo = (
                "None of these sessions waits any more. Find out what was broken, then acknowledge this alarm to "
                "close it."
            )
        elif waiting < count:
            verb = "waits" if waiting == 1 else "wait"
            todo = f"{waiting} of these sessions still {verb}. {todo}"
        yield Finding(
            detail=f"{count} sessions in seven days made a commit or pull request and got no real grade in time. "
            f"{ALLOWED} would be normal. {todo}"
        )


@flag_rule(
    id="A1",
    title="No real grade for a pull request or commit",
    means=(
        "Flags a session that made a pull request or commit but has no grade from a judge or a person in time, even if "
        "it has a trajectory or journal grade. Time is up "
        f"{ORDINARY / dt.timedelta(hours=1):.0f} hours after the verdict was requested or given up, or at once if the "
        "judge is out, or if there is no judge and no trajectory saw the work. An alarm opens at the third such "
        "session in seven days. The rule looks at "
        "where a grade came from, never at its value."
    ),
    todo=(
        "Review these sessions, and check on the quota page why the judge doesn’t answer. Once you know the cause, "
        "acknowledge the alarm to close it."
    ),
    settled="it has a real grade now, or will get one",
    is_rate=True,
    summarize=_summarize_ungraded,
)
def impossible_pair(session: Session, grades: CurrentGrades, now: dt.datetime) -> str:
    """Why the session should be flagged; empty if it shouldn't be.

    It should be if it left work that everybody can see, and no grade accounts for that work. A judge's or a person's
    verdict always accounts for it. A trajectory grade does if the trajectory saw the work, unless a requested verdict
    is overdue. (A site without a judge has an alarm of its own.)
    """
    if any(source in grades and grades[source].is_verdict for source in (Source.JUDGE, Source.HUMAN)):
        return ""
    work = independent_work(session)
    if not work:
        return ""
    # The last request for the session's verdict. There is none if a person cancelled it, there was nothing to judge, or
    # there is no judge any more.
    jobs = session.judge_jobs.filter(purpose=Purpose.VERDICT, state__in=(*OPEN_STATES, JobState.ABANDONED))
    job = jobs.exclude(reason=Reason.NOT_CONFIGURED).order_by("-pk").first()
    if not lacks_verdict(job, now, is_accounted=is_accounted(grades), judge_fails=first_judge_fails):
        return ""
    if job is None or not is_overdue(job, now):
        return f"{work}, but no reliable grade"
    wait = f"has waited for its verdict since {stamp(job.created_at)}" if job.is_open else "was given up"
    return f"{work}, but no judge or person has graded the session; it {wait}"


def lacks_verdict(
    job: JudgeJob | None, now: dt.datetime, *, is_accounted: bool, judge_fails: Callable[[], bool]
) -> bool:
    """Whether a session with work but without a verdict should be flagged now.

    `job` is the last request for the verdict, `is_accounted` says whether a fallback grade accounts for the work, and
    `judge_fails` returns whether the judge's calls fail (it is called only if that matters). An overdue verdict is
    flagged whatever the fallback grade. Otherwise a session is flagged only if no fallback grade accounts for its work
    and no verdict can be expected, because none was requested or the judge is out.
    """
    if job is not None and is_overdue(job, now):
        return True
    return not is_accounted and (job is None or job.reason in OUTAGES or judge_fails())


def is_overdue(job: JudgeJob, now: dt.datetime) -> bool:
    """Whether the judge gave up, or has taken longer than it should. The verdict of imported history may wait."""
    is_late = now - job.created_at >= (BACKLOG if job.backlog else ORDINARY)
    return not job.is_open or (is_late and job.session.ended_at > job.created_at - RECENT)


def overdue(now: dt.datetime) -> QuerySet[Session]:
    """Sessions whose work has waited too long for its verdict, and that have not been flagged for it."""
    # A single comparison: with two joined by "or", the database would use the index of `created_at` and read all jobs.
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
    """The commits and pull requests that the caller observed itself, as text; empty if there are none."""
    artifacts = (row for row in session.artifacts.all() if row.origin == Origin.FACTS and row.owned_by_id is None)
    counts = Counter(row.kind for row in artifacts)
    nouns = ((ArtifactKind.PULL_REQUEST, "pull request"), (ArtifactKind.COMMIT, "commit"))
    return " and ".join(counted(n, noun) for kind, noun in nouns if (n := counts[kind]))


def is_accounted(grades: CurrentGrades) -> bool:
    """Whether a trajectory grade shows that the trajectory saw the work in the log.

    A trajectory from facts alone doesn't count: it only repeats what the caller claims. Only this fallback grade is
    compared with the threshold, never a verdict: an honest judge may give .1 to a session with commits.
    """
    trajectory = grades.get(Source.TRAJECTORY)
    if trajectory is None or trajectory.value is None:
        return False
    return trajectory.value > policy().threshold and trajectory.view != EvidenceView.FACTS


def first_judge_fails() -> bool:
    """Whether there is an open alarm about the first judge's calls."""
    return Alarm.objects.filter(rule=judge_out.id, about=about_judge(JudgeRole.FIRST), resolved_at=None).exists()


# Shorter files may be equal by chance: "# Done", an empty patch.
LEAST_BYTES = 200
# Not facts: they may be equal by chance, for example that all checks passed. Another rule checks who owns the commits
# in them.
COMPARED_KINDS = (EvidenceKind.TRANSCRIPT, EvidenceKind.JOURNAL, EvidenceKind.PATCH)
# How many of the latest files of a kind are compared.
LATEST_FILES = 20


@flag_rule(
    id="A5",
    title="Two sessions share the same evidence",
    means=(
        "Flags a session whose only log, journal or patch (200 bytes or more) is identical to another session’s, or "
        "whose only log says that it belongs to another session. A subagent’s log may also appear under its parent. "
        "An alarm opens at an agent’s third such session in seven days."
    ),
    todo="Check which files the agent sends. Each session has its own log, named after the session’s id.",
    settled="it has evidence of its own now",
    summarize=too_many_of_an_agent(
        "In seven days, {count} sessions of {agent} came with another session’s log or files. They would be graded "
        "on work that isn’t theirs."
    ),
)
def repeated(session: Session, _grades: CurrentGrades, _now: dt.datetime) -> str:
    """Which evidence of the session is another session's, as text; empty if none is.

    An agent that submits "the last log" instead of each session's own has sessions graded on others' work.
    """
    files = [row for row in session.evidence.all() if row.kind in COMPARED_KINDS]
    others = Evidence.objects.filter(session__is_sample=session.is_sample, kind__in=COMPARED_KINDS)
    others = others.exclude(session=session)
    has_copies = others.filter(sha256__in={row.sha256 for row in files}).exists()
    if not has_copies and not any(row.problem == Reason.LOG_OVERWRITTEN for row in files):
        return ""
    # `earlier` is the first copy of a file, unless it came with a parent or subagent of this session. If this session's
    # file was observed, a copy that another agent only claims to have doesn't count: it could be anybody's.
    earlier = others.filter(sha256=OuterRef("sha256"), pk__lt=OuterRef("pk"))
    is_of_same_agent = Q(session__agent=session.agent_id)
    earlier = earlier.filter(is_of_same_agent | ~Q(witness=Witness.CLAIMED) | Q(witness=OuterRef("witness")))
    earlier = earlier.exclude(session__log__part_of=session).exclude(session__parts__session=session)
    rows = session.evidence.filter(kind__in=COMPARED_KINDS)
    rows = rows.annotate(earlier=Subquery(earlier.order_by("pk").values("pk")[:1]))
    by_kind: dict[str, list[Evidence]] = defaultdict(list)
    for row in rows.order_by("pk"):
        by_kind[row.kind].append(row)
    problems = []
    for kind in COMPARED_KINDS:
        latest = by_kind[kind][-LATEST_FILES:]
        if not latest or not all(_is_copy(row) or row.problem == Reason.LOG_OVERWRITTEN for row in latest):
            continue
        last = latest[-1]
        if not _is_copy(last):
            problems.append(last.detail or Reason.LOG_OVERWRITTEN.words)
            continue
        originals = Evidence.objects.select_related("session__agent")
        original = originals.filter(pk=last.earlier).first()  # type: ignore[attr-defined] # annotated
        if original is not None:
            problems.append(
                f"its {last.kind} ({last.size:,} bytes) was submitted before, as the {original.kind} of session "
                f"{original.session.external_id} of {original.session.agent}"
            )
    return "; ".join(problems)


def _is_copy(row: Evidence) -> bool:
    return row.size >= LEAST_BYTES and row.earlier is not None  # type: ignore[attr-defined] # annotated


@flag_rule(
    id="A34",
    title="Another agent’s work is claimed",
    means=(
        "Flags a session that claims a commit, pull request or log that another agent’s session has already "
        "claimed. The earlier session keeps it. An alarm opens at the third such session in seven days."
    ),
    todo=(
        "Look at the flagged sessions, and check which logs and facts each agent sends. Once you know the cause, "
        "acknowledge the alarm to close it."
    ),
    settled="none of it belongs to another agent now",
    is_rate=True,
    summarize=too_many(
        "In seven days, {count} sessions claimed commits, pull requests or logs that another agent’s session had "
        "claimed before. Two agents send each other’s logs or facts."
    ),
)
def contended(session: Session, _grades: CurrentGrades, _now: dt.datetime) -> str:
    """Which work of the session another agent claimed first, as text; empty if none.

    The claim that was received first counts, and people look at both sessions.
    """
    claims = material.owned_by_other_agents(session)
    if not claims:
        return ""
    more = f"; and {len(claims) - MAX_CLAIMS} more" if len(claims) > MAX_CLAIMS else ""
    text = f"session {session.external_id} of {session.agent} claims what another agent's session claimed first: "
    return text + "; ".join(claims[:MAX_CLAIMS]) + more


def _summarize_unreadable(flags: Sequence[Flagged]) -> Iterable[Finding]:
    """A finding for each harness with open flags."""
    counts: Counter[str] = Counter()
    for flagged in flags:
        counts[flagged.harness or UNKNOWN_HARNESS] += flagged.open
    for harness, count in sorted(counts.items()):
        if not count:
            continue
        yield Finding(
            about=harness,
            detail=f"In seven days, {count} {'log' if count == 1 else 'logs'} of {harness} could not be parsed well "
            "enough to grade. The log format may have changed. The judge still reads such logs, but the "
            "trajectory doesn’t.",
        )


@flag_rule(
    id="A4",
    title="A log can’t be read",
    means=(
        "Opens as soon as one log has more than 30 % unreadable calls, more calls of unknown tools than of known "
        "ones, no shell call that shows its command, or neither a visible effect nor a result that says whether its "
        "call worked. The trajectory then grades only from facts and patch."
    ),
    todo=(
        "Check whether the harness’s version has changed since its logs were last readable. Update the site, then "
        "grade the sessions again."
    ),
    settled="its log is readable now",
    summarize=_summarize_unreadable,
)
def unreadable_log(_session: Session, grades: CurrentGrades, _now: dt.datetime) -> str:
    """Why the session's log can't be read, as text; empty if it can.

    Without this rule, all sessions of a harness that has changed its log's format would look alike.
    """
    trajectory = grades.get(Source.TRAJECTORY)
    return trajectory.detail if trajectory is not None and trajectory.reason is Reason.FORMAT_BLIND else ""


@flag_rule(
    id="A35",
    title="A session says it doesn’t count, without evidence",
    means=(
        "Flags a session submitted as “infrastructure” or “refused” although neither its log nor its exit status "
        "shows that. The session is graded as usual. An alarm opens at an agent’s third open flag in seven days."
    ),
    severity=Severity.ADVISORY,
    settled="its log or exit status supports it now",
    summarize=too_many_of_an_agent(
        "In seven days, {count} sessions of {agent} claimed an outcome that would leave them without a reward, "
        "without any evidence for it. Check what these sessions have in common.",
        only_open=True,
    ),
)
def unsupported_outcome(session: Session, _grades: CurrentGrades, _now: dt.datetime) -> str:
    """The outcome that the agent claimed without evidence, as text; empty if there is none.

    An agent may not take its own session out of the bandits.
    """
    if session.outcome_claimed not in NO_REWARD or session.outcome in NO_REWARD:
        return ""
    claim = f"{session.outcome_claimed} ({session.claim_reason})"
    return f"submitted as {claim}, which neither its log nor its exit status shows; graded as usual"


@flag_rule(
    id="A37",
    title="The judge’s readings of a session are far apart",
    quotes_verdict=True,
    means=(
        f"Flags a session whose three readings are more than {number(MAX_SPREAD)} apart. The median is the verdict. "
        "An alarm opens at the third such session in seven days."
    ),
    todo=(
        "Grade these sessions. If this keeps happening, check where the readings differ. The rubric may not cover "
        "such work."
    ),
    severity=Severity.ADVISORY,
    settled="it has a different verdict now",
    every=SOMETIMES,
    summarize=too_many(
        f"In seven days, the judge’s three readings of {{count}} sessions were more than {number(MAX_SPREAD)} apart."
    ),
)
def unsteady_judge(_session: Session, grades: CurrentGrades, _now: dt.datetime) -> str:
    """How far the three readings of the session are apart, as text; empty if they agree.

    If they differ widely, the verdict says little about the session.
    """
    judge = grades.get(Source.JUDGE)
    if judge is None or not judge.samples or judge.readings_agree or Source.HUMAN in grades:
        return ""
    readings = ", ".join(map(number, judge.samples))
    return f"the judge’s three readings are {number(judge.spread)} apart: {readings}; the median counts"


def _find_contested(now: dt.datetime) -> Iterable[Finding]:
    """The findings from the rule's flags, and one about sessions that wait too long to be read again."""
    yield from contested.summarize_flags(recent_flags(now).get(CONTESTED, ()))
    late = JudgeJob.objects.open().filter(yours(), purpose=Purpose.SAMPLE, created_at__lte=now - LONGEST_WAIT)
    if count := late.count():
        yield Finding(
            about="readings",
            detail=f"Contested sessions that have waited more than two days for another reading: {count}. Until then, "
            "the bandits learn little or nothing from them, and some of them may be bad. Extra readings come "
            "last in the queue. Give the judge more budget or quota, or grade the sessions yourself.",
        )


@flag_rule(
    id=CONTESTED,
    title="What a session left behind contradicts the judge",
    quotes_verdict=True,
    means=(
        f"Flags a session whose artifacts would earn over {number(CONTESTED_ABOVE)} more than its verdict, once the "
        "judge has read the session three times or won’t read it again. An alarm opens at an agent’s third such "
        "session in seven days, or when one has waited for the judge for two days."
    ),
    todo=(
        "Look at the session’s artifacts. If they are filler, make the artifact rules stricter. If they are good, "
        "the rubric misses such work."
    ),
    settled="the judge and the artifacts agree now, or the judge will read it again",
    every=SOMETIMES,
    find=_find_contested,
    summarize=too_many_of_an_agent(
        "In seven days, {count} sessions of {agent} left artifacts that would earn far more than the judge’s verdicts."
    ),
)
def contested(session: Session, grades: CurrentGrades, _now: dt.datetime) -> str:
    """How artifacts and judge contradict each other, as text; empty if they don't or another reading may settle it."""
    if Source.HUMAN in grades or not _is_judged(grades) or session.outcome in NO_REWARD or not contests(grades):
        return ""
    above = f"its artifacts would earn {number(gap(grades))} more than the judge’s verdict"
    if grades[Source.JUDGE].readings_agree:
        return f"{above}, even after three readings; they add at most {number(MAX_ADDED)} to the verdict"
    if rereading.is_coming(session):
        return ""
    return f"{above}, and the judge won’t read the session again; until a person grades it, it counts little or nothing"


@flag_rule(
    id=CLAIMED_ABOVE,
    title="An agent claims far more than the judge saw",
    quotes_verdict=True,
    means=(
        f"Flags a session whose artifacts would earn over {number(CONTESTED_ABOVE)} more than its verdict, but only "
        "the agent vouches for them. The verdict stands. An alarm opens at an agent’s third such session in seven "
        "days."
    ),
    todo="Check whether the claims are true. Either the agent makes them up, or the judge doesn’t see the artifacts.",
    severity=Severity.ADVISORY,
    settled="the judge and the claims agree now",
    every=SOMETIMES,
    summarize=too_many_of_an_agent("In seven days, {count} sessions of {agent} claimed far more than the judge saw."),
)
def claimed_above(session: Session, grades: CurrentGrades, _now: dt.datetime) -> str:
    """How much more the agent claims than the judge saw, as text; empty if it isn't far more. The verdict stands."""
    if Source.HUMAN in grades or not _is_judged(grades) or session.outcome in NO_REWARD:
        return ""
    if gap(grades) <= CONTESTED_ABOVE or not is_claimed(grades):
        return ""
    return (
        f"the agent claims artifacts that would earn {number(gap(grades))} more than the judge’s verdict; the "
        "verdict stands"
    )


def _is_judged(grades: CurrentGrades) -> bool:
    return Source.JUDGE in grades and grades[Source.JUDGE].value is not None


@flag_rule(
    id=LATE_WORD,
    title="An agent changes its story about a session",
    means=(
        "Flags a session if its agent or hook changes a claim about it after a verdict or after the first hour: its "
        "outcome, category, facts, dates or lessons. Also flags a session whose end is dated before its decision, more "
        "than a week back, or later than now. Such claims don’t count until somebody adopts them. An alarm opens at "
        "an agent’s third such session in seven days."
    ),
    todo="On each session’s page, adopt the claims that are true and reject the others.",
    settled="all its claims have been answered",
    summarize=too_many_of_an_agent(
        "In seven days, {agent} changed its claims about {count} sessions after they had been graded, or dated them "
        "outside the allowed time. None of these claims counts. An agent that knows its rewards may try this. "
        "Compare the claims with what these sessions are worth."
    ),
)
def late_word(session: Session, _grades: CurrentGrades, _now: dt.datetime) -> str:
    """The agent's later claims about the session that nobody has answered, as text; empty if there are none.

    An agent may try to withdraw, recategorise or redate a session once it knows what the session is worth.
    """
    unanswered = [row for row in session.proposals.all() if row.answered_at is None]
    summaries = [
        f"{ProposedField(row.field).words}: {row.summary}" for row in unanswered if row.field != ProposedField.TITLE
    ]
    return f"claimed later, not adopted: {'; '.join(summaries)[:MAX_CHARACTERS]}" if summaries else ""
