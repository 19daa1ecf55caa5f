"""Does a result show what a call set out to do? Each function compares intents with an output."""

from collections.abc import Sequence

from grading.core.signals import outputs
from grading.core.signals.intents import Check, Intent
from grading.core.signals.model import Commit, EffectKind

MAX_KEYS = 20
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


def commits(intents: Sequence[Intent], text: str, ok: bool | None, at: int) -> list[tuple[Commit, bool]]:  # noqa: FBT001 (three-valued)
    """The commits that an output announces, with whether each amends the one before it.

    As many as there are commit commands, so that a log printed beside one is not counted; a script may make several,
    and then git's count of changed files must follow each.
    """
    if not intents:
        return []
    has_script = any(intent.opaque for intent in intents)
    plain = [intent for intent in intents if not intent.opaque]
    lines = list(outputs.commit_lines(text))
    # With fewer commands than lines, those that git followed with its count of files come first.
    lines = sorted(lines, key=lambda line: not line.has_stat) if len(lines) > len(plain) else lines
    kept = [line for line in lines if line.has_stat][: MAX_KEYS * 10] if has_script else lines[: len(plain)]
    found = []
    for index, line in enumerate(kept):
        intent = plain[index] if index < len(plain) else intents[-1]
        paths = tuple(dict.fromkeys((*_files_named(intent), *line.paths)))
        commit = Commit(hash=line.hash, branch=line.branch, subject=line.subject, at=at, paths=paths)
        found.append((commit, intent.amends))
    return found or _quiet_commit(plain, text, ok, at)


def _files_named(intent: Intent) -> tuple[str, ...]:
    """The paths of a commit's argv, or none where one of them is a whole folder or pattern."""
    is_broad = any(path in (".", "*", ":/", "$()") or path.endswith("/") or "*" in path for path in intent.paths)
    return () if is_broad else intent.paths


def _quiet_commit(intents: Sequence[Intent], text: str, ok: bool | None, at: int) -> list[tuple[Commit, bool]]:  # noqa: FBT001 (three-valued)
    """A `commit -q` whose hash the same, successful call then printed (`git log --oneline -1`, `git rev-parse`)."""
    if ok is not True or not any(intent.quiet and intent.shows_hash for intent in intents):
        return []
    match = outputs.BARE_HASH.search(text)
    if match is None:
        return []
    commit = Commit(
        hash=match["hash"], branch="", subject=match["subject"] or "", at=at, paths=_files_named(intents[0])
    )
    return [(commit, intents[0].amends)]


def open_commits(intents: Sequence[Intent], confirmed: int, text: str, ok: bool | None) -> list[Intent]:  # noqa: FBT001 (three-valued)
    """Commit commands that may still be running: no line yet, nothing refused, and no word that the call is over."""
    if ok is not None or outputs.NOTHING_TO_COMMIT.search(text):
        return []
    return [intent for intent in intents if not intent.opaque and not intent.quiet][confirmed:]


def effect_keys(intent: Intent, text: str, ok: bool | None) -> list[str]:  # noqa: FBT001 (three-valued)
    """Which effects of the intent's kind the output shows: addresses, references; empty where it shows none."""
    kind = intent.kind
    if not isinstance(kind, EffectKind):
        return []
    if kind is EffectKind.PUSH:
        return [f"{m['target']} {m['new'] or m['source']}" for m in outputs.PUSH.finditer(text)][:MAX_KEYS]
    if kind is EffectKind.PR_OPENED and outputs.ALREADY.search(text):
        return []
    if kind in URLS:
        found = URLS[kind].search(text)
        return [found.group()] if found else []
    said = SENTENCES[kind].search(text)
    if said is not None:
        return [intent.target or (said["what"] or "").rstrip(".") or said.group()]
    # gh says nothing of a merge or review unless it has a terminal: then its own success and the number it named count.
    silent = kind in (EffectKind.PR_MERGED, EffectKind.PR_REVIEWED)
    return [intent.target] if silent and ok is True and intent.proven and intent.target else []


def check_outcome(intent: Intent, text: str, ok: bool | None) -> bool | None:  # noqa: FBT001 (three-valued)
    """Whether a check or test run passed; None where neither its output nor its exit status says."""
    said = outputs.check_outcome(text) if intent.kind is Check.CI else outputs.test_outcome(text)
    if said is not None:
        return said
    if ok is False:
        return False if intent.is_last and intent.kind is Check.TESTS else None
    return True if ok and intent.proven else None
