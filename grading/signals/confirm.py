"""Compares the intents of a call with its output: which of them the result confirms."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from grading.signals import outputs
from grading.signals.final_state import SuiteRun
from grading.signals.intents import Intent
from grading.signals.model import Check, Commit, EffectKind
from grading.signals.suites import Suite

MAX_KEYS = 20
MAX_COMMITS = 200
# The tests that a repository's commit and push hooks run, in any language.
HOOK = Suite(runner="the commit hook")
CURRENT_BRANCH_KEY = "of the current branch"
NUMBER_AT_END = re.compile(r"\d{1,9}\Z", re.ASCII)
URL_PATTERNS = {
    EffectKind.PR_OPENED: outputs.PULL,
    EffectKind.ISSUE_OPENED: outputs.ISSUE,
    EffectKind.COMMENT: outputs.COMMENT,
}
# Messages that an effect of the kind did not happen.
REFUSALS = {EffectKind.PR_OPENED: outputs.ALREADY_EXISTS, EffectKind.PR_REVIEWED: outputs.REVIEW_REFUSED}
CONFIRMATIONS = {
    EffectKind.PR_MERGED: outputs.MERGED,
    EffectKind.PR_CLOSED: outputs.CLOSED_PULL,
    EffectKind.ISSUE_CLOSED: outputs.CLOSED_ISSUE,
    EffectKind.PR_REVIEWED: outputs.REVIEWED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """The result of a call: its cleaned text, whether the call succeeded (None: unknown), and its event's number.

    `is_running`: the call has not ended. `session`: the id of the running shell or task that it names, if any.
    """

    text: str
    ok: bool | None
    at: int
    is_running: bool = False
    session: str = ""

    def may_confirm(self, intent: Intent) -> bool:
        """Whether this part of the call may have worked; if the call failed, any part but the last may have."""
        return self.ok is not False or not intent.is_last


def match_commits(intents: Sequence[Intent], result: CallResult) -> list[tuple[Commit, Intent]]:
    """The commits that an output announces, each with the commit intent that made it.

    At most as many as the commit commands make, so that a log printed beside one is not counted. If a script of unknown
    content ran, further ones count too, but only those that git's count of changed files follows.
    """
    if not intents:
        return []
    expected: list[Intent] = []  # the intent of each commit that the commands make
    for intent in intents:
        if not intent.opaque:
            expected += [intent] * intent.times
    expected = expected[:MAX_COMMITS]
    lines = list(outputs.parse_commit_lines(result.text))
    if len(lines) > len(expected):  # prefer lines with the subject of a command, then lines with a count of files
        subjects = {intent.subject for intent in expected} - {""}
        lines.sort(key=lambda line: (line.subject not in subjects, not line.has_stat))
    matches = [(_make_commit(line, intent, result.at), intent) for line, intent in zip(lines, expected, strict=False)]
    if any(intent.opaque for intent in intents):
        further_lines = [line for line in lines[len(expected) :] if line.has_stat]
        # Which intent made a further commit is unknown; the last stands for it.
        matches += [(_make_commit(line, intents[-1], result.at), intents[-1]) for line in further_lines]
    return matches[:MAX_COMMITS]


def _make_commit(line: outputs.CommitLine, intent: Intent, at: int) -> Commit:
    """The commit of a line. An empty one, which doesn't count, has no hash: callers skip it."""
    is_empty = intent.may_be_empty and not line.has_stat
    paths = tuple(dict.fromkeys((*named_files(intent), *line.paths)))
    return Commit(hash="" if is_empty else line.hash, branch=line.branch, subject=line.subject, at=at, paths=paths)


def named_files(intent: Intent) -> tuple[str, ...]:
    """The paths that a commit's command line names; empty if one of them is a whole folder or a pattern."""
    is_broad = any(path in (".", "*", ":/", "$()") or path.endswith("/") or "*" in path for path in intent.paths)
    return () if is_broad else intent.paths


def find_effect_keys(intent: Intent, result: CallResult) -> list[str]:
    """The keys (URLs or references) of the effects of the intent's kind that the output confirms; empty for none."""
    kind = intent.kind
    if not isinstance(kind, EffectKind):
        return []
    if kind in REFUSALS and REFUSALS[kind].search(result.text):
        return []
    if kind in URL_PATTERNS:
        # If the call has several intents of the kind, this one's is the `nth` URL; in a loop, all are.
        urls = outputs.find_urls(URL_PATTERNS[kind], result.text)
        return urls[:MAX_KEYS] if intent.repeats else urls[intent.nth : intent.nth + 1]
    keys = _keys_of_messages(intent, CONFIRMATIONS[kind], result)
    if keys:
        return keys
    key = _key_by_status(intent, result)
    return [key] if key else []


def _keys_of_messages(intent: Intent, pattern: re.Pattern[str], result: CallResult) -> list[str]:
    """The keys in the messages that `pattern` finds in the output, without those about another target.

    At most one, unless the call has a loop or function and may print several messages for the one intent.
    """
    keys = []
    for match in islice(pattern.finditer(result.text), MAX_KEYS):
        reference = (match["what"] or "").rstrip(".")
        if not _are_different(intent.target, reference):
            keys.append(reference or intent.target or match.group())
    if intent.repeats or not keys:
        return list(dict.fromkeys(keys))
    return [intent.target or keys[0]]


def _are_different(target: str, reference: str) -> bool:
    """Whether two references to issues or pull requests (`12`, `o/r#12`, a URL) have numbers that differ."""
    one, other = NUMBER_AT_END.search(target), NUMBER_AT_END.search(reference)
    return one is not None and other is not None and one[0] != other[0]


