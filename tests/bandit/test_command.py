"""`manage.py audit_ledger`: quiet when all is well, loud and non-zero when not."""

from datetime import timedelta

import pytest
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import RequestFactory

from bandit import admin
from bandit.audit import replay, undouble
from bandit.models import Arm, Bandit, BanditKind, Bucket, LedgerEntry, PolicyVersion
from tests.bandit.helpers import DAY, reward

pytestmark = pytest.mark.django_db


def test_a_sound_ledger_passes(capsys):
    reward("s1", code=0.5)
    reward("s1", code=0.6)
    call_command("audit_ledger")
    said = capsys.readouterr()
    assert "1 buckets are, bit for bit, the sums of the ledger's 3 rows." in said.out
    assert "adding up the ledger: 100%" in said.err


def test_a_difference_fails_until_the_buckets_are_replaced(capsys):
    reward("s1", code=0.5)
    Bucket.objects.update(s=0, q=0)
    with pytest.raises(CommandError, match=r"1 buckets differ.*run the site's command `rebuild --repair`"):
        call_command("audit_ledger", verbosity=0)
    assert (
        "productive = (1, 500000, 250000000000, 0, 0, 0), the bucket says (1, 0, 0, 0, 0, 0)" in capsys.readouterr().err
    )
    replay(write=True)
    call_command("audit_ledger", verbosity=0)


def test_an_observation_that_counts_twice_fails_until_its_latest_reward_is_left():
    Bandit.objects.filter(name="category").update(kind=BanditKind.MANY)
    reward("s1", code=0.5)
    reward("s1", code=0.5, infra=0.5)
    Bandit.objects.filter(name="category").update(kind=BanditKind.CHOICE)
    with pytest.raises(
        CommandError, match="0 buckets differ from the ledger; observations that count more than once: 1"
    ):
        call_command("audit_ledger", verbosity=0)
    assert undouble() == 1
    call_command("audit_ledger", verbosity=0)


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
