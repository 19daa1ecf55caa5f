"""A log that lies about its tokens: the cost is unknown, the work is bounded, and the session is graded as ever."""

import pytest

from grading.evidence import usage
from grading.models import Session, SessionUsage
from grading.vocabulary import CostUnknown
from tests.spending.logs import THREAD, claude, codex, message, prompt, token_count

pytestmark = pytest.mark.django_db
IMPOSSIBLE = [-1, 1.5, 10**9, 2**53, 10**400, "100", True, [1], {"tokens": 1}]
# JSON has neither, so both are read as null: not recorded. That is unknown for input and output tokens.
NOT_RECORDED = [float("nan"), float("inf"), None]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[(key, value) for key in ("input_tokens", "output_tokens") for value in IMPOSSIBLE + NOT_RECORDED],
        *[("cache_read_input_tokens", value) for value in IMPOSSIBLE],
    ],
    ids=lambda value: repr(value)[:20],
)
def test_an_impossible_count_makes_the_cost_unknown(site, key, value):
    lines = [message("s", "a"), message("s", "b", usage={key: value})]
    site.upload("s", claude("s", *lines))
    session = Session.objects.get()
    assert (session.cost_micro, session.tokens, session.cost_unknown) == (None, None, CostUnknown.NO_TOKENS)


@pytest.mark.parametrize("value", IMPOSSIBLE, ids=lambda value: repr(value)[:20])
def test_an_impossible_total_of_codex_makes_the_cost_unknown(site, value):
    lines = [token_count(1_000, 0, 10), token_count(2_000, 0, value), token_count(3_000, 0, 30)]
    site.upload(THREAD, codex(*lines))
    session = Session.objects.get()
    assert (session.cost_micro, session.cost_unknown) == (None, CostUnknown.NO_TOKENS)


def test_a_missing_count_is_not_nothing(site):
    line = message("s", "a")
    del line["message"]["usage"]["output_tokens"]
    site.upload("s", claude("s", line))
    assert Session.objects.get().cost_unknown == CostUnknown.NO_TOKENS


@pytest.mark.parametrize("model", [None, "", 7, ["claude"], {}, "unknown-model", "x" * 500, "\x00", "\ud800"], ids=repr)
def test_a_model_without_a_price_makes_the_cost_unknown(site, model):
    site.upload("s", claude("s", message("s", "a", model=model)))
    session = Session.objects.get()
    assert (session.cost_micro, session.tokens, session.cost_unknown) == (None, 1_100, CostUnknown.NO_PRICE)


def test_more_models_than_any_session_uses_are_not_stored(site):
    lines = [message("s", str(n), model=f"model-{n}") for n in range(usage.MAX_MODELS + 1)]
    site.upload("s", claude("s", *lines))
    assert SessionUsage.objects.count() == 0
    assert Session.objects.get().cost_unknown == CostUnknown.NO_TOKENS


def test_more_responses_than_any_session_has_are_not_stored(site, monkeypatch):
    monkeypatch.setattr(usage, "MAX_RESPONSES", 10)
    site.upload("s", claude("s", *[message("s", str(n)) for n in range(11)]))
    assert Session.objects.get().cost_unknown == CostUnknown.NO_TOKENS


def test_times_outside_the_session_count_on_its_last_day(site):
    times = ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-03-31T11:58:30Z", "soon", None, 10**30]
    lines = [message("s", str(n), timestamp=at) for n, at in enumerate(times)]
    site.upload("s", claude("s", *lines, prompt("s", "More. " * 1_000)))
    assert [str(row.day) for row in SessionUsage.objects.all()] == ["2026-03-31"]
    assert Session.objects.get().cost_micro == len(times) * 7_500


def test_a_log_without_any_response_has_no_cost(site):
    site.upload("s", claude("s"))
    site.upload("t", journal="Did it.")
    site.upload("u", b"not a log at all\n" * 400)
    assert dict(Session.objects.values_list("external_id", "cost_unknown")) == {
        "s": CostUnknown.NO_TOKENS,
        "t": CostUnknown.NO_LOG,
        "u": CostUnknown.NO_LOG,
    }
