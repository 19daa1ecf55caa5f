"""The same evidence for two sessions (A5)."""

import datetime as dt
from collections.abc import Collection, Iterable, Sequence

from django.db.models import OuterRef, Q, Subquery

from grading.models import Evidence, Session
from grading.models.evidence import EvidenceKind
from grading.monitoring.flag_rule import Flagged, FlagRule, too_often_by_agent
from grading.monitoring.rule import Finding
from grading.reward.decide import CurrentGrades
from grading.vocabulary import Reason
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
