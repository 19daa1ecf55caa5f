"""`manage.py rebuild` finds and repairs whatever differs from the append-only records."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from bandit.merging import merge
from bandit.models import Arm, Bandit, BanditKind, Bucket
from grading.intake import naming
from grading.models import Flag, Session
from grading.models.review import Answer
from grading.review import answers, corrections
from grading.reward import state
from grading.vocabulary import Source
from tests.bandit.helpers import reward

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]


@pytest.fixture
def sessions(site, rita):
    """Three sessions; of the grades of the first, one was corrected and one correction was undone; arms were merged."""
    rows = [
        site.session(category, harness=harness).with_work().graded(Source.JOURNAL, 0.25).settle()
        for category, harness in (("code", "codex"), ("news", "gptme"), ("infra", "claude-code"))
    ]
    site.on(rows[0]).judged(0.5).settle()
    answers.submit(rows[0], rita, answer=Answer.GRADE, value=0.75, reason="merged")
    answers.submit(rows[1], rita, answer=Answer.GRADE, value=1.0, reason="shipped")
    corrections.undo(rows[1].grades.get(source=Source.HUMAN), rita, reason="not shipped")
    merge(arm("infra"), arm("code"), by="otto")
    merge(arm("gptme", "harness"), arm("codex", "harness"), by="otto")
    naming.unmerge(arm("gptme", "harness"), by="otto")
    return rows


def arm(name, bandit="category"):
    return Arm.objects.get(bandit__name=bandit, name=name)


def rebuild(**options):
    """The lines that the command prints."""
    output = StringIO()
    call_command("rebuild", verbosity=0, stdout=output, **options)
    return output.getvalue().splitlines()


def compare():
    """The lines that the command prints if it finds differences."""
    output = StringIO()
    with pytest.raises(CommandError, match=r"then run `manage\.py rebuild --repair`"):
        call_command("rebuild", verbosity=0, stdout=output)
    return output.getvalue().splitlines()


def test_a_site_with_corrections_and_merges_has_no_differences(sessions):
    assert rebuild() == ["0 differences"]
    assert rebuild(repair=True) == ["0 differences"]


def test_wrong_state_is_named_and_repaired(sessions):
    session = sessions[0]
    Session.objects.filter(pk=session.pk).update(reward_value=0.125, reward_source="journal", open_flags=2)
    differences = [
        f"session {session.pk}, reward_value: stored 0.125, computed 0.75",
        f"session {session.pk}, reward_source: stored 'journal', computed 'human'",
        f"session {session.pk}, open_flags: stored 2, computed {session.flags.filter(cleared_at=None).count()}",
    ]
    assert compare() == [*differences, "3 differences"]
    assert compare() == [*differences, "3 differences"]
    assert rebuild(repair=True) == [*differences, "3 differences, repaired"]
    assert rebuild() == ["0 differences"]
    assert Session.objects.get(pk=session.pk).reward_value == 0.75


def test_wrong_missing_and_extra_buckets_are_named_and_repaired():
    reward("s1", code=0.5)
    reward("s1", bandit="harness", gptme=0.25)
    Bucket.objects.filter(bandit__name="category").update(n=3, s=600_000)
    Bucket.objects.filter(bandit__name="harness").update(arm=arm("codex", "harness"), cost=5)
    differences = [
        "bucket category/code, judge, 2026-03-31, n: stored 3, computed 1",
        "bucket category/code, judge, 2026-03-31, s: stored 600000, computed 500000",
        *(
            f"bucket harness/codex, judge, 2026-03-31, {column}: stored {stored}, computed 0"
            for column, stored in {"n": 1, "s": 250_000, "q": 62_500_000_000, "cost": 5}.items()
        ),
        *(
            f"bucket harness/gptme, judge, 2026-03-31, {column}: stored 0, computed {computed}"
            for column, computed in {"n": 1, "s": 250_000, "q": 62_500_000_000}.items()
        ),
    ]
    lines = compare()
    assert (sorted(lines[:-1]), lines[-1]) == (sorted(differences), "9 differences")
    assert rebuild(repair=True) == [*lines[:-1], "9 differences, repaired"]
    assert rebuild() == ["0 differences"]


def test_session_that_counts_twice_is_named_and_its_latest_reward_stays():
    Bandit.objects.filter(name="category").update(kind=BanditKind.MANY)
    reward("s1", code=0.5)
    reward("s1", code=0.5, infra=0.25)
    Bandit.objects.filter(name="category").update(kind=BanditKind.CHOICE)
    difference = "category: s1 has 2 live rewards: code 0.500, infra 0.250; computed 1: infra 0.250"
    assert compare() == [difference, "1 differences"]
    assert rebuild(repair=True) == [difference, "1 differences, repaired"]
    assert rebuild() == ["0 differences"]


def test_session_that_changes_meanwhile_is_no_difference(sessions):
    """A flag is raised after the session's row was read and before its flags are."""
    session = sessions[0]
    changes = []

    def flag_first(execute, sql, *arguments):
        if "grading_flag" in sql and not changes:
            changes.append(sql)
            Flag.objects.create(session=session, rule="A34", detail="another agent's")
            Session.objects.filter(pk=session.pk).update(open_flags=session.flags.filter(cleared_at=None).count())
        return execute(sql, *arguments)

    with connection.execute_wrapper(flag_first):
        mismatches = [mismatch for _count, chunk in state.rebuild() for mismatch in chunk]
    assert (len(changes), mismatches) == (1, [])


def test_each_chunk_is_repaired_by_itself(sessions, monkeypatch):
    """An interrupted repair can be started again."""
    monkeypatch.setattr(state, "CHUNK_SIZE", 2)
    Session.objects.update(reward_value=None)
    count, mismatches = next(state.rebuild(repair=True))
    assert (count, len(mismatches)) == (2, 2)
    assert Session.objects.filter(reward_value=None).count() == 1
    rebuild(repair=True)
    assert rebuild() == ["0 differences"]
