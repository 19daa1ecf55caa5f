"""One sum of evidence, from facts, log and patch: each thing once, and more is never less."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.reward import trajectory as core
from grading.reward.production import collect
from grading.reward.trajectory import EvidenceView, TrajectoryInput
from grading.signals.facts import ObservedFacts
from grading.vocabulary import Source
from tests.casts import logs
from tests.casts.intake import calls, claude, reward, says, trajectory
from tests.examples import examples

SHA = "1a2b3c4" + "d" * 33
URL = "https://github.com/o/r/pull/7"
DIFF = """diff --git a/src/a.py b/src/a.py
--- a/src/a.py
+++ b/src/a.py
@@ -1 +1,2 @@
 x
+y
"""


@pytest.mark.django_db
def test_facts_of_a_commit_and_a_pull_request_beside_a_thin_log_and_a_journal_are_graded(site):
    log = claude("a1", ("user", "Do it. " + "x" * 6_000), says("Done."))
    facts = {"commits": [{"sha": SHA}], "pull_requests": [URL]}
    session = site.upload("a1", log, journal="# a1\n\nFixed and submitted.\n", facts=facts).session
    grade = trajectory(session)
    assert (grade.evidence["view"], grade.evidence["units"]) == (EvidenceView.FACTS, 2.2)
    assert reward(session).source == Source.TRAJECTORY
    assert session.flags.get().rule == "A1"  # a fallback from the caller's own word silences nothing


@pytest.mark.django_db
def test_the_same_commit_from_log_facts_and_file_from_patch_counts_once(site):
    log = logs.claude("a2", logs.COMMIT)
    alone = trajectory(site.upload("a2", log).session).evidence["units"]
    session = site.upload("a2", facts={"commits": [{"sha": SHA}]}).session
    assert trajectory(session).evidence["units"] == alone


@pytest.mark.django_db
def test_a_journal_adds_where_the_log_saw_less_than_a_commit(site):
    edit = ("Write", {"file_path": "/repo/a.py", "content": "x"}, "File created successfully at: /repo/a.py")
    submitted = "# a3\n\nFixed the bug and submitted a pull request. Merged the fix. Completed the task.\n"
    session = site.upload("a3", claude("a3", *calls(edit), says("Done.")), journal=submitted).session
    assert not trajectory(session).evidence["stands"]
    red = ("Bash", {"command": "pytest -q"}, "1 failed in 2.0s")
    session = site.upload("a4", claude("a4", *calls(edit, red), says("Done.")), journal=submitted).session
    assert reward(session).source == Source.TRAJECTORY  # it saw the failure


@pytest.mark.django_db
def test_a_patch_alone_is_graded_as_what_it_is(site):
    session = site.upload("a5", patch=DIFF).session
    assert (trajectory(session).evidence["view"], trajectory(session).evidence["terms"][0]["kind"]) == ("facts", "file")


hashes = st.integers(0, 2**64).map(lambda number: f"{number:040x}"[::-1])


@given(
    st.lists(hashes, max_size=8, unique_by=lambda sha: sha[:7]), st.lists(st.integers(1, 99), max_size=8), st.booleans()
)
@examples(100)
def test_one_more_fact_never_lowers_what_facts_are_worth(commits, pulls, failed):
    def value(facts: ObservedFacts) -> float:
        return core.grade(TrajectoryInput(production=collect(facts=facts), facts=facts)).value or 0.0

    checks = ("ci",) if failed else ()
    urls = tuple(f"https://github.com/o/r/pull/{number}" for number in dict.fromkeys(pulls))
    held = ObservedFacts(commits=tuple(commits), pull_requests=urls, failed_checks=checks)
    assert value(ObservedFacts(commits=(*commits, "f" * 40), pull_requests=urls, failed_checks=checks)) >= value(held)
    more = ObservedFacts(
        commits=tuple(commits), pull_requests=(*urls, "https://github.com/o/r/pull/777"), failed_checks=checks
    )
    assert value(more) >= value(held)
