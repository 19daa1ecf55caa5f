"""What a ledger row says of its policy is kept once, and said as it was written."""

import datetime as dt

import pytest
from django.db import transaction

from bandit.ledger import Credit, GraderKey, set_credits
from bandit.models import LedgerEntry, PolicyText

TEXTS = ("", "1 judge=1", "1 judge=1", "2 judge=.5", "")


def said(index: int, policy: str, *, value: float = 0.5) -> None:
    with transaction.atomic():
        set_credits(
            {"category": {"code": Credit(value=value, grader=GraderKey(source="judge"))}},
            observation=f"s{index}",
            effective_day=dt.date(2026, 1, 1),
            settlement="s",
            policy_version=policy,
        )


def written() -> list[str]:
    rows, _columns = LedgerEntry.objects.order_by("pk").columns()
    return list(rows.values_list("policy_version", flat=True))


@pytest.mark.django_db
def test_rows_that_say_the_same_share_one_text_and_each_says_it():
    for index, text in enumerate(TEXTS):
        said(index, text)
    assert written() == list(TEXTS)
    assert set(PolicyText.objects.values_list("text", flat=True)) == {*TEXTS} - {""}


@pytest.mark.django_db
def test_a_correction_says_the_policy_that_it_was_made_by():
    said(1, "1 judge=1")
    said(1, "2 judge=.5", value=0.7)
    rows, columns = LedgerEntry.objects.order_by("pk").columns()
    assert list(rows.values_list("op", "policy_version")) == [
        ("apply", "1 judge=1"),
        ("reverse", "2 judge=.5"),
        ("apply", "2 judge=.5"),
    ]
    assert "policy_version" in columns
    assert "policy_id" not in columns


@pytest.mark.django_db
def test_a_reward_that_is_there_already_adds_no_text():
    said(1, "1 judge=1")
    said(1, "2 judge=.5")
    assert written() == ["1 judge=1"]
    assert [row.text for row in PolicyText.objects.all()] == ["1 judge=1"]
