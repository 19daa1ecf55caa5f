"""`manage.py audit_ledger`: quiet when all is well, loud and non-zero when not."""

import pytest
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import RequestFactory

from bandit import admin
from bandit.checks import consumption_feedback
from bandit.models import Arm, Bandit, Bucket, LedgerEntry
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


@pytest.mark.parametrize(("name", "value"), [("CONSUMPTION_BOOST", 0.9), ("CONSUMPTION_PENALTY", 0)])
def test_a_feedback_that_works_the_wrong_way_is_refused(settings, name, value):
    assert consumption_feedback(None) == []
    setattr(settings, name, value)
    (error,) = consumption_feedback(None)
    assert f"{name} is {value}" in error.msg


def test_the_admin_changes_policies_and_never_the_record():
    site = AdminSite()
    admin.register(site)
    request = RequestFactory().get("/")
    request.user = User.objects.create_superuser("olga")
    pages = site._registry
    assert not pages[LedgerEntry].has_change_permission(request)
    assert not pages[Arm].has_delete_permission(request)
    assert pages[Arm].has_change_permission(request)


def test_a_changed_policy_is_a_new_version():
    site = AdminSite()
    admin.register(site)
    request = RequestFactory().post("/")
    request.user = User.objects.create_superuser("olga")
    page, bandit = site._registry[Bandit], Bandit.objects.get(name="category")
    form = page.get_form(request, bandit, change=True)(
        {"name": "category", "title": "Category", "half_life_days": 10, "long_run_half_life_days": 180,
         "prior_strength": 12, "evidence_scale": "", "floor": 0.01},
        instance=bandit,
    )  # fmt: skip
    assert form.is_valid(), form.errors
    page.save_model(request, form.save(commit=False), form, change=True)
    bandit.refresh_from_db()
    assert (bandit.half_life_days, bandit.policy_version) == (10, 2)
