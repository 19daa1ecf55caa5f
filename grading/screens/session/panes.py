"""The tabs that show a session's evidence: what it did, its transcript, patch and journal, the judge's calls."""

from dataclasses import dataclass
from typing import Any

from grading.evidence import material, ownership, store
from grading.models import Session
from grading.models.evidence import EvidenceKind
from grading.redaction import MARGIN, redact_slice
from grading.reward import sources
from grading.screens.session import activity
from grading.screens.session.activity import TranscriptEvents
from grading.signals import Signals
from grading.vocabulary import Reason

PATCH_LIMIT = 60_000
PATCH_LINES = 600
JOURNAL_LIMIT = 60_000
MAX_FOREIGN_ARTIFACTS = 12
DIFF_CLASSES = {"+": "add", "-": "del", "@": "hd"}
DIFF_HEADS = ("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "similarity", "rename ", "Binary ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    name: str
    title: str
    url: str
    current: bool
    count: int | None = None


def signals_of(session: Session) -> Signals | None:
    """The signals stored for the session's transcript; None without any, or if another version of them is stored."""
    stored = session.signals
    if stored is None:
        return None
    try:
        return Signals.from_dict({name: value for name, value in stored.items() if name != sources.HIDDEN})
    except ValueError:
        return None


def what_it_did(session: Session, signals: Signals | None, log: TranscriptEvents) -> dict[str, Any]:
    """The context of `_did.html`: the activity, records copied from other sessions, the session that this one is a part
    of, and artifacts that other sessions own.
    """
    artifacts = list(session.artifacts.select_related("owned_by"))
    return {
        "did": activity.rows(session, signals, artifacts, log),
        "log_witness": log.row.witness if log.row else "",
        "carried": material.carried_over(session),
        "part_of": ownership.part_of(session),
        "elsewhere": [each for each in artifacts if each.owned_by is not None][:MAX_FOREIGN_ARTIFACTS],
    }


def journal(session: Session) -> dict[str, Any]:
    return evidence_text(session, EvidenceKind.JOURNAL, JOURNAL_LIMIT)


def evidence_text(session: Session, kind: EvidenceKind, limit: int) -> dict[str, Any]:
    """The start of some evidence as redacted text, about `limit` bytes; `problem` is why it can't be read, else ""."""
    row = store.usable(session, kind)
    if row is None:
        return {"text": "", "problem": "", "cut": False}
    try:
        text = store.text_of(row, limit + MARGIN)
    except OSError as error:
        return {"text": "", "problem": f"{Reason.UNREADABLE.words}: {error}"}
    # The end of a text that goes on may be a part of a secret, so MARGIN more was read than is shown.
    end = max(len(text) - MARGIN, 0) if row.size > limit + MARGIN else limit
    return {"text": redact_slice(text, 0, end), "problem": "", "cut": row.size > limit}


def patch(session: Session) -> dict[str, Any]:
    """The start of the patch as `evidence_text`, with its `lines` and their CSS classes, the number of `more` lines,
    and how many lines were `added` and `removed`.
    """
    context = evidence_text(session, EvidenceKind.PATCH, PATCH_LIMIT)
    lines = context["text"].splitlines()
    context["lines"] = [
        {"css": "hd" if line.startswith(DIFF_HEADS) else DIFF_CLASSES.get(line[:1], ""), "text": line}
        for line in lines[:PATCH_LINES]
    ]
    context["more"] = max(len(lines) - PATCH_LINES, 0)
    context["added"] = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    context["removed"] = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    return context
