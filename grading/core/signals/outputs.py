"""What the outputs of git, forges and test runners look like. Every pattern is bounded and linear."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

HEAD = 400_000
ANSI = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
COMMIT = re.compile(
    r"^\[(?P<branch>detached HEAD|[^\s\[\]]{1,250})(?: \(root-commit\))? (?P<hash>[0-9a-f]{7,40})\]"
    r" ?(?P<subject>.{0,200})",
    re.MULTILINE,
)
DIFFSTAT = re.compile(r"^ \d{1,9} files? changed", re.MULTILINE)
MODE_PATH = re.compile(r"^ (?:create|delete) mode \d{6} (?P<path>.{1,300})$", re.MULTILINE)
BARE_HASH = re.compile(r"^(?P<hash>[0-9a-f]{7,40})(?: (?P<subject>.{0,200}))?$", re.MULTILINE)
RUNNING = re.compile(r"running (?:in (?:the )?background|with session)", re.IGNORECASE)
NOTHING_TO_COMMIT = re.compile(r"nothing (?:added )?to commit|no changes added to commit", re.IGNORECASE)
PUSH = re.compile(
    r"^ (?:[ +*] )?(?: ?(?P<old>[0-9a-f]{7,40})\.{2,3}(?P<new>[0-9a-f]{7,40})|\[new (?:branch|tag)\]) {1,20}"
    r"(?P<source>\S{1,250}) -> (?P<target>\S{1,250})",
    re.MULTILINE,
)
FORGE = r"https?://(?!api\.)[\w.:-]{1,100}/(?:[\w.~-]{1,100}/){2,6}?"
PULL = re.compile(FORGE + r"(?:pull|pulls|-/merge_requests|merge_requests|pull-requests)/\d{1,9}(?![\w/#-])")
ISSUE = re.compile(FORGE + r"(?:-/)?issues/\d{1,9}(?![\w/#-])")
COMMENT = re.compile(
    FORGE + r"(?:pull|pulls|issues|-/merge_requests|-/issues|commit|discussions)/\w{1,40}"
    r"#(?:issuecomment-|discussion_r|discussioncomment-|pullrequestreview-|note_|commitcomment-)\d{1,15}"
)
MERGED = re.compile(r"(?:merged|Merged) pull request (?P<what>\S{1,150})|\"merged\":\s{0,5}true")
CLOSED_PULL = re.compile(r"Closed pull request (?P<what>\S{1,150})")
CLOSED_ISSUE = re.compile(r"Closed issue (?P<what>\S{1,150})|\"state\":\s{0,5}\"(?:closed|CLOSED)\"")
REVIEWED = re.compile(r"(?:Approved|Reviewed|Requested changes to) pull request (?P<what>\S{1,150})")
ALREADY = re.compile(r"already exists", re.IGNORECASE)
CHECK_RED = re.compile(
    r"\t(?:fail|failure|timed_out)(?:\t|$)|^X |\"(?:conclusion|state|bucket)\":\s{0,5}\"(?:failure|fail)\"",
    re.MULTILINE | re.IGNORECASE,
)
CHECK_OPEN = re.compile(r"\t(?:pending|in_progress|queued)(?:\t|$)|^\* ", re.MULTILINE | re.IGNORECASE)
CHECK_GREEN = re.compile(
    r"\t(?:pass|success)(?:\t|$)|^✓ |\"(?:conclusion|state|bucket)\":\s{0,5}\"(?:success|pass)\"|"
    r"All checks were successful",
    re.MULTILINE | re.IGNORECASE,
)
TESTS_RED = re.compile(
    r"\b[1-9]\d{0,6} (?:failed|failing|failures?|errors?)\b|^FAILED?\b|test result: FAILED|^--- FAIL|^# fail [1-9]|"
    r"(?:Failures|Errors): {1,3}[1-9]|BUILD FAILURE|^ERROR\b",
    re.MULTILINE,
)
TESTS_GREEN = re.compile(
    r"\b[1-9]\d{0,6} (?:passed|passing)\b|^OK\b|test result: ok|^ok {0,2}\t|^PASS\b|^# pass [1-9]|"
    r"\b0 failures\b|BUILD SUCCESS|Tests run: [1-9]",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLine:
    """What git said of a commit; `has_stat`: its count of changed files follows."""

    hash: str
    branch: str
    subject: str
    paths: tuple[str, ...]
    has_stat: bool


def readable(text: str) -> str:
    """The beginning and end of an output, without colours: enough to find what a command said."""
    if len(text) > 2 * HEAD:
        text = f"{text[:HEAD]}\n{text[-HEAD:]}"
    return ANSI.sub("", text).replace("\r\n", "\n") if "\x1b" in text or "\r" in text else text


def commit_lines(text: str) -> Iterator[CommitLine]:
    """Each commit that git announces, with what it lists below it."""
    matches = list(COMMIT.finditer(text))
    for index, match in enumerate(matches):
        end = matches[index + 1].start() if index + 1 < len(matches) else len(text)
        below = text[match.end() : min(end, match.end() + 20_000)]
        yield CommitLine(
            hash=match["hash"],
            branch=match["branch"],
            subject=match["subject"].strip(),
            paths=tuple(found["path"] for found in MODE_PATH.finditer(below)),
            has_stat=DIFFSTAT.search(below[:400]) is not None,
        )


def logged(text: str, subject: str) -> str | None:
    """The hash beside a subject in a log of one line a commit; references in parentheses may stand between."""
    if subject[:200] not in text:
        return None
    pattern = rf"^(?:\* )?(?P<hash>[0-9a-f]{{7,40}}) (?:\([^()\n]{{1,200}}\) )?{re.escape(subject[:200])}"
    match = re.compile(pattern, re.MULTILINE).search(text)
    return match["hash"] if match else None


def check_outcome(text: str) -> bool | None:
    """Whether a forge's checks passed; None where they are not over or the text does not say."""
    if CHECK_RED.search(text):
        return False
    if CHECK_OPEN.search(text) or not CHECK_GREEN.search(text):
        return None
    return True


def test_outcome(text: str) -> bool | None:
    """Whether a test run passed, by the runner's own summary; None where there is none."""
    if TESTS_RED.search(text):
        return False
    return True if TESTS_GREEN.search(text) else None
