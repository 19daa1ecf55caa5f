"""`manage.py audit_ledger`: quiet when all is well, loud and non-zero when not."""

import pytest
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import RequestFactory

from bandit import admin
from bandit.models import Arm, Bucket, LedgerEntry, PolicyVersion
from tests.bandit.helpers import reward

pytestmark = pytest.mark.django_db


def test_a_sound_ledger_passes(capsys):
    reward("s1", code=0.5)
    call_command("audit_ledger")
    assert "The buckets of 11 arms are exactly the ledger's sums." in capsys.readouterr().out


def test_a_difference_fails_until_the_buckets_are_rebuilt(capsys):
    reward("s1", code=0.5)
    Bucket.objects.update(s=0, q=0)
    with pytest.raises(CommandError, match="1 buckets differ"):
        call_command("audit_ledger", verbosity=0)
    assert "the ledger says n, s, q = (1, 500000, 250000000000), the bucket says (1, 0, 0)" in capsys.readouterr().err
    call_command("audit_ledger", rebuild=True, verbosity=0)


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
