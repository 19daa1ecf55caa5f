"""`manage.py audit_ledger` and `replay`: quiet when all is well, loud and non-zero when not."""

from contextlib import nullcontext
from datetime import timedelta

import pytest
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import RequestFactory

from bandit import admin
from bandit.models import Arm, Bandit, BanditKind, Bucket, LedgerEntry, PolicyVersion
from tests.bandit.helpers import DAY, reward

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("command", ["audit_ledger", "replay"])
def test_a_sound_ledger_passes(command, capsys):
    reward("s1", code=0.5)
    reward("s1", code=0.6)
    call_command(command)
    said = capsys.readouterr()
    assert "1 buckets are, bit for bit, the sums of the ledger's 3 rows." in said.out
    assert "adding up the ledger: 100%" in said.err


def test_a_difference_fails_until_the_buckets_are_replaced(capsys):
    reward("s1", code=0.5)
    Bucket.objects.update(s=0, q=0)
    for command in ("audit_ledger", "replay"):
        with pytest.raises(CommandError, match=r"1 buckets differ.*run `manage.py replay --write`"):
            call_command(command, verbosity=0)
    assert (
        "productive = (1, 500000, 250000000000, 0, 0, 0), the bucket says (1, 0, 0, 0, 0, 0)" in capsys.readouterr().err
    )
    call_command("replay", write=True, noinput=True, verbosity=0)
    assert "1 buckets were repaired." in capsys.readouterr().out
    call_command("audit_ledger", verbosity=0)


def test_an_observation_that_counts_twice_fails_until_its_latest_reward_is_left(capsys):
    Bandit.objects.filter(name="category").update(kind=BanditKind.MANY)
    reward("s1", code=0.5)
    reward("s1", code=0.5, infra=0.5)
    Bandit.objects.filter(name="category").update(kind=BanditKind.CHOICE)
    with pytest.raises(
        CommandError, match="0 buckets differ from the ledger; observations that count more than once: 1"
    ):
        call_command("audit_ledger", verbosity=0)
    call_command("replay", write=True, noinput=True, verbosity=0)
    assert "Rewards taken back because of a later one: 1." in capsys.readouterr().out
    call_command("audit_ledger", verbosity=0)


@pytest.mark.parametrize(("answer", "left"), [("yes", 500_000), ("y", 0)])
def test_a_replay_asks_before_it_writes(answer, left, monkeypatch):
    reward("s1", code=0.5)
    Bucket.objects.update(s=0, q=0)
    monkeypatch.setattr("builtins.input", lambda _question: answer)
    with nullcontext() if left else pytest.raises(CommandError, match="Nothing was written"):
        call_command("replay", write=True, verbosity=0)
    assert Bucket.objects.get().s == left


def test_many_differences_are_counted_rather_than_told(capsys):
    for number in range(23):
        reward(f"s{number}", day=DAY - timedelta(days=number), code=0.5)
    Bucket.objects.update(s=0, q=0)
    with pytest.raises(CommandError, match="23 buckets differ"):
        call_command("audit_ledger", verbosity=0)
    assert capsys.readouterr().err.splitlines()[20:] == ["and 3 more"]


def test_the_admin_changes_arms_and_never_the_record():
    site = AdminSite()
    admin.register(site)
    request = RequestFactory().get("/")
    request.user = User.objects.create_superuser("olga")
    pages = site._registry
    assert not pages[LedgerEntry].has_change_permission(request)
    assert not pages[PolicyVersion].has_change_permission(request)
    assert not pages[Arm].has_delete_permission(request)
    assert pages[Arm].has_change_permission(request)