def _key_by_status(intent: Intent, result: CallResult) -> str:
    """The key of a merge or review that succeeded by its exit status, since gh prints nothing about it without a
    terminal; "" if it didn't, or if a review's target is unknown.
    """
    succeeded = result.ok is True and intent.proven
    if not succeeded and intent.echoes_status:
        succeeded = outputs.STATUS_ZERO.search(result.text) is not None
    if not succeeded or outputs.REFUSED.search(result.text):
        return ""
    if intent.kind is EffectKind.PR_MERGED:
        return intent.target or CURRENT_BRANCH_KEY
    return intent.target if intent.kind is EffectKind.PR_REVIEWED else ""


def may_have_merged(intent: Intent, result: CallResult) -> bool:
    """Whether an unconfirmed merge may have happened: gh merges first, and may then fail in the local repository."""
    if intent.is_deferred or not intent.target:
        return False
    if "failed to run git" in result.text:
        return True
    return result.ok is not False and not outputs.REFUSED.search(result.text)


def find_check_outcomes(intent: Intent, result: CallResult) -> dict[str, bool]:
    """Whether the checks of CI passed, by their target: a pull request, or a workflow on a branch.

    Empty if neither the output nor the exit status shows it.
    """
    runs = outputs.parse_workflow_runs(result.text)
    if runs:
        return runs
    passed = outputs.read_check_outcome(result.text)
    if passed is None and result.ok is True and intent.proven:
        passed = True
    if passed and result.is_running:  # it may still fail
        passed = None
    return {} if passed is None else {intent.target: passed}


def find_suite_runs(intents: Sequence[Intent], result: CallResult) -> list[tuple[Intent, SuiteRun | None]]:
    """The run of each suite that a call runs, from its one output; None while it may still be running.

    If the call runs several suites, or one several times, the outcome of each is unknown, unless all passed or each has
    its own part of the output below a heading. If nothing in the output is green, the first one failed. If the same
    tests pass and fail in one call, the outcome of the later run is unknown: it is often made to show that they fail.
    """
    suites = [(intent, intent.suite) for intent in intents if intent.suite is not None]
    parts = _split_by_headings([intent for intent, _suite in suites], result.text)
    runs: list[tuple[Intent, SuiteRun | None]] = []
    for index, (intent, suite) in enumerate(suites):
        text, ok = result.text, result.ok
        if parts:
            is_last = index == len(parts) - 1
            text, ok = parts[index], result.ok if is_last else None
        is_alone = len(suites) == 1 or bool(parts)
        passed, is_over = _read_outcome(intent, text, ok=ok, is_alone=is_alone)
        may_go_on = result.is_running and passed is not False
        if not is_over or may_go_on:
            runs.append((intent, None))
            continue
        if passed is False:
            is_mixed = outputs.TESTS_GREEN.search(text) is not None
            is_first = index == 0 and intent.kind is Check.TESTS
            may_be_others = (intent.repeats and is_mixed) or (not is_alone and (is_mixed or not is_first))
            passed_before = any(run.passed and run.suite.covers(suite) for _intent, run in runs if run is not None)
            if may_be_others or passed_before:
                passed = None
        runs.append((intent, _make_run(suite, text, passed=passed, at=result.at, place=intent.place)))
    return runs


def _make_run(suite: Suite, text: str, *, passed: bool | None, at: int, place: str = "") -> SuiteRun:
    """A run with its outcome and the failures in its output. A run that was only refused is unknown."""
    if passed:
        return SuiteRun(suite=suite, passed=True, at=at, place=place)
    text = outputs.report_ends(text)
    was_refused = outputs.was_only_refused(text)
    return SuiteRun(
        suite=suite,
        passed=None if was_refused else passed,
        at=at,
        place=place,
        was_refused=was_refused,
        failures=outputs.read_failures(text),
    )


def find_hook_run(result: CallResult) -> SuiteRun | None:
    """The run of the tests in a hook, from the output of a commit or push; None if no hook ran tests.

    A red run that did not stop the command is unknown.
    """
    text = outputs.HOOK_PREFIX.sub("", result.text)
    passed = outputs.read_test_outcome(text)
    if passed is None:
        return None
    if not passed and result.ok is not False:
        return SuiteRun(suite=HOOK, passed=None, at=result.at)
    return _make_run(HOOK, text, passed=passed, at=result.at)


def _read_outcome(intent: Intent, text: str, *, ok: bool | None, is_alone: bool) -> tuple[bool | None, bool]:
    """(whether a run passed, None if unknown; whether it was made and is over), by the summary in its output or by its
    exit status.

    `ok`: whether the call succeeded. `is_alone`: no other run shares the output.
    """
    if intent.kind is Check.BUILD:
        passed = False if outputs.BUILD_RED.search(text) else None
    else:
        passed = outputs.read_test_outcome(text)
    if ok is False and intent.is_last:
        if passed is None and outputs.never_ran(text):
            return None, outputs.shows_refusal(text)
        # A failing exit status outweighs a summary of passed tests. Without a summary, the tests failed only if nothing
        # before them could fail.
        failed_silently = passed is None and intent.is_first and is_alone
        if passed or failed_silently:
            passed = False
    if passed is None and ok is True and intent.proven:
        passed = True
    is_over = passed is not None or ok is not None
    return passed, is_over


def _split_by_headings(intents: Sequence[Intent], text: str) -> list[str]:
    """The parts of an output that belong to each of several runs, if each prints its own heading; else none."""
    if len(intents) < 2 or not all(intent.heading for intent in intents[1:]):  # noqa: PLR2004
        return []
    starts, searched = [], 0
    for intent in intents:
        start = text.find(intent.heading, searched)
        if start < 0:
            return []
        starts.append(start)
        searched = start + len(intent.heading)  # the next run may have the same heading
    starts[0] = 0
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
