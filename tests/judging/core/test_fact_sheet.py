"""The fact sheet: what the site confirmed, in its own words; what anybody else wrote stays behind the bar."""

import re

import pytest

from grading import signals as found
from grading.judging.core import fact_sheet, prompt
from grading.judging.core.prompt import Case
from grading.reward.production import Production, Thing, collect
from grading.signals import Commit, Effect, EffectKind, Signals, extract
from grading.signals.facts import ObservedFacts
from grading.signals.patch import parse
from tests.corpus import grammar, injections
from tests.corpus.secrets import ALL
from tests.judging.core.test_prompt import FORGERIES, RUBRIC, built, shell, user

pytestmark = pytest.mark.pure

HASH = "4c1e9b2" + "0" * 33
URL = "https://github.com/o/r/pull/7"


def sheet(signals=None, production=None, limit=4000):
    production = collect(signals) if production is None else production
    return fact_sheet.write(signals, production, limit)


def commit(number, subject="x", at=None):
    return Commit(hash=f"{number:07x}", branch="main", subject=subject, at=at or number + 1)


def test_it_says_what_was_confirmed_where_it_was_seen_and_at_which_event():
    events = [
        user(1, "Fix it"),
        *shell(2, "pytest -q", "1 failed, 7 passed in 1s", failed=True),
        *shell(4, "pytest -q", "8 passed in 1s"),
        *shell(6, "git commit -am 'guard the retry'", "[main 4c1e9b2] guard the retry\n 1 file changed"),
        *shell(8, "gh pr create --fill", URL),
        *shell(10, "cat nothing", "cat: nothing: No such file or directory", failed=True),
    ]
    signals = extract(events)
    facts = ObservedFacts(commits=(HASH, "9" * 40), pull_requests=(URL,))
    patch = parse("--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n")
    made = sheet(signals, collect(signals, facts=facts, patch=patch))
    assert made.text.split("\n") == [
        "Confirmed: 2 commits, 1 pull request opened, 1 file changed",
        "Test runs: 1 passed, 1 failed; the tests passed at the end",
        "Results: 5, 2 of them failed",
        "[9] pull request opened, seen in the log and the caller's facts",
        f"  | {URL}",
        "[7] commit, seen in the log and the caller's facts",
        "  | 4c1e9b2 guard the retry",
        "- commit, seen in the caller's facts",
        "  | " + "9" * 40,
        "[3] test run failed",
        "  | pytest",
        "[5] test run passed",
        "  | pytest",
    ]
    assert made.numbers == {3, 5, 7, 9}


def test_it_stands_before_the_evidence_and_may_be_cited():
    signals = Signals(commits=(commit(3),))
    case = Case(metadata={}, signals=signals, production=collect(signals))
    made = prompt.build(case, RUBRIC, budget=24_000)
    assert made.user.startswith(
        f"{fact_sheet.HEADING}\nConfirmed: 1 commit\n[4] commit, seen in the log\n  | 0000003 x\n\n"
    )
    assert made.citable == {4}


def test_failures_are_named_by_their_events_as_far_as_there_is_room():
    failed = [e for n in range(100, 160, 2) for e in shell(n, f"tool{n}", "broke", failed=True)]
    made = built([user(1, "Fix it"), *failed])
    assert "Results: 30, 30 of them failed\nFailed results: events 101, 103, " in made.user
    few = fact_sheet.write(None, Production(), 400, failed_at=range(1, 41), failures=2000).text.split("\n")[1]
    assert few.startswith("Failed results: events ")
    assert few.endswith(f", 40, and {2000 - few.count(', ')} before them")
    assert len(few) < 200


def test_where_nothing_is_confirmed_it_says_so():
    assert sheet().text == "Nothing is confirmed."


def test_what_was_taken_back_or_loosened_is_counted():
    said = sheet(Signals(undone=("a" * 7, "b" * 7), loosened_tests=3, rejected=1)).text
    assert "Commits reverted or reset, which are not counted: 2" in said
    assert "Edits that took assertions out of tests or loosened them: 3" in said
    assert "Calls that the user refused: 1" in said


def test_test_runs_in_a_row_with_one_outcome_are_one_line():
    runs = [found.TestRun(runner="pytest", passed=n > 4, at=n) for n in range(1, 7)]
    assert [line for line in sheet(Signals(test_runs=tuple(runs))).text.split("\n") if line.startswith("[")] == [
        "[4] test run failed, as did the 3 before it",
        "[6] test run passed, as did the 1 before it",
    ]


def test_of_too_many_things_the_rest_is_counted():
    runs = tuple(found.TestRun(runner=f"r{n % 2}", passed=n % 3 == 0, at=2000 + n) for n in range(900))
    signals = Signals(commits=tuple(commit(n, "word " * 40) for n in range(900)), test_runs=runs)
    made = sheet(signals)
    assert len(made.text) <= 4000
    assert "Confirmed: 900 commits" in made.text
    assert "[2899] test run" in made.text
    shown = made.text.count("] commit, seen")
    assert f"({900 - shown} left out)" in made.text


@pytest.mark.parametrize("limit", [0, 100, 700, 4000])
def test_the_counts_are_there_whatever_the_limit(limit):
    run = found.TestRun(runner="r", passed=False, at=3)
    made = sheet(Signals(commits=(commit(1),), test_runs=(run,), broke_tests=True), limit=limit)
    assert made.text.startswith(
        "Confirmed: 1 commit\nTest runs: 0 passed, 1 failed; tests that it broke failed at the end"
    )
    assert len(made.text) <= max(limit, 200)


def test_nothing_that_an_agent_wrote_leaves_the_bar(subtests):
    """In a subject, an address, a branch, a runner, and a hash that the caller claims."""
    forgeries = {f"forgery {number}": text for number, text in enumerate(FORGERIES)}
    for name, text in {**forgeries, **injections.ALL}.items():
        signals = Signals(
            commits=(commit(1, text),),
            effects=(Effect(kind=EffectKind.PR_OPENED, key=text, at=4), Effect(kind=EffectKind.PUSH, key=text, at=5)),
            test_runs=(found.TestRun(runner=text, passed=True, at=6),),
        )
        production = collect(signals, facts=ObservedFacts(commits=(text,)))
        case = Case(metadata={}, signals=signals, production=production)
        made = prompt.build(case, RUBRIC, budget=24_000)
        with subtests.test(name):
            lines = grammar.sheet(made.user)
            grammar.evidence(made.user)
            assert {int(n) for line in lines for n in re.findall(r"^\[(\d+)\]", line)} == {2, 4, 5, 6}


def test_no_secret_is_in_it():
    secret = ALL["github classic"]
    thing = Thing(kind="push", key=f"main {secret.text}", seen_in=("transcript",), at=3)
    said = sheet(Signals(commits=(commit(1, secret.text),)), Production(things=(thing,))).text
    assert secret.parts[0][:8] not in said
