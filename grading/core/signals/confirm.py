"""Does a result show what a call set out to do? Each function compares intents with an output."""

from collections.abc import Sequence
from dataclasses import dataclass

from grading.core.signals import outputs
from grading.core.signals.intents import Check, Intent
from grading.core.signals.model import Commit, EffectKind

MAX_KEYS = 20
MAX_COMMITS = 200
MIN_SUBJECT = 8
URLS = {
    EffectKind.PR_OPENED: outputs.PULL,
    EffectKind.ISSUE_OPENED: outputs.ISSUE,
    EffectKind.COMMENT: outputs.COMMENT,
}
SENTENCES = {
    EffectKind.PR_MERGED: outputs.MERGED,
    EffectKind.PR_CLOSED: outputs.CLOSED_PULL,
    EffectKind.ISSUE_CLOSED: outputs.CLOSED_ISSUE,
    EffectKind.PR_REVIEWED: outputs.REVIEWED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A result: its readable text, whether the call worked (None: the format does not say), and its event's number."""

    text: str
    ok: bool | None
    at: int

    def may_confirm(self, intent: Intent) -> bool:
        """Whether a failure of the call leaves it open that this part of it worked (I17)."""
        return self.ok is not False or not intent.is_last


def commits(intents: Sequence[Intent], shown: Shown) -> list[tuple[Commit, bool]]:
    """The commits that an output announces, with whether each amends the one before it.

    As many as there are commit commands, so that a log printed beside one is not counted; a script may make several,
    and then git's count of changed files must follow each.
    """
    if not intents:
        return []
    has_script = any(intent.opaque for intent in intents)
    plain = [intent for intent in intents if not intent.opaque]
    lines = list(outputs.commit_lines(shown.text))
    # With fewer commands than lines, those that git followed with its count of files come first.
    lines = sorted(lines, key=lambda line: not line.has_stat) if len(lines) > len(plain) else lines
    kept = [line for number, line in enumerate(lines) if number < len(plain) or (has_script and line.has_stat)]
    found = []
    for index, line in enumerate(kept[:MAX_COMMITS]):
        intent = plain[index] if index < len(plain) else intents[-1]
        paths = tuple(dict.fromkeys((*_files_named(intent), *line.paths)))
        commit = Commit(hash=line.hash, branch=line.branch, subject=line.subject, at=shown.at, paths=paths)
        found.append((commit, intent.amends))
    return found or _quiet_commit(plain, shown)


def _files_named(intent: Intent) -> tuple[str, ...]:
    """The paths of a commit's argv, or none where one of them is a whole folder or pattern."""
    is_broad = any(path in (".", "*", ":/", "$()") or path.endswith("/") or "*" in path for path in intent.paths)
    return () if is_broad else intent.paths


def _quiet_commit(intents: Sequence[Intent], shown: Shown) -> list[tuple[Commit, bool]]:
    """Quiet commits whose hash the same call then printed: under their own subject, or right after they succeeded."""
    found = [commit for intent in intents if intent.quiet for commit in logged_commit(intent, shown)]
    first = next((intent for intent in intents if intent.quiet and intent.shows_hash), None)
    if found or shown.ok is not True or first is None or (match := outputs.BARE_HASH.search(shown.text)) is None:
        return found
    subject = match["subject"] or ""
    commit = Commit(hash=match["hash"], branch="", subject=subject, at=shown.at, paths=_files_named(first))
    return [(commit, first.amends)]


def logged_commit(intent: Intent, shown: Shown) -> list[tuple[Commit, bool]]:
    """The commit that a log lists under the very subject that the quiet commit command gave."""
    hash_ = outputs.logged(shown.text, intent.subject) if len(intent.subject) >= MIN_SUBJECT else None
    if hash_ is None:
        return []
    commit = Commit(hash=hash_, branch="", subject=intent.subject[:200], at=shown.at, paths=_files_named(intent))
    return [(commit, intent.amends)]


def open_commits(intents: Sequence[Intent], confirmed: int, shown: Shown) -> list[Intent]:
    """Commit commands that may still be running: no line yet, nothing refused, and no word that the call is over."""
    if shown.ok is not None or outputs.NOTHING_TO_COMMIT.search(shown.text):
        return []
    return [intent for intent in intents if not intent.opaque and not intent.quiet][confirmed:]


def effect_keys(intent: Intent, shown: Shown) -> list[str]:
    """Which effects of the intent's kind the output shows: addresses, references; empty where it shows none."""
    kind = intent.kind
    if not isinstance(kind, EffectKind):
        return []
    if kind is EffectKind.PUSH:
        return [f"{m['target']} {m['new'] or m['source']}" for m in outputs.PUSH.finditer(shown.text)][:MAX_KEYS]
    if kind is EffectKind.PR_OPENED and outputs.ALREADY.search(shown.text):
        return []
    if kind in URLS:
        found = URLS[kind].search(shown.text)
        return [found.group()] if found else []
    said = SENTENCES[kind].search(shown.text)
    if said is not None:
        return [intent.target or (said["what"] or "").rstrip(".") or said.group()]
    # gh says nothing of a merge or review unless it has a terminal: then its own success and the number it named count.
    silent = kind in (EffectKind.PR_MERGED, EffectKind.PR_REVIEWED)
    return [intent.target] if silent and shown.ok is True and intent.proven and intent.target else []


def check_outcome(intent: Intent, shown: Shown) -> bool | None:
    """Whether a check or test run passed; None where neither its output nor its exit status says."""
    said = outputs.check_outcome(shown.text) if intent.kind is Check.CI else outputs.test_outcome(shown.text)
    if said is not None:
        return said
    if shown.ok is False:
        return False if intent.is_last and intent.kind is Check.TESTS else None
    return True if shown.ok and intent.proven else None
