"""Grades sessions with the sources that need no judge: trajectory, journal, consumption.

The graders are pure. This module passes them the evidence, and appends a row for each grade that differs from the
source's last one. A grader that fails leaves a `failed` row with the reason and never stops an intake.
"""

import hashlib
import logging
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from grading import formats
from grading import signals as signals_core
from grading.evidence import artifact_copies, session_facts, store
from grading.evidence.material import Material, load_material, session_events
from grading.evidence.receiving import EvidenceReading
from grading.formats.reader import FormatTier, Recogniser
from grading.models import Artifact, ArtifactRule, Evidence, Grade, Session, SessionFacts, SessionLog, SessionSignals
from grading.models.evidence import LINKS, MAX_SEEN_AT, ArtifactKind, EvidenceKind, Origin
from grading.plain import plain_json, plain_row, plain_text
from grading.redaction import redact, redact_json
from grading.reward import consumption, journal, outcomes, trajectory
from grading.reward.freshness import EvidenceState
from grading.reward.grade import SourceGrade, unscored
from grading.reward.production import Production, collect
from grading.reward.trajectory import EvidenceView
from grading.signals import Signals, artifacts, patch
from grading.signals.artifacts import ArtifactDefinition
from grading.signals.patch import Patch
from grading.vocabulary import Reason, Source, Status
from grading.witness import Witness

logger = logging.getLogger(__name__)

