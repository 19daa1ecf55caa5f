"""What the judge reads of a session: its own evidence, never another source's grade."""

import hashlib
from typing import Any

from django.utils import timezone

from grading.evidence import logs, material, ownership, store
from grading.evidence.material import counted_facts
from grading.judging import reader
from grading.judging.core.order import LogBytes, PromptOrder
from grading.judging.core.prompt import CHARS_PER_TOKEN, Band, Case, Dimension, Example, Prompt, RubricText
from grading.models import Rubric, Session
from grading.models.evidence import ArtifactKind, EvidenceKind
from grading.reward import rewards, sources
from grading.vocabulary import WorkKind

TEXT_LIMIT = 200_000


def inputs_sha256(hashes: dict[str, str]) -> str:
    """One hash for all of a session's evidence, given the hash of each kind."""
    lines = "\n".join(f"{kind} {hashes[kind]}" for kind in sorted(hashes))
    return hashlib.sha256(lines.encode()).hexdigest()


def evidence_read(session: Session) -> dict[str, Any]:
    """The `EvidenceState` of the session's latest grade that has one, as JSON; empty if none has."""
    latest = rewards.latest_evidence(session.grades.all())
    return {} if latest is None else latest.as_dict()


def rubric_text(rubric: Rubric, *, about: Session | None = None) -> RubricText:
    """The rubric as the judge reads it. An example that is the judged session (`about`) is left out."""
    examples = [example for example in rubric.examples if about is None or example.get("session") != about.pk]
    return RubricText(
        sha256=rubric.sha256,
        text=rubric.text,
        dimensions=[Dimension(**dimension) for dimension in rubric.dimensions],
        bands=[Band(**band) for band in rubric.bands],
        examples=[
            Example(summary=example["summary"], score=example["score"], why=example["why"]) for example in examples
        ],
        kind=WorkKind(rubric.kind),
    )


def build(
    session: Session,
    rubric: Rubric,
    *,
    budget: int,
    smaller: float = 1.0,
    chars_per_token: float = CHARS_PER_TOKEN,
) -> Prompt:
    """The prompt for a session under a rubric: at most `budget` tokens in all, at `chars_per_token` characters each.

    `smaller` in (0, 1] shrinks the evidence, after a request was too large.
    It is built in a separate process (`reader`). Raises ReaderLost, and whatever reading evidence raises.
    """
    rows = material.graded_logs(session)
    log_bytes = []
    for row in rows:
        with store.open(row) as stream:
            data = stream.read()
        ids = () if row is rows[-1] else logs.load_records(row).ids  # needed only if another log follows
        log_bytes.append(LogBytes(data=data, filename=row.filename, ids=ids, format=row.format))
    order = PromptOrder(
        case=case(session, with_events=False),
        logs=log_bytes,
        foreign=ownership.foreign_records(session) if rows else frozenset(),
        rubric=rubric_text(rubric, about=session),
        budget=budget,
        smaller=smaller,
        chars_per_token=chars_per_token,
    )
    return reader.shared().fill(order)


def case(session: Session, *, with_events: bool = True) -> Case:
    """A session as the input of a prompt, with its events (an iterator) or without."""
    grading_input = sources.load_input(session)
    failed: list[str] = []
    others: list[str] = []
    for row in counted_facts(session, grading_input.material.transcript):
        if row.kind == ArtifactKind.CHECK_FAILED:
            failed.append(f"mandatory check failed: {row.key}" + (f" ({row.seen_at})" if row.seen_at else ""))
        else:
            others.append(f"{row.get_kind_display()} {row.key}")
    refused = sorted((row for row in session.evidence.all() if row.problem), key=lambda row: row.pk)
    seconds = session.duration_seconds
    metadata = {  # no model name: a judge might favour its own family
        "title": session.title,
        "kind of work": str(session.category or ""),
        "harness": str(session.harness or ""),
        "ended": f"{timezone.localtime(session.ended_at):%F %H:%M}",
        "duration": "" if seconds is None else f"{seconds / 60:.0f} min",
        "exit code": "" if session.exit_code is None else str(session.exit_code),
        "outcome": f"{session.outcome} {session.outcome_reason}".strip(),
        "evidence that was refused": ", ".join(f"{row.kind} ({row.problem})" for row in refused[:10]),
    }
    events = material.session_events(session) if with_events else None
    return Case(
        metadata={name: value for name, value in metadata.items() if value},
        events=events or (),
        signals=grading_input.own_signals,
        production=sources.production_of(grading_input),
        facts=[*failed, *others],  # failed checks first, as the prompt shows no more than it has room for
        journal=store.text(session, EvidenceKind.JOURNAL, TEXT_LIMIT),
        patch=store.text(session, EvidenceKind.PATCH, TEXT_LIMIT),
    )
