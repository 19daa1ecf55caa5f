"""Alarm rules about sessions whose evidence or verdict is in doubt: repeated, contested, or changed afterwards."""

import datetime as dt
from collections.abc import Collection, Iterable, Sequence

from django.db.models import OuterRef, Q, Subquery

from grading.models import Evidence, JudgeJob, Session
from grading.models.evidence import EvidenceKind
from grading.models.judging import Purpose
from grading.models.sessions import yours
from grading.models.submissions import ProposedField
from grading.monitoring.flag_rule import Flagged, FlagRule, is_too_often, too_often_by_agent, total
from grading.monitoring.rule import SOMETIMES, Finding, Severity
from grading.reward import rereading
from grading.reward.decide import MAX_ADDED, MAX_SPREAD, CurrentGrades, contests, gap, is_claimed
from grading.reward.explain import number
from grading.reward.rereading import CONTESTED
from grading.reward.rewards import CLAIMED_ABOVE, LATE_WORD
from grading.reward.standing import CONTESTED_ABOVE
from grading.vocabulary import NO_REWARD, Reason, Source
from grading.witness import Witness

# What is shorter may well be the same by chance: "# Done", an empty patch.
LEAST_BYTES = 200
# Facts may well be the same: that all checks passed. Whose the commits in them are is asked elsewhere.
KINDS = (EvidenceKind.TRANSCRIPT, EvidenceKind.JOURNAL, EvidenceKind.PATCH)
# Of the files of one kind, the latest are looked at.
LATEST = 20


class Repeated(FlagRule):
    """Whoever takes "the last log" instead of a session's own grades one session by the work of another."""

    id = "A5"
    title = "Two sessions share the same evidence"
    means = (
        "Flags a session whose only log, journal or patch (200 bytes or more) is byte for byte the same as "
        "another session’s, or whose only log says it belongs to another session. A subagent’s log may also "
        "appear under its parent. Opens at an agent’s third in seven days."
    )
    todo = "Check where the agent takes its files from: each session has its own log, named after the session’s id."
    settled = "it has evidence of its own now"

    def finding(self, session: Session, holds: CurrentGrades, now: dt.datetime) -> str:  # noqa: ARG002 - every rule is asked alike
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

    def told(self, flags: Sequence[Flagged]) -> Iterable[Finding]:
        for agent, count in too_often_by_agent(flags):
            yield Finding(
                about=agent,
                detail=f"{count} sessions of {agent} in seven days came with files already submitted for another "
                "session, or with its log. They would be graded on work that isn’t theirs.",
            )


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


LONGEST_WAIT = dt.timedelta(days=2)


class UnsteadyJudge(FlagRule):
    """Three readings of one session, and as many opinions: its verdict says little about it."""

    id = "A37"
    title = "The judge’s readings of a session are far apart"
    means = (
        f"Flags a session with three readings more than {number(MAX_SPREAD)} apart; the median is the verdict. "
        "Opens at the third such session in seven days."
    )
    todo = "Grade them. If it keeps happening, look at where the readings differ: the rubric may not cover such work."
    severity = Severity.ADVISORY
    settled = "it has a different verdict now"
    every = SOMETIMES

    def finding(self, session: Session, holds: CurrentGrades, now: dt.datetime) -> str:  # noqa: ARG002 - asked alike
        judge = holds.get(Source.JUDGE)
        if judge is None or not judge.samples or judge.readings_agree or Source.HUMAN in holds:
            return ""
        said = ", ".join(map(number, judge.samples))
        return f"the judge’s three readings are {number(judge.spread)} apart: {said}; the median counts"

    def told(self, flags: Sequence[Flagged]) -> Iterable[Finding]:
        count = total(flags)
        if is_too_often(count):
            yield Finding(
                detail=f"Of {count} sessions in seven days three readings of the judge are more than "
                f"{number(MAX_SPREAD)} apart. {self.todo}"
            )