MAX_DETAIL = 2_000
MAX_LEFT_OUT = 400
# The key that marks stored signals from which a secret was removed.
HIDDEN = "hidden"
# The kinds of artifacts that rules find.
KINDS = frozenset(ArtifactKind) - {*LINKS, ArtifactKind.CHECK_FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactRules:
    """The site's artifact rules, the heaviest first.

    If a rule is invalid, `error` says why, and `definitions` are the rules without their line patterns, or none if
    those are invalid too.
    """

    definitions: tuple[ArtifactDefinition, ...]
    error: str = ""

    @property
    def globs(self) -> list[str]:
        """The globs of the files that the consumption grade counts."""
        return [rule.path_glob for rule in self.definitions if rule.path_glob]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactSearch:
    """All that the artifacts found in a session depend on: the rules, its patch, its signals, its root folder."""

    rules: tuple[ArtifactDefinition, ...]
    patch_sha256: str
    signals_version: str
    root: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFiles:
    """Results of parsing files before the transaction that grades by them, so that no other writer waits for it.

    Signals and patches are by the SHA-256 of their file, artifacts by what they depend on.
    """

    signals: Mapping[str, Signals] = field(default_factory=dict)
    patches: Mapping[str, Patch] = field(default_factory=dict)
    found_artifacts: Mapping[ArtifactSearch, tuple[artifacts.FoundArtifact, ...]] = field(default_factory=dict)


NOTHING_PARSED = ParsedFiles()
Parsed = TypeVar("Parsed")
# A source's grade, and the digest of the inputs that it was computed from.
Answer = tuple[SourceGrade, str]


def parse_files(files: Mapping[EvidenceKind, tuple[Evidence, EvidenceReading]]) -> ParsedFiles:
    """Compute in advance what `grade` would otherwise compute for a session with these files, at most one of each kind.

    Signals and the patch are taken from the files' readings; artifacts are searched here. What fails is left out:
    `grade` computes it again, and stores the failure. Nothing is written.
    """
    log, log_reading = files.get(EvidenceKind.TRANSCRIPT, (None, EvidenceReading()))
    patch_row, patch_reading = files.get(EvidenceKind.PATCH, (None, EvidenceReading()))
    signals, changes = log_reading.signals, patch_reading.changes
    search = ArtifactSearch(
        rules=artifact_rules().definitions,
        patch_sha256="" if patch_row is None else patch_row.sha256,
        signals_version="" if log is None or signals is None else _signals_version(log),
        root=str(log_reading.report.get("cwd", "")),
    )
    found_artifacts: dict[ArtifactSearch, tuple[artifacts.FoundArtifact, ...]] = {}
    is_patch_unreadable = patch_row is not None and changes is None
    harness = formats.BY_FORMAT.get(log_reading.format)
    graded_signals = None if harness is not None and harness.tier is FormatTier.FACTS else signals
    if not is_patch_unreadable:
        with suppress(Exception):  # the grader raises it again and stores it
            matches = artifacts.find_artifacts(search.rules, patch=changes, signals=graded_signals, root=search.root)
            found_artifacts[search] = matches
    return ParsedFiles(
        signals={log.sha256: signals} if log is not None and signals is not None else {},
        patches={patch_row.sha256: changes} if patch_row is not None and changes is not None else {},
        found_artifacts=found_artifacts,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingInput:
    """The parsed evidence that a session is graded by.

    `fault` says why a transcript or patch could not be read although it should be; `patch_fault` is set if it was the
    patch.
    """

    session: Session
    material: Material
    signals: Signals | None
    signals_version: str
    changes: Patch | None
    fault: str
    patch_fault: str
    rules: ArtifactRules

    @property
    def logs(self) -> list[str]:
        """The transcript's hash, and the digest of which of its records are left out and whose are added."""
        transcript, log = self.material.transcript, self.material.log
        digests = ("" if transcript is None else transcript.sha256, "" if log is None else log.digest)
        return [digest for digest in digests if digest]

    @property
    def patches(self) -> list[str]:
        """The patch's hash."""
        return [self.material.patch.sha256] if self.material.patch else []

    @property
    def harness(self) -> type[Recogniser] | None:
        """The harness that wrote the transcript."""
        transcript = self.material.transcript
        return None if transcript is None else formats.BY_FORMAT.get(transcript.format)

    @property
    def is_facts_only(self) -> bool:
        """Whether the transcript is shown and no rule grades by it."""
        return self.harness is not None and self.harness.tier is FormatTier.FACTS

    @property
    def graded_signals(self) -> Signals | None:
        """The transcript's signals; None if no rule grades by it."""
        return None if self.is_facts_only else self.signals

    @property
    def own_signals(self) -> Signals | None:
        """The transcript's signals that rules grade by; None if nothing in it is the session's own."""
        return None if self.material.nothing_own else self.graded_signals

    @property
    def root(self) -> str:
        """The folder that contains the transcript's absolute paths."""
        transcript = self.material.transcript
        return str(transcript.report.get("cwd", "")) if transcript else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedArtifacts:
    """The artifacts that rules matched in a session, those that don't count with the reason, and their texts by hash.

    `error` is why there are none, if the search failed.
    """

    items: Sequence[artifacts.FoundArtifact] = ()
    texts: Mapping[int, artifact_copies.DatedText] = field(default_factory=dict)
    error: Exception | None = None


def grade(session: Session, parsed: ParsedFiles = NOTHING_PARSED) -> list[Session]:
    """Grade the session with every computed source; store the grades that changed, and how the session ended.

    The session must be locked and freshly loaded, with its log. A file that is not among the `parsed` is read here, in
    the caller's transaction: a tenth of a second for a patch of two megabytes. Returns other sessions that must be
    graded again, since a text of an artifact now counts for another session than before.
    """
    try:
        inputs = load_input(session, parsed)
        texts_before = artifact_copies.stored_texts(session)
        matched = _match_artifacts(inputs, parsed, texts_before)
        answers = [
            _run_guarded(Source.TRAJECTORY, trajectory.VERSION, lambda: _grade_trajectory(inputs)),
            _run_guarded(Source.JOURNAL, journal.VERSION, lambda: _grade_journal(inputs.material.journal)),
            _run_guarded(Source.CONSUMPTION, consumption.VERSION, lambda: _grade_consumption(inputs, matched)),
        ]
    except store.Gone:  # the files have expired: the last grades stay current
        return []
    stored: SessionSignals | None = getattr(session, "extracted", None)
    if stored is None or stored.version != inputs.signals_version or (stored.data is None) != (inputs.signals is None):
        data = None if inputs.signals is None else without_secrets(plain_json(inputs.signals.as_dict()))
        session.extracted = SessionSignals(session=session, version=inputs.signals_version, data=data)
        session.extracted.save(force_insert=stored is None)
    outcomes.conclude(session, inputs.signals, inputs.material.witness)
    material = inputs.material
    if inputs.signals is None:
        session_facts.store_log(session, None, "")
    elif material.transcript is not None and inputs.signals.vitals is not None:  # they were extracted just now
        version = session_facts.version_of(material.transcript, material.log)
        session_facts.store_log(session, inputs.signals, version, is_own=not material.nothing_own)
    _store_grades(session, answers)
    return _store_artifacts(session, inputs.material, matched, texts_before)


def are_facts_missing(session: Session) -> bool:
    """Whether the session has a log from which its facts were not read, or by an earlier version of the code."""
    material = load_material(session)
    if material.transcript is None:
        return False
    row: SessionFacts | None = getattr(session, "facts", None)
    version = session_facts.version_of(material.transcript, material.log)
    return row is None or row.version not in (version, session_facts.EXPIRED)


def read_facts(session: Session) -> None:
    """Read the session's facts from its log, without grading. If the log's bytes are gone, they are read from its
    stored signals and header.
    """
    material = load_material(session)
    if material.transcript is None:
        return
    try:
        signals = signals_core.extract(session_events(session) or ())
    except store.Gone:
        stored: SessionSignals | None = getattr(session, "extracted", None)
        data = None if stored is None or stored.data is None else {**stored.data}
        if data is not None:
            data.pop(HIDDEN, None)
        stored_signals = None if data is None else Signals.from_dict(data)
        session_facts.store_expired(session, stored_signals, material.transcript.report)
    else:
        version = session_facts.version_of(material.transcript, material.log)
        session_facts.store_log(session, signals, version, is_own=not material.nothing_own)


def without_secrets(signals: dict[str, Any]) -> dict[str, Any]:
    """Signals as JSON, without secrets.

    If any was removed they are marked `HIDDEN`: pages may show them, but to grade, signals are extracted again.
    """
    redacted: dict[str, Any] = redact_json(signals)
    return redacted if redacted == signals else {**redacted, HIDDEN: True}


def load_input(session: Session, parsed: ParsedFiles = NOTHING_PARSED) -> GradingInput:
    """Load and parse the evidence that `grade` needs. Nothing is written."""
    session_material = load_material(session)
    transcript, log = session_material.transcript, session_material.log
    signals, version, fault = None, "", ""
    if transcript is not None:
        version = _signals_version(transcript, log)
        signals, fault = _load_signals(session, transcript, version, log, parsed)
    row = session_material.patch
    changes, patch_fault = None, ""
    if row is not None and row.sha256 in parsed.patches:
        changes = parsed.patches[row.sha256]
    elif row is not None:  # it could be parsed when it was received
        name = f"{row} of {row.session.observation}"
        changes, patch_fault = _parse_or_fault(lambda: patch.parse(store.text_of(row)), name)
    return GradingInput(
        session=session,
        material=session_material,
        signals=signals,
        signals_version="" if signals is None else version,
        changes=changes,
        fault=fault or patch_fault,
        patch_fault=patch_fault,
        rules=artifact_rules(),
    )


def production_of(inputs: GradingInput) -> Production:
    """The production of the session that its evidence confirms."""
    return collect(
        inputs.own_signals,
        facts=inputs.material.facts,
        patch=inputs.changes,
        foreign=inputs.material.foreign,
        root=inputs.root,
        artifacts=inputs.rules.globs,
    )


def _load_signals(
    session: Session, transcript: Evidence, version: str, log: SessionLog | None, parsed: ParsedFiles
) -> tuple[Signals | None, str]:
    """The transcript's signals, and the fault if they can't be extracted, else "".

    They are taken from the stored row if it has this `version` and no removed secrets, or else from `parsed`.
    """
    stored: SessionSignals | None = getattr(session, "extracted", None)
    if stored is not None and stored.data is not None and stored.version == version and HIDDEN not in stored.data:
        return Signals.from_dict(stored.data), ""
    is_whole = log is None or not log.digest  # one log counts, with all of its records
    if is_whole and transcript.sha256 in parsed.signals:
        return parsed.signals[transcript.sha256], ""
    return _parse_or_fault(
        lambda: signals_core.extract(session_events(session) or ()), f"the signals of {session.observation}"
    )


def _parse_or_fault(parse: Callable[[], Parsed], what: str) -> tuple[Parsed | None, str]:
    """The parsed value and "", or None and the fault. Only `store.Gone` is raised. `what` names it in the log."""
    try:
        return parse(), ""
    except store.Gone:
        raise
    except Exception as error:
        logger.exception("%s could not be read", what)
        return None, _last_line(error)


def _signals_version(transcript: Evidence, log: SessionLog | None = None) -> str:
    """All that the signals depend on: the parser's and extractor's versions, the file, and which records count."""
    version = f"{signals_core.VERSION} p{formats.PARSER_VERSION} {transcript.sha256[:16]}"
    return f"{version} {log.digest[:8]}" if log is not None and log.digest else version


def _run_guarded(source: Source, version: str, grader: Callable[[], Answer]) -> Answer:
    """The grader's answer. If it raises, the answer is a failed grade with the last line of the error.

    Only `store.Gone` is passed on: `grade` then keeps the last grades.
    """
    try:
        return grader()
    except store.Gone:
        raise
    except artifacts.InvalidRule as error:
        reason = Reason.NEEDS_ATTENTION
        return unscored(source, reason, version=version, status=Status.FAILED, detail=str(error)), ""
    except Exception as error:
        logger.exception("the %s grader failed", source)
        return _unreadable(source, version, _last_line(error)), ""


def _unreadable(source: Source, version: str, detail: str) -> SourceGrade:
    return unscored(source, Reason.UNREADABLE, version=version, status=Status.FAILED, detail=detail)


def _grade_trajectory(inputs: GradingInput) -> Answer:
    """The trajectory's grade. Its evidence also has the `EvidenceState` that it was computed from, as `shown`.

    The digest covers all that the grade depends on, so that a change of any of it stores a new grade.
    """
    material = inputs.material
    files = [*inputs.logs, *inputs.patches]
    if inputs.fault:
        return _unreadable(Source.TRAJECTORY, trajectory.VERSION, inputs.fault), _digest(*files)
    # Why no transcript is graded, if none is.
    absent, why = material.absent, material.why
    if material.nothing_own:
        absent, why = Reason.CARRIED, material.nothing_own
    elif inputs.is_facts_only and inputs.harness is not None:
        absent, why = (
            Reason.NOTHING_OBSERVABLE,
            f"Logs of {inputs.harness.title} can be displayed but not graded by rules yet",
        )
    category = inputs.session.category
    looking = category is not None and category.current.is_looking
    production = production_of(inputs)
    answer = trajectory.grade(
        trajectory.TrajectoryInput(
            signals=inputs.own_signals,
            production=production,
            facts=material.facts,
            absent=absent,
            why=why,
            looking=looking,
        )
    )
    evidence_state = EvidenceState.from_production(
        production,
        transcript="" if material.transcript is None or material.nothing_own else material.transcript.sha256,
        failures=len(answer.evidence.get("failures", ())),
        source=_digest(*files, repr(material.facts), repr(material.foreign)),
    )
    answer = replace(answer, evidence={**answer.evidence, "shown": evidence_state.as_dict()})
    is_without_log = answer.evidence.get("view") == EvidenceView.FACTS
    parts = [*files, absent, str(looking), repr(material.facts), repr(material.foreign), *inputs.rules.globs]
    if not is_without_log and inputs.own_signals is not None and inputs.harness and inputs.harness.has_few_samples():
        parts.append("few samples")
        answer = replace(answer, evidence={**answer.evidence, "few_samples": True})
    witness = material.other_witness.alone if is_without_log else material.witness
    return _with_witness(answer, witness, *parts)


def _grade_journal(row: Evidence | None) -> Answer:
    if row is None:
        return journal.grade(None), _digest("")
    return _with_witness(journal.grade(store.text_of(row)), Witness(row.witness), row.sha256)


def _with_witness(answer: SourceGrade, witness: Witness, *parts: str) -> Answer:
    """The answer with the witness of its evidence, if known, and the digest of the parts that it was computed from."""
    if witness is Witness.UNKNOWN:
        return answer, _digest(*parts)
    return replace(answer, evidence={**answer.evidence, "witness": witness.value}), _digest(*parts, witness.value)


def _match_artifacts(
    inputs: GradingInput, parsed: ParsedFiles, texts_before: frozenset[artifact_copies.DatedText]
) -> MatchedArtifacts:
    """The artifacts that the session left behind; none if its patch can't be read or the search fails."""
    material, rules = inputs.material, inputs.rules
    if inputs.patch_fault:
        return MatchedArtifacts()
    if rules.error:
        return MatchedArtifacts(error=artifacts.InvalidRule(rules.error))
    search = ArtifactSearch(
        rules=rules.definitions,
        patch_sha256="" if material.patch is None else material.patch.sha256,
        signals_version=inputs.signals_version,
        root=inputs.root,
    )
    origin = material.patch or material.transcript
    received_at = origin.received_at if origin else None
    try:
        candidates = parsed.found_artifacts.get(search)
        if candidates is None:
            candidates = artifacts.find_artifacts(
                search.rules, patch=inputs.changes, signals=inputs.graded_signals, root=search.root
            )
        matches, texts = artifact_copies.mark_copies(inputs.session, candidates, received_at, texts_before)
    except store.Gone:
        raise
    except Exception as error:  # noqa: BLE001 - `_grade_consumption` raises it, and `_run_guarded` logs it
        return MatchedArtifacts(error=error)
    return MatchedArtifacts(items=matches, texts=texts)


def _grade_consumption(inputs: GradingInput, matched: MatchedArtifacts) -> Answer:
    """The grade by what the session left behind. Raises `matched.error`, if the search for artifacts failed."""
    material = inputs.material
    if matched.error is not None:
        raise matched.error
    if inputs.patch_fault:
        return _unreadable(Source.CONSUMPTION, consumption.VERSION, inputs.patch_fault), _digest(*inputs.patches)
    category, rules = inputs.session.category, inputs.rules.definitions
    is_consumption = category is not None and category.is_consumption
    # Without a patch or a tool call, nothing that a session left behind could be seen: "none" would be a guess.
    readable = material.patch is not None or (inputs.graded_signals is not None and inputs.graded_signals.calls > 0)
    if inputs.graded_signals is not None:
        why = "No patch, and no tool call in the transcript, so what was left behind cannot be seen"
    else:
        reason = material.absent if material.transcript is None else Reason.UNREADABLE
        why = f"No patch, and no transcript to go by: {reason.words}"
    answer = consumption.grade(
        matched.items, is_consumption=is_consumption, readable=readable, rules=rules, why_unreadable=why
    )
    left_out = [(item.kind, item.key, item.left_out) for item in matched.items if item.left_out]
    witness = material.witness
    if material.patch is not None and not _is_patch_confirmed(inputs, matched):
        witness = Witness(material.patch.witness).alone
    files = [*inputs.patches, *inputs.logs]
    return _with_witness(answer, witness, *files, str(is_consumption), str(readable), repr(rules), repr(left_out))


def _is_patch_confirmed(inputs: GradingInput, matched: MatchedArtifacts) -> bool:
    """Whether the log confirms all artifacts that count and are from the patch: it changed their files, too.

    If it does, the log's witness vouches for them, otherwise only the patch's.
    """
    changes = () if inputs.own_signals is None else inputs.own_signals.files
    changed_paths = {change.path for change in changes}
    for item in matched.items:
        if item.origin != Origin.PATCH or item.left_out:
            continue
        if not any(path == item.path or path.endswith(f"/{item.path}") for path in changed_paths):
            return False
    return True


def artifact_rules() -> ArtifactRules:
    """Load the site's artifact rules, without their line patterns if one is invalid (`ArtifactRules`). One query."""
    rows = list(ArtifactRule.objects.values(*artifacts.RULE_FIELDS))
    try:
        return ArtifactRules(definitions=artifacts.rules_from(rows))
    except artifacts.InvalidRule as error:
        problem = str(error)
    try:
        without_patterns = artifacts.rules_from({**row, "line_pattern": ""} for row in rows)
    except artifacts.InvalidRule:
        without_patterns = ()
    return ArtifactRules(definitions=without_patterns, error=problem)


def _store_grades(session: Session, answers: Iterable[Answer]) -> None:
    """Store a grade for each answer that differs from the source's last one.

    `replicate` counts earlier grades of the source by the same version from the same inputs.
    """
    stored, new = list(session.grades.all()), list[Grade]()
    for answer, inputs_sha256 in answers:
        rows = [row for row in stored if row.source == answer.source]
        if rows:
            last = rows[-1]
            last_answer = (last.status, last.value, last.reason, last.version, last.inputs_sha256)
            if last_answer == (answer.status, answer.value, answer.reason, answer.version, inputs_sha256):
                continue
        replicates = [row for row in rows if (row.inputs_sha256, row.version) == (inputs_sha256, answer.version)]
        grade = Grade(
            session=session,
            source=answer.source,
            status=answer.status,
            value=answer.value,
            reason=answer.reason,
            version=answer.version,
            inputs_sha256=inputs_sha256,
            replicate=len(replicates),
            **plain_row({"detail": MAX_DETAIL}, detail=answer.detail, evidence=answer.evidence),
        )
        new.append(grade)
    Grade.objects.bulk_create(new)


def _store_artifacts(
    session: Session,
    material: Material,
    matched: MatchedArtifacts,
    texts_before: frozenset[artifact_copies.DatedText],
) -> list[Session]:
    """Replace the artifacts that rules matched before by those that they match now. Facts and claims stay.

    Returns the other sessions for which a text now counts, or counts no longer.
    """
    # By kind, key and origin: the artifacts, why each doesn't count, and the texts of those that have one.
    current = {
        (item.kind, plain_text(item.key, 500), item.origin): item for item in matched.items if item.kind in KINDS
    }
    stored = [row for row in session.artifacts.all() if row.origin != Origin.FACTS and row.kind not in LINKS]
    stored_reasons = {(row.kind, row.key, row.origin): row.left_out for row in stored}
    reasons = {key: plain_text(redact(item.left_out), MAX_LEFT_OUT) for key, item in current.items()}
    texts = {key: matched.texts[item.text_hash] for key, item in current.items() if item.text_hash is not None}
    texts_now = {*texts.values()}
    if stored_reasons == reasons and texts_before == texts_now:
        return []
    if stored:
        session.artifacts.exclude(origin=Origin.FACTS).exclude(kind__in=LINKS).delete()
    # An artifact has the witness of the file that it was found in.
    witnesses = {
        origin.value: row.witness
        for origin, row in ((Origin.PATCH, material.patch), (Origin.TRANSCRIPT, material.transcript))
        if row is not None
    }
    Artifact.objects.bulk_create(
        Artifact(
            session=session,
            kind=kind,
            key=key,
            origin=origin,
            seen_at=plain_text(item.where, MAX_SEEN_AT),
            rule=item.kind[:64],
            left_out=reasons[kind, key, origin],
            witness=witnesses.get(origin, Witness.UNKNOWN),
            **(asdict(texts[kind, key, origin]) if (kind, key, origin) in texts else {}),
        )
        for (kind, key, origin), item in current.items()
    )
    return artifact_copies.affected_sessions(session, texts_before ^ texts_now)


def _digest(*parts: str) -> str:
    """One hash of all inputs of an answer except its version."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _last_line(error: Exception) -> str:
    """The last line of the error's traceback: its type and message."""
    return plain_text(traceback.format_exception_only(error)[-1].strip(), 500)
