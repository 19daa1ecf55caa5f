"""Queries whose SQL is built once give what Django's give, whatever their values."""

import datetime as dt

import pytest
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import F, Q
from django.utils import timezone

from bandit.models import Arm, Bandit, LedgerEntry, PolicyVersion
from bandit.prepared import Prepared
from tests.bandit.helpers import reward

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def rewards():
    reward("s1", code=0.84)
    reward("s2", infra=0.5)
    reward("s2", code=0.25)


def entries(observation, least):
    rows = LedgerEntry.objects.filter(Q(observation=observation) | Q(revision__gt=least))
    return rows.select_related("arm__merged_into", "grader").annotate(double=F("value_micro") * 2).order_by("pk")


def said(row):
    return {name: value for name, value in vars(row).items() if name != "_state"}


@pytest.mark.parametrize("values", [("s1", 99), ("s2", 0), ("nothing", 99)])
def test_rows_are_those_of_the_query(values):
    prepared = Prepared(entries, str, int)
    expected = list(entries(*values))
    for _time in range(2):
        found = prepared.rows(*values)
        assert [said(row) for row in found] == [said(row) for row in expected]
        assert [(said(row.arm), said(row.grader)) for row in found] == [
            (said(row.arm), said(row.grader)) for row in expected
        ]


def test_rows_that_are_related_are_not_asked_for_again(django_assert_num_queries):
    prepared = Prepared(entries, str, int)
    with django_assert_num_queries(1):
        assert {row.arm.name for row in prepared.rows("s2", 0)} == {"code", "infra"}


def test_a_row_can_be_changed_and_what_was_left_out_is_asked_for():
    prepared = Prepared(lambda name: Arm.objects.filter(bandit__name="category", name=name).only("title"), str)
    arm = prepared.get("code")
    assert arm.get_deferred_fields() >= {"name", "paused"}
    assert arm.name == "code"
    arm.title = "Code!"
    arm.save()
    assert prepared.get("code").title == "Code!"


def test_values_of_every_kind_are_what_they_are_in_python():
    columns = ("effective_day", "provisional", "cost_micro", "arm__name", "recorded_at")
    moment = timezone.now() + dt.timedelta(minutes=1)

    def until(given):
        return LedgerEntry.objects.filter(recorded_at__lt=given).order_by("pk").values_list(*columns)

    assert Prepared(until, dt.datetime).rows(moment) == list(until(moment))
    assert Prepared(until, dt.datetime).rows(moment - dt.timedelta(days=1)) == []
    packed = Prepared(lambda: PolicyVersion.objects.order_by("pk"))
    assert [said(row) for row in packed.rows()] == [said(row) for row in PolicyVersion.objects.order_by("pk")]


def test_a_value_may_stand_in_several_places_and_hold_anything():
    prepared = Prepared(lambda name: Arm.objects.filter(Q(name=name) | Q(title=name) | ~Q(title="%s")), str)
    for name in ("code", "'; --", "%s", "é\\"):
        assert set(prepared.rows(name)) == set(Arm.objects.filter(Q(name=name) | Q(title=name) | ~Q(title="%s")))


def test_no_row_is_said_so():
    prepared = Prepared(lambda name: Bandit.objects.filter(name=name), str)
    assert prepared.first("none") is None
    with pytest.raises(ObjectDoesNotExist, match="got none"):
        prepared.get("none")


def test_a_query_that_loses_a_value_is_refused():
    prepared = Prepared(lambda _name: Bandit.objects.all(), str)
    with pytest.raises(ValueError, match="each value is a parameter"):
        prepared.rows("category")


@pytest.mark.parametrize(
    "ask", [Bandit.objects.values, lambda: Bandit.objects.prefetch_related("arms")], ids=["dicts", "prefetch"]
)
def test_a_query_for_other_things_is_refused(ask):
    with pytest.raises(ValueError, match="expected a query for models or lists of values"):
        Prepared(ask).rows()