class Contested(FlagRule):
    """Artifacts and judge contradict each other, and asking the judge again has not settled it, or only for the most
    part.
    """

    id = CONTESTED
    title = "What a session left behind contradicts the judge"
    means = (
        f"Flags a session whose artifacts would be worth more than {number(CONTESTED_ABOVE)} above its current "
        "verdict, once the judge has read it three times or won’t read it again. Opens at an agent’s third such "
        "session in seven days, or when one has been waiting for the judge for two days."
    )
    todo = (
        "Look at what it left behind. If it is filler, make the artifact rules stricter; if it is good, the "
        "rubric misses such work."
    )
    settled = "the judge and the artifacts agree now, or the judge will read it again"
    every = SOMETIMES

    def finding(self, session: Session, holds: CurrentGrades, now: dt.datetime) -> str:  # noqa: ARG002 - asked alike
        if Source.HUMAN in holds or not _is_judged(holds) or session.outcome in NO_REWARD or not contests(holds):
            return ""
        above = f"its artifacts would be worth {number(gap(holds))} more than the judge says"
        if holds[Source.JUDGE].readings_agree:
            return f"{above}, after three readings; they add {number(MAX_ADDED)} to the verdict, and no more"
        if rereading.is_coming(session):
            return ""
        return f"{above}, and the judge won’t read it again: until a person grades it, it counts little or nothing"

    def told(self, flags: Sequence[Flagged]) -> Iterable[Finding]:
        for name, count in too_often_by_agent(flags):
            yield Finding(
                about=name[:150],
                detail=f"{count} sessions of {name} in seven days left behind what would be worth far more than "
                f"the judge says. {self.todo}",
            )

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        yield from super().look(now)
        late = JudgeJob.objects.open().filter(yours(), purpose=Purpose.SAMPLE, created_at__lte=now - LONGEST_WAIT)
        if count := late.count():
            yield Finding(
                about="readings",
                detail=f"Sessions in doubt that have waited to be read again for more than two days: {count}. "
                "Until then the bandits learn little or nothing from them, and bad sessions may be among them. Extra "
                "readings come last: give the judge more budget or quota, or grade them yourself.",
            )


class ClaimedAbove(FlagRule):
    """An agent claims far more than its judge saw. The verdict stands; people are told."""

    id = CLAIMED_ABOVE
    title = "An agent claims far more than the judge saw"
    means = (
        "Flags a session whose artifacts, vouched for by its agent alone, would be worth more than "
        f"{number(CONTESTED_ABOVE)} above its verdict. The verdict stands. Opens at an agent’s third such session "
        "in seven days."
    )
    todo = (
        "Check whether the claims are true. Either the agent makes them up, or the judge isn’t shown what it left "
        "behind."
    )
    severity = Severity.ADVISORY
    settled = "the judge and the claims agree now"
    every = SOMETIMES

    def finding(self, session: Session, holds: CurrentGrades, now: dt.datetime) -> str:  # noqa: ARG002 - asked alike
        if Source.HUMAN in holds or not _is_judged(holds) or session.outcome in NO_REWARD:
            return ""
        if gap(holds) <= CONTESTED_ABOVE or not is_claimed(holds):
            return ""
        return (
            f"the agent claims artifacts that would be worth {number(gap(holds))} more than the judge says; "
            "the verdict stands"
        )

    def told(self, flags: Sequence[Flagged]) -> Iterable[Finding]:
        for name, count in too_often_by_agent(flags):
            yield Finding(
                about=name[:150],
                detail=f"{count} sessions of {name} in seven days claim far more than the judge saw. {self.todo}",
            )


def _is_judged(holds: CurrentGrades) -> bool:
    return Source.JUDGE in holds and holds[Source.JUDGE].value is not None


SHOWN = 200


class LateWord(FlagRule):
    """Whoever is graded tries to take a session out, move it or date it once it is known what it is worth."""

    id = LATE_WORD
    title = "An agent changes its story about a session"
    means = (
        "Flags a session about which its agent, or the hook beside it, says something new after a verdict or "
        "after the first hour: another outcome or category, other facts, dates or lessons. Also one whose end is "
        "dated before its decision or more than a week back. None of it counts until somebody adopts it. Opens at "
        "an agent’s third in seven days."
    )
    todo = "On each session’s page, adopt what is true and reject the rest."
    severity = Severity.ALARM
    settled = "all of it has been answered"

    def finding(self, session: Session, holds: CurrentGrades, now: dt.datetime) -> str:  # noqa: ARG002 - every rule is asked alike
        open_ = [row for row in session.proposals.all() if row.answered_at is None]
        said = [f"{ProposedField(row.field).words}: {row.summary}" for row in open_ if row.field != ProposedField.TITLE]
        return f"said afterwards, not adopted: {'; '.join(said)[:SHOWN]}" if said else ""

    def told(self, flags: Sequence[Flagged]) -> Iterable[Finding]:
        for agent, count in too_often_by_agent(flags):
            yield Finding(
                about=agent,
                detail=f"{agent} said something new of {count} of its sessions in seven days, after they had been "
                "graded or dated out of bounds. None of it counts. An agent that learns what it earns will try this: "
                "compare what it wanted changed with what those sessions are worth.",
            )
