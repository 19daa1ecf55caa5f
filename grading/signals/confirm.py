"""Does a result show what a call set out to do? Each function compares intents with an output."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from grading.signals import outputs
from grading.signals.intents import Check, Intent
from grading.signals.model import Commit, EffectKind

MAX_KEYS = 20
MAX_COMMITS = 200
CURRENT = "of the current branch"
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
class CallResult:
    """A result: its readable text, whether the call worked (None: the format does not say), and its event's number.

    `is_running`: the call has not ended. `session`: the id of the running shell or task that it names, if any.
    """

    text: str
    ok: bool | None
    at: int
    is_running: bool = False
    session: str = ""

    def may_confirm(self, intent: Intent) -> bool:
        """Whether a failure of the call leaves it open that this part of it worked."""
        return self.ok is not False or not intent.is_last


def commits(intents: Sequence[Intent], shown: CallResult) -> list[tuple[Commit, Intent]]:
    """The commits that an output announces, each with the command that made it.

    As many as there are commit commands, so that a log printed beside one is not counted; a script may make several,
    and then git's count of changed files must follow each.
    """
    if not intents:
        return []
    has_script = any(intent.opaque for intent in intents)
    plain = [intent for intent in intents if not intent.opaque for _ in range(intent.times)][:MAX_COMMITS]
    lines = list(outputs.commit_lines(shown.text))
    # With fewer commands than lines, those come first whose subject a command gave, then those with a count of files.
    if len(lines) > len(plain):
        subjects = {intent.subject for intent in plain} - {""}
        lines.sort(key=lambda line: (line.subject not in subjects, not line.has_stat))
    kept = [line for number, line in enumerate(lines) if number < len(plain) or (has_script and line.has_stat)]
    found = []
    for index, line in enumerate(kept[:MAX_COMMITS]):
        intent = plain[index] if index < len(plain) else intents[-1]
        paths = tuple(dict.fromkeys((*files_named(intent), *line.paths)))
        commit = Commit(hash=line.hash, branch=line.branch, subject=line.subject, at=shown.at, paths=paths)
        found.append((commit if line.has_stat or not intent.may_be_empty else replace(commit, hash=""), intent))
    return found


def files_named(intent: Intent) -> tuple[str, ...]:
    """The paths of a commit's argv, or none where one of them is a whole folder or pattern."""
    is_broad = any(path in (".", "*", ":/", "$()") or path.endswith("/") or "*" in path for path in intent.paths)
    return () if is_broad else intent.paths


def is_refused(shown: CallResult) -> bool:
    """Whether git says that there is nothing to commit."""
    return outputs.NOTHING_TO_COMMIT.search(shown.text) is not None


def effect_keys(intent: Intent, shown: CallResult) -> list[str]:
    """Which effects of the intent's kind the output shows: addresses, references; empty where it shows none."""
    kind = intent.kind
    if not isinstance(kind, EffectKind):
        return []
    refusal = {EffectKind.PR_OPENED: outputs.ALREADY, EffectKind.PR_REVIEWED: outputs.REVIEW_REFUSED}.get(kind)
    if refusal is not None and refusal.search(shown.text):
        return []
    if kind in URLS:
        found = outputs.addresses(URLS[kind], shown.text)
        return found[:MAX_KEYS] if intent.repeats else found[intent.nth : intent.nth + 1]
    said = list(islice(SENTENCES[kind].finditer(shown.text), MAX_KEYS))
    if said:
        keys = [match["what"].rstrip(".") if match["what"] else intent.target or match.group() for match in said]
        return list(dict.fromkeys(keys)) if intent.repeats else [intent.target or keys[0]]
    # gh says nothing of a merge or review unless it has a terminal: then its own success and its number count.
    works = (shown.ok is True and intent.proven) or (intent.echoes_status and outputs.STATUS_ZERO.search(shown.text))
    if not works or outputs.REFUSED.search(shown.text):
        return []
    if kind is EffectKind.PR_MERGED:
        return [intent.target or CURRENT]
    return [intent.target] if kind is EffectKind.PR_REVIEWED and intent.target else []


def may_have_merged(intent: Intent, shown: CallResult) -> bool:
    """Whether a merge that nothing confirms may be done: gh merges first, and may then fail in the local repository."""
    if intent.waits or not intent.target:
        return False
    return "failed to run git" in shown.text or not (shown.ok is False or outputs.REFUSED.search(shown.text))


def check_outcomes(intent: Intent, shown: CallResult) -> dict[str, bool]:
    """Which checks or test runs passed, by what they are of: a pull request, a workflow on a branch, a runner.

    Empty where neither the output nor the exit status says.
    """
    if intent.kind is Check.CI and (runs := outputs.workflow_runs(shown.text)):
        return runs
    said = outputs.check_outcome(shown.text) if intent.kind is Check.CI else outputs.test_outcome(shown.text)
    if intent.kind is Check.TESTS and shown.ok is False and intent.is_last and (said or intent.is_first):
        said = None if said is None and outputs.never_ran(shown.text) else False
    if said is None and shown.ok is True and intent.proven:
        said = True
    if said and shown.is_running:
        said = None
    return {} if said is None else {intent.target: said}
