"""A site with history takes new rules over exactly: a preview first, old rows stay."""

import io

import pytest
from django.core.management import CommandError, call_command

from bandit import audit
from bandit.models import LedgerEntry
from grading.intake import regrading
from grading.models import Grade, Session, Settlement
from grading.reward import rewards
from grading.vocabulary import Outcome, Source
from tests.casts import logs

pytestmark = pytest.mark.django_db


def from_before(site, value: float = 0.08, *, log: bytes | None = None, **fields) -> Session:
    """A session as the first version of the trajectory graded it: whatever its log shows."""
    builder = site.session("code", **fields)
    data = logs.claude(builder.session.external_id) if log is None else log
    builder.with_file("transcript", data, format="claude-code")
    return builder.graded(Source.TRAJECTORY, value, version="trajectory/1").settle()


def learned(bandit: str = "category") -> list[tuple[str, int]]:
    live = LedgerEntry.objects.live().filter(bandit__name=bandit).order_by("observation")
    return [(entry.grader.source, entry.value_micro) for entry in live]


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("regrade", *arguments, stdout=out, stderr=out)
    return out.getvalue()


def test_a_preview_says_what_would_change_and_changes_nothing(site):
    from_before(site)
    before = (Grade.objects.count(), Settlement.objects.count(), LedgerEntry.objects.count())
    said = run("--preview")
    assert (Grade.objects.count(), Settlement.objects.count(), LedgerEntry.objects.count()) == before
    assert "1 sessions: 1 would change" in said
    assert "trajectory at weight 0.3 → not graded (no effect and no failure to see)" in said
    assert "category: mean of code from ." in said


def test_the_number_for_nothing_seen_goes_and_the_old_rows_stay(site):
    session = from_before(site)
    old = session.grades.get()
    assert learned() == [("trajectory", 80_000)]
    said = run("--yes")
    assert "1 changed" in said
    assert learned() == [("unscored", 0)]
    assert Grade.objects.filter(pk=old.pk, value=0.08, version="trajectory/1").exists()
    assert [row.source for row in session.settlements.order_by("revision")] == ["trajectory", "floor"]


def test_what_was_promised_is_what_happens(site):
    for value in (0.08, 0.2):
        from_before(site, value)
    promised = [regrading.preview(session) for session in Session.objects.order_by("pk")]
    run("--yes")
    assert [each.after for each in promised] == [
        regrading.standing(rewards.live(session), session) for session in Session.objects.order_by("pk")
    ]
    assert not audit.audit()


def test_doing_it_twice_changes_nothing_more(site):
    from_before(site)
    run("--yes")
    held = (Grade.objects.count(), Settlement.objects.count(), LedgerEntry.objects.count())
    assert "Nothing would change." in run("--yes")
    assert (Grade.objects.count(), Settlement.objects.count(), LedgerEntry.objects.count()) == held


def test_a_persons_grade_holds(site):
    session = from_before(site)
    site.on(session).graded(Source.HUMAN, 0.9, author=site.person("rita", "reviewer")).settle()
    run("--yes")
    assert rewards.live(session).value == 0.9


def test_a_session_whose_log_was_cut_loses_its_reward(site):
    again = from_before(
        site, log=logs.claude("cut-1", ("make build", "…"), api_error="API Error: 529 Overloaded"), external_id="cut-1"
    )
    run("--yes")
    again.refresh_from_db()
    assert (again.outcome, rewards.live(again).value) == (Outcome.INFRASTRUCTURE, None)
    assert learned() == []


def test_only_the_sessions_that_are_asked_for(site):
    from_before(site)
    from_before(site, agent=site.agent("eve"))
    assert "1 sessions: 1 would change" in run("--agent", "eve", "--preview")
    assert "No session matches" in run("--since", "2027-01-01")
    with pytest.raises(CommandError, match="known are bob, eve"):
        run("--agent", "mallory")
    with pytest.raises(CommandError, match="not both"):
        run("--preview", "--yes")


def test_without_a_terminal_nothing_is_done_unasked(site):
    from_before(site)
    assert "Nothing was changed" in run()
    assert learned() == [("trajectory", 80_000)]
