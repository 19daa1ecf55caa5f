"""Edits that loosen tests: they delete an assertion, skip a test, or change an expected value."""

import re

from grading.signals.changes import FileChange

TEST_FILE = re.compile(
    r"(?:^|/)(?:tests?|__tests__|spec|specs)/|(?:^|/)(?:test_[^/]{1,200}|[^/]{1,200}(?:_test|_spec|\.test|\.spec|Tests?))"
    r"\.\w{1,5}$|(?:^|/)conftest\.py$"
)
ASSERTION = re.compile(
    r"\bassert\w{0,40}[ (!.]|\bexpect\w{0,20}\(|\.should\b|\bt\.(?:Error|Fatal)f?\(|\b(?:require|assert)\.\w{1,40}\(|"
    r"\bEXPECT_\w{1,30}\("
)
SKIP = re.compile(
    r"@(?:pytest\.mark|unittest)\.(?:skip|xfail|expectedFailure)|\bpytest\.(?:skip|xfail)\(|\bself\.skipTest\(|"
    r"\b(?:it|test|describe|context)\.(?:skip|todo|fixme)\b|\bx(?:it|describe|test)\(|\bt\.Skip(?:f|Now)?\(|"
    r"^\s{0,40}#\[ignore|^\s{0,40}@(?:Disabled|Ignore)\b"
)
# What comes before the expected value of an assertion.
COMPARISON = re.compile(
    r"==|!=|\bis\b|\.to(?:Be|Equal|StrictEqual|Match|Contain|HaveLength)\w{0,20}\(|,|\.(?:eq|equal)\("
)


def loosens(change: FileChange) -> bool:
    """Whether a change of a test file removes assertions, adds skips, or changes an expected value."""
    if not TEST_FILE.search(change.path[-400:]):
        return False
    added = [line.strip() for line in change.added if ASSERTION.search(line[:500])]
    removed = [line.strip() for line in change.removed if ASSERTION.search(line[:500])]
    skipped = sum(SKIP.search(line[:500]) is not None for line in change.added)
    was_skipped = sum(SKIP.search(line[:500]) is not None for line in change.removed)
    if skipped > was_skipped or len(removed) > len(added):
        return True
    subjects = {_subject(line) for line in removed} - {""}
    return any(_subject(line) in subjects for line in added if line not in removed)


def _subject(line: str) -> str:
    """The line up to and including its last comparison, without the expected value; "" if it has no comparison."""
    ends = [match.end() for match in COMPARISON.finditer(line[:500])]
    return line[: ends[-1]] if ends else ""
