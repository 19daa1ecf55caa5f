"""Asking the sources that compute at once: trajectory, journal, consumption. Each answer becomes a row (L1, L3).

The graders are pure; this module hands them what was received and appends what they say, where it differs from what
they said before. A grader that breaks leaves a `failed` row with the reason and never stops an intake.
"""

import hashlib
import logging
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from grading import signals as signals_core
from grading.evidence import near_copies, ownership, store
from grading.models import Artifact, ArtifactRule, Evidence, Grade, Session, SessionLog
from grading.models.evidence import LINKS, ArtifactKind, EvidenceKind, Origin
from grading.plain import plain_json, plain_text
from grading.reward import consumption, journal, trajectory
from grading.reward.freshness import EvidenceState
from grading.reward.grade import SourceGrade, unscored
from grading.reward.production import Production, collect
from grading.signals import Signals, artifacts, patch
from grading.signals.artifacts import ArtifactDefinition
from grading.signals.facts import NOTHING_FOREIGN, Foreign, ObservedFacts
from grading.signals.patch import Patch
from grading.signals.substance import Sketch
from grading.vocabulary import Reason, Source, Status

logger = logging.getLogger(__name__)

DETAIL = 2_000
LEFT_OUT = 400
KINDS = frozenset(ArtifactKind) - {*LINKS, ArtifactKind.CHECK_FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingInput:
    """What there is to grade a session by. `fault`: why a transcript or patch that should be readable was not;
    `patch_fault` where it was the patch. `foreign` belongs to other sessions. `carried`: why nothing in the transcript
    is the session's own, in words; empty where something is.
    """

    session: Session
    transcript: Evidence | None
    signals: Signals | None
    patch: Evidence | None
    changes: Patch | None
    facts: ObservedFacts
    foreign: Foreign = NOTHING_FOREIGN
    fault: str = ""
    patch_fault: str = ""
    carried: str = ""
    log: SessionLog | None = None
    signals_version: str = ""
    rules: tuple[ArtifactDefinition, ...] = ()
    invalid_rule: str = ""

    @property
    def logs(self) -> tuple[str, ...]:
        """The transcript's hash, and what says which of its records are left out and whose are added."""
        digest = "" if self.log is None else self.log.digest
        return tuple(filter(None, ("" if self.transcript is None else self.transcript.sha256, digest)))

    @property
    def found_in(self) -> Evidence | None:
        """What artifacts are found in: the patch, without one the transcript."""
        return self.patch or self.transcript

    @property
    def root(self) -> str:
        """The folder that the transcript's absolute paths are below."""
        return str(self.transcript.report.get("cwd", "")) if self.transcript else ""


def grade(session: Session, parsed: Mapping[str, Signals] | None = None) -> Signals | None:
    """Append what the sources say of the session now; where a source says what it said before, nothing.

    Returns the signals of its usable transcript. `parsed` maps a transcript's hash to its signals, where the caller has
    them already. For use in a transaction.
    """
    seen = look(session, parsed or {})
    _keep_signals(seen)
    found: list[artifacts.FoundArtifact] = []
    _append(
        session,
        [
            _guarded(Source.TRAJECTORY, trajectory.VERSION, lambda: _trajectory(seen)),
            _guarded(Source.JOURNAL, journal.VERSION, lambda: _journal(session)),
            _guarded(Source.CONSUMPTION, consumption.VERSION, lambda: _consumption(seen, found)),
        ],
    )
    _keep_artifacts(seen, found)
    return seen.signals


Answer = tuple[SourceGrade, str]


def look(session: Session, parsed: Mapping[str, Signals] | None = None) -> GradingInput:
    """What there is to grade a session by; see `grade`. Nothing is written."""
    transcript = next(iter(ownership.files(session)), None)
    changes = store.usable(session, EvidenceKind.PATCH)
    log = SessionLog.objects.filter(session=session).select_related("part_of").first()
    version = "" if transcript is None else _signals_version(transcript, log)
    signals, fault = (None, "") if transcript is None else _signals(session, transcript, version, log, parsed or {})
    parsed_patch, patch_fault = _patch(changes)
    rules, invalid_rule = _rules()
    return GradingInput(
        session=session,
        transcript=transcript,
        signals=signals,
        patch=changes,
        changes=parsed_patch,
        facts=facts_of(session),
        foreign=ownership.foreign(session),
        carried="" if log is None else _carried(session, log),
        log=log,
        signals_version="" if signals is None else version,
        fault=fault or patch_fault,
        patch_fault=patch_fault,
        rules=rules,
        invalid_rule=invalid_rule,
    )


def produced(seen: GradingInput) -> Production:
    """What the session's evidence confirms that it brought about."""
    return collect(
        None if seen.carried else seen.signals,
        facts=seen.facts,
        patch=seen.changes,
        foreign=seen.foreign,
        root=seen.root,
        artifacts=_globs(seen.rules),
    )


def _patch(row: Evidence | None) -> tuple[Patch | None, str]:
    """The patch, which could be read when it came; and the fault, where it cannot be any more."""
    if row is None:
        return None, ""
    try:
        return patch.parse(store.text_of(row)), ""
    except Exception as error:
        logger.exception("%s of %s could not be read", row, row.session.observation)
        return None, _last_line(error)


def facts_of(session: Session) -> ObservedFacts:
    """What the caller saw itself, as far as it is this session's."""
    rows = session.artifacts.owned().filter(origin=Origin.FACTS).order_by("key").values_list("kind", "key")
    keys = {kind: tuple(key for of, key in rows if of == kind) for kind in ArtifactKind}
    return ObservedFacts(
        commits=keys[ArtifactKind.COMMIT],
        pull_requests=keys[ArtifactKind.PULL_REQUEST],
        failed_checks=keys[ArtifactKind.CHECK_FAILED],
    )


def _carried(session: Session, log: SessionLog) -> str:
    if log.part_of is not None:
        return f"The log of a subagent of session {log.part_of.external_id}, which has its work"
    if not log.is_copy:
        return ""
    own = [each.session.external_id for each in ownership.carried(session) if each.session.agent_id == session.agent_id]
    return f"All of it was carried over from {', '.join(own[:3]) or 'a session of another agent'}"


def _signals_version(transcript: Evidence, log: SessionLog | None) -> str:
    """What a transcript's signals follow from: the extractor's version, the file, and which of its records count."""
    marks = log.digest if log is not None else ""
    return f"{signals_core.VERSION} {transcript.sha256[:16]}" + (f" {marks[:8]}" if marks else "")


def _signals(
    session: Session, transcript: Evidence, version: str, log: SessionLog | None, parsed: Mapping[str, Signals]
) -> tuple[Signals | None, str]:
    """The transcript's signals, from the session's row where they are these; and the fault, where they broke."""
    if session.signals is not None and session.signals_version == version:
        return Signals.from_dict(session.signals), ""
    try:
        whole = None if log is not None and log.digest else parsed.get(transcript.sha256)
        return whole or signals_core.extract(ownership.events(session) or ()), ""
    except Exception as error:
        logger.exception("signals of %s could not be extracted", session.observation)
        return None, _last_line(error)


def _keep_signals(seen: GradingInput) -> None:
    """Keep a transcript's signals on the session's row, where they are not there yet."""
    session = seen.session
    if session.signals_version == seen.signals_version and (session.signals is None) == (seen.signals is None):
        return
    session.signals = None if seen.signals is None else plain_json(seen.signals.as_dict())
    session.signals_version = seen.signals_version
    session.save(update_fields=["signals", "signals_version"])


def _guarded(source: Source, version: str, ask: Callable[[], Answer]) -> Answer:
    """The grader's answer; one that breaks is on record as failed, with the last line of what broke (L1)."""
    try:
        return ask()
    except artifacts.InvalidRule as error:
        reason, detail = Reason.NEEDS_ATTENTION, str(error)
    except Exception as error:
        logger.exception("the %s grader failed", source)
        reason, detail = Reason.UNREADABLE, _last_line(error)
    return unscored(source, reason, version=version, status=Status.FAILED, detail=detail), ""


def _trajectory(seen: GradingInput) -> Answer:
    files = [*seen.logs, *([seen.patch.sha256] if seen.patch else [])]
    if seen.fault:
        failed = unscored(
            Source.TRAJECTORY, Reason.UNREADABLE, version=trajectory.VERSION, status=Status.FAILED, detail=seen.fault
        )
        return failed, _digest(*files)
    absent, why = (Reason.NONE, "") if seen.transcript else _why_no_transcript(seen.session)
    if seen.carried:
        absent, why = Reason.CARRIED, seen.carried
    category = seen.session.category
    looking = category is not None and category.current.is_looking
    production = produced(seen)
    answer = trajectory.grade(
        trajectory.TrajectoryInput(
            signals=None if seen.carried else seen.signals,
            production=production,
            facts=seen.facts,
            absent=absent,
            why=why,
            looking=looking,
        )
    )
    shown = EvidenceState.of(
        production,
        transcript="" if seen.transcript is None or seen.carried else seen.transcript.sha256,
        failures=len(answer.evidence.get("failures", ())),
        source=_digest(*files, repr(seen.facts), repr(seen.foreign)),
    )
    kept = replace(answer, evidence={**answer.evidence, "shown": shown.as_dict()})
    return kept, _digest(*files, absent, str(looking), repr(seen.facts), repr(seen.foreign), *_globs(seen.rules))


def _why_no_transcript(session: Session) -> tuple[Reason, str]:
    """Why there is no transcript to grade by: the fault of the latest one, or that none came."""
    latest = session.evidence.filter(kind=EvidenceKind.TRANSCRIPT).order_by("-pk").first()
    if latest is None:
        return Reason.NO_TRANSCRIPT, "No transcript was submitted"
    if latest.problem:
        return Reason(latest.problem), latest.detail
    others = ", ".join(row.session.external_id for row in store.sharers(latest).select_related("session")[:3])
    detail = f"The log was also submitted for {others}, and does not say whose it is"
    return Reason.LOG_SHARED, plain_text(detail, DETAIL)


def _journal(session: Session) -> Answer:
    row = store.usable(session, EvidenceKind.JOURNAL)
    return journal.grade(None if row is None else store.text_of(row)), _digest("" if row is None else row.sha256)


def _consumption(seen: GradingInput, found: list[artifacts.FoundArtifact]) -> Answer:
    """The grade, and into `found` the artifacts that it counts, and those that it leaves out with the reason."""
    if seen.patch_fault:
        failed = unscored(
            Source.CONSUMPTION,
            Reason.UNREADABLE,
            version=consumption.VERSION,
            status=Status.FAILED,
            detail=seen.patch_fault,
        )
        return failed, _digest(seen.patch.sha256 if seen.patch else "")
    if seen.invalid_rule:
        raise artifacts.InvalidRule(seen.invalid_rule)
    left = artifacts.find(seen.rules, patch=seen.changes, signals=seen.signals, root=seen.root)
    found.extend(near_copies.weighed(seen.session, left, _said(seen, left)))
    category = seen.session.category
    is_consumption = category is not None and category.is_consumption
    # Without a single tool call nothing that a session left behind could be seen, so "nothing found" would be a guess.
    readable = seen.patch is not None or (seen.signals is not None and seen.signals.calls > 0)
    answer = consumption.grade(
        found, is_consumption=is_consumption, readable=readable, rules=seen.rules, why_unreadable=_why_unreadable(seen)
    )
    files = [*([seen.patch.sha256] if seen.patch else []), *seen.logs]
    left_out = [(item.kind, item.key, item.left_out) for item in found if item.left_out]
    return answer, _digest(*files, str(is_consumption), str(readable), repr(seen.rules), repr(left_out))


def _said(seen: GradingInput, found: Iterable[artifacts.FoundArtifact]) -> dict[Sketch, near_copies.DatedSketch]:
    received_at = seen.found_in.received_at if seen.found_in else seen.session.received_at
    return near_copies.now(seen.session, found, received_at)


def _why_unreadable(seen: GradingInput) -> str:
    if seen.signals is not None:
        return "No patch, and no tool call in the transcript, so what was left behind cannot be seen"
    reason = _why_no_transcript(seen.session)[0] if seen.transcript is None else Reason.UNREADABLE
    return f"No patch, and no transcript to go by: {reason.words}"


def _rules() -> tuple[tuple[ArtifactDefinition, ...], str]:
    """The site's artifact rules; none where one cannot work, and then why."""
    try:
        return tuple(
            ArtifactDefinition(
                kind=row.kind,
                path_glob=row.path_glob,
                line_pattern=row.line_pattern,
                new_files_only=row.new_files_only,
                weight=row.weight,
                scale=row.scale,
                least_characters=row.least_characters,
            )
            for row in ArtifactRule.objects.all()
        ), ""
    except artifacts.InvalidRule as error:
        return (), str(error)


def globs() -> list[str]:
    """Which files are the consumption grade's; none where a rule cannot work, which that grade then says."""
    return _globs(_rules()[0])


def _globs(rules: Iterable[ArtifactDefinition]) -> list[str]:
    return [rule.path_glob for rule in rules if rule.path_glob]


def _append(session: Session, answers: Iterable[Answer]) -> None:
    """A row for each answer that differs from the source's last one."""
    held = list(session.grades.order_by("pk"))
    for answer, inputs in answers:
        rows = [row for row in held if row.source == answer.source]
        if rows and _same(rows[-1], answer, inputs):
            continue
        replicates = [row for row in rows if (row.inputs_sha256, row.version) == (inputs, answer.version)]
        Grade.objects.create(
            session=session,
            source=answer.source,
            status=answer.status,
            value=answer.value,
            reason=answer.reason,
            detail=plain_text(answer.detail, DETAIL),
            evidence=plain_json(answer.evidence),
            version=answer.version,
            inputs_sha256=inputs,
            replicate=len(replicates),
        )


def _same(row: Grade, answer: SourceGrade, inputs: str) -> bool:
    said = (row.status, row.value, row.reason, row.version, row.inputs_sha256)
    return said == (answer.status, answer.value, answer.reason, answer.version, inputs)


def _keep_artifacts(seen: GradingInput, found: Iterable[artifacts.FoundArtifact]) -> None:
    """Make the artifacts that rules found those that they find now. Facts and claims are left alone."""
    session = seen.session
    now = {(item.kind, plain_text(item.key, 500), item.origin): item for item in found if item.kind in KINDS}
    said = _said(seen, now.values())
    held = session.artifacts.exclude(origin=Origin.FACTS).exclude(kind__in=LINKS)
    rows = {
        (kind, key, origin): why for kind, key, origin, why in held.values_list("kind", "key", "origin", "left_out")
    }
    reasons = {key: plain_text(item.left_out, LEFT_OUT) for key, item in now.items()}
    if rows == reasons and near_copies.of(session) == {*said.values()}:
        return
    held.delete()
    made = Artifact.objects.bulk_create(
        Artifact(
            session=session,
            kind=kind,
            key=key,
            origin=origin,
            seen_at=plain_text(item.where, 300),
            rule=item.rule[:64],
            left_out=reasons[kind, key, origin],
        )
        for (kind, key, origin), item in now.items()
    )
    pairs = zip(made, now.values(), strict=True)
    near_copies.keep(session, [(row, said[item.sketch]) for row, item in pairs if item.sketch])


def _digest(*parts: str) -> str:
    """One hash of everything an answer was computed from, its version apart (L8)."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _last_line(error: Exception) -> str:
    return plain_text(traceback.format_exception_only(error)[-1].strip(), 500)
