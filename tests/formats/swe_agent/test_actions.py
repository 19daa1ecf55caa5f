"""SWE-agent's commands are told from command lines of the shell, and their outputs say whether they failed."""

import pytest

from grading.formats.events import Clarity
from grading.formats.swe_agent.actions import has_failed, read_action

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("action", "kind", "path", "arguments"),
    [
        ("create a.py", "write", "a.py", {"args": "a.py", "content": ""}),
        ("open src/a.py 12", "read", "src/a.py", {"args": "src/a.py 12"}),
        ("edit 1:2\nx = 1\nend_of_edit", "edit", "/w/open.py", {"content": "x = 1", "lines": "1:2"}),
        ("edit 'a = 1' 'a = 2' False", "edit", "/w/open.py", {"old_string": "a = 1", "new_string": "a = 2"}),
        ("find_file a.py src", "search", "", {"args": "a.py src"}),
        ("submit", "other", "", {"args": ""}),
        ("git commit -m 'x'", "shell", "", {"command": "git commit -m 'x'"}),
        ("cd src && create=1", "shell", "", {"command": "cd src && create=1"}),
        (
            "str_replace_editor str_replace /w/a.py --old_str 'a' --new_str 'b c'",
            "edit",
            "/w/a.py",
            {"command": "str_replace", "path": "/w/a.py", "old_str": "a", "new_str": "b c"},
        ),
        (
            "str_replace_editor create /w/b.py --file_text 'x'",
            "write",
            "/w/b.py",
            {"command": "create", "path": "/w/b.py", "file_text": "x"},
        ),
        ("str_replace_editor view /w/a.py", "read", "/w/a.py", {"command": "view", "path": "/w/a.py"}),
    ],
)
def test_action_is_a_call(action: str, kind: str, path: str, arguments: dict):
    call = read_action(action, "/w/open.py")
    assert (call.kind, call.path, dict(call.arguments), call.clarity) == (kind, path, arguments, Clarity.UNDERSTOOD)


def test_editor_with_quotes_that_do_not_match_is_unreadable():
    assert read_action("str_replace_editor create /w/b.py --file_text 'x", "").clarity is Clarity.UNREADABLE


@pytest.mark.parametrize(
    ("action", "output", "failed"),
    [
        ("edit 1:1\nx\nend_of_edit", "Your proposed edit has introduced new syntax error(s).", True),
        ("edit 1:1\nx\nend_of_edit", "File updated. Please review the changes", False),
        ("edit 1:1\nx\nend_of_edit", "[File: a.py (1 lines total)]", False),
        ("str_replace_editor str_replace a --old_str b --new_str c", "No replacement was performed, old_str", True),
        ("str_replace_editor str_replace a --old_str b --new_str c", "The file a has been edited. Here's", False),
        ("open a.py", "File a.py not found", True),
        ("submit flag", "Wrong flag!", True),
        ("submit", "\ndiff --git a/a b/a", None),
        ("python a.py", "Traceback (most recent call last)", None),
    ],
)
def test_output_shows_a_failure(action: str, output: str, *, failed: bool | None):
    assert has_failed(read_action(action, "a.py"), output) is failed
