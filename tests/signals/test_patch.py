"""Patches come from strangers: read what is there, refuse what isn't a diff, and say where."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.signals import patch
from grading.signals.patch import MalformedPatch

pytestmark = pytest.mark.pure

GIT = """\
diff --git a/tasks/new.md b/tasks/new.md
new file mode 100644
index 0000000..1111111
--- /dev/null
+++ b/tasks/new.md
@@ -0,0 +1,2 @@
+# A task
+body
diff --git a/a.py b/a.py
index 1111111..2222222 100644
--- a/a.py
+++ b/a.py
@@ -1,2 +1,2 @@
-old
+new
 same
diff --git a/gone.py b/gone.py
deleted file mode 100644
index 1111111..0000000
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/x.png b/x.png
new file mode 100644
index 0000000..3333333
Binary files /dev/null and b/x.png differ
"""


def test_files_have_paths_newness_and_lines():
    files = [(file.path, file.is_new, file.added, file.removed) for file in patch.parse(GIT).files]
    assert files == [
        ("tasks/new.md", True, ("# A task", "body"), ()),
        ("a.py", False, ("new",), ("old",)),
        ("gone.py", False, (), ("bye",)),
        ("x.png", True, (), ()),
    ]


def test_windows_line_ends_and_a_mail_header_are_read():
    mail = "From abc Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\n---\n a.py | 2 +-\n\n" + GIT
    assert len(patch.parse(mail.replace("\n", "\r\n")).files) == 4


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_patch_has_no_files(text):
    assert patch.parse(text).files == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hello\nworld\n", "no file header"),
        ("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n", "line"),
        ("@@ -1 +1 @@\n-a\n+b\n", "at line 1"),
        ("+++ b/x\n", "at line 1"),
        (GIT[: GIT.index("+body")], "at line"),
        ("x" * (patch.MAX_CHARACTERS + 1), "at most"),
    ],
)
def test_a_malformed_patch_says_where_and_what_to_do(text, says):
    with pytest.raises(MalformedPatch, match=says) as caught:
        patch.parse(text)
    assert "git diff" in str(caught.value) or "leave out" in str(caught.value)


@given(st.text(alphabet='-+@ab/ 1,\n\\\t"dif', max_size=300) | st.text(max_size=100))
def test_no_text_raises_anything_else(text):
    with contextlib.suppress(MalformedPatch):
        assert isinstance(patch.parse(text).files, tuple)


@pytest.mark.parametrize(
    "unit", ["diff --git a/x b/x\n", "--- a\n+++ b\n", "\\ No newline\n", "diff --git " + "a " * 3_000 + "\n"]
)
def test_a_hostile_patch_costs_little(unit):
    start = time.process_time()
    with contextlib.suppress(MalformedPatch):
        patch.parse(unit * (200_000 // len(unit)))
    assert time.process_time() - start < 3
