"""Sessions that an earlier version took in get their cost when their logs are read again."""

from io import StringIO

import pytest
from django.core.files.storage import default_storage
from django.core.management import call_command

from bandit.models import LedgerEntry
from grading.evidence import store
from grading.models import Evidence, MessageClaim, Session, SessionUsage, Settlement
from grading.vocabulary import CostUnknown
from tests.spending.logs import claude, message

pytestmark = pytest.mark.django_db


def forget_costs() -> None:
    """As after an upgrade: no usage, and nothing derived from the logs."""
    SessionUsage.objects.all().delete()
    MessageClaim.objects.all().delete()
    Session.objects.update(tokens=None, cost_micro=None, cost_unknown=CostUnknown.NOT_READ)
    for row in Evidence.objects.all():
        for name in store.listed(row.sha256[:2]).get(row.sha256, []):
            if ".usage-" in name:
                default_storage.delete(name)


def regrade(*options: str) -> str:
    out = StringIO()
    call_command("regrade", *options, stdout=out, stderr=out)
    return out.getvalue()


@pytest.fixture
def sessions(site) -> dict[str, int]:
    """A session, one that repeats its message, and one that was cost by its caller; with their costs."""
    site.upload("first", claude("first", message("first", "a")))
    site.upload("second", claude("second", message("second", "a", uuid="x"), message("second", "b")))
    site.upload("third", journal="Did it.", cost_usd=0.5)
    return dict(Session.objects.values_list("external_id", "cost_micro"))


def test_regrade_fills_costs_and_moves_nothing_else(sessions):
    before = Settlement.objects.count(), LedgerEntry.objects.count()
    forget_costs()
    assert "log" in regrade("--preview")
    assert set(Session.objects.values_list("cost_unknown", flat=True)) == {CostUnknown.NOT_READ}
    regrade("--yes")
    assert dict(Session.objects.values_list("external_id", "cost_micro")) == sessions
    assert sessions == {"first": 7_500, "second": 7_500, "third": 500_000}
    assert (Settlement.objects.count(), LedgerEntry.objects.count()) == before
    assert "Nothing would change" in regrade("--preview")


def test_a_log_that_retention_deleted_keeps_its_cost(sessions):
    for row in Evidence.objects.filter(kind="transcript"):
        store.expire(row.sha256, before=2**40)
    SessionUsage.objects.all().delete()
    Session.objects.update(tokens=None, cost_micro=None, cost_unknown=CostUnknown.NOT_READ)
    regrade("--yes")
    assert dict(Session.objects.values_list("external_id", "cost_micro")) == sessions


def test_a_log_that_was_deleted_before_has_no_cost(sessions):
    for row in Evidence.objects.filter(kind="transcript"):
        store.expire(row.sha256, before=2**40)
    forget_costs()
    regrade("--yes")
    reasons = dict(Session.objects.values_list("external_id", "cost_unknown"))
    assert reasons == {"first": CostUnknown.NO_LOG, "second": CostUnknown.NO_LOG, "third": ""}
