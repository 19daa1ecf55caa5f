"""Each confirmed thing counts once, whoever saw it, and only for the session whose it is."""

import pytest

from grading.reward.production import collect
from grading.signals import Commit, Effect, EffectKind, Signals, patch
from grading.signals.changes import FileChange
from grading.signals.facts import Foreign, ObservedFacts

pytestmark = pytest.mark.pure

FULL = "abc1234" + "0" * 33
URL = "https://github.com/o/r/pull/7"
DIFF = """diff --git a/src/a.py b/src/a.py
--- a/src/a.py
+++ b/src/a.py
@@ -1 +1 @@
-x
+y
"""


def commit(hash_: str = "abc1234", *paths: str) -> Commit:
    return Commit(hash=hash_, branch="main", subject="x", at=5, paths=paths)


def opened(url: str) -> Effect:
    return Effect(kind=EffectKind.PR_OPENED, key=url, at=6)


def test_a_commit_in_facts_and_log_counts_once():
    found = collect(Signals(commits=(commit(),)), facts=ObservedFacts(commits=(FULL,)))
    assert [(thing.kind, thing.seen_in, thing.at) for thing in found.things] == [("commit", ("transcript", "facts"), 5)]


def test_a_pull_request_counts_once_however_it_is_spelt():
    signals = Signals(effects=(opened("https://github.com/O/R/pull/7/files"),))
    assert collect(signals, facts=ObservedFacts(pull_requests=(URL,))).units == 1.2


def test_a_file_in_log_and_patch_counts_once():
    signals = Signals(files=(FileChange(path="/work/r/src/a.py", at=1),))
    found = collect(signals, patch=patch.parse(DIFF), root="/work/r")
    assert [(thing.key, thing.seen_in) for thing in found.things] == [("src/a.py", ("transcript", "patch"))]


def test_facts_and_patch_count_without_a_log():
    found = collect(facts=ObservedFacts(commits=(FULL,), pull_requests=(URL,)), patch=patch.parse(DIFF))
    assert [term.kind for term in found.terms] == ["commit", "pr_opened", "file"]
    assert found.is_work


def test_what_belongs_to_another_session_is_left_out():
    signals = Signals(commits=(commit(),), effects=(opened(URL),))
    foreign = Foreign(commits=frozenset({FULL}), pull_requests=frozenset({URL}))
    assert collect(signals, facts=ObservedFacts(commits=(FULL,)), foreign=foreign).things == ()


def test_a_commit_that_was_taken_back_does_not_come_back_through_facts():
    assert collect(Signals(undone=("abc1234",)), facts=ObservedFacts(commits=(FULL,))).things == ()


def test_a_commit_of_a_diary_stays_bookkeeping_when_facts_name_it():
    found = collect(Signals(commits=(commit("abc1234", "journal/today.md"),)), facts=ObservedFacts(commits=(FULL,)))
    assert (found.units, found.is_work) == (0.1, False)


def test_a_file_that_the_consumption_grade_counts_is_no_production():
    found = collect(patch=patch.parse(DIFF), artifacts=["**"])
    assert [thing.kind for thing in found.things] == []
