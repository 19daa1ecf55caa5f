"""Prices: the published ones, and those that people type, which take precedence and change nothing but costs."""

import datetime as dt
from importlib.metadata import version

import pytest

from bandit.models import LedgerEntry
from grading.intake.regrading import regrade
from grading.models import Agent, AuditEvent, Grade, ModelPrice, Session, SessionUsage, Settlement
from grading.spending import prices, repricing
from grading.spending.prices import Tokens
from grading.vocabulary import CostUnknown
from tests.casts import logs as casts
from tests.spending.logs import MODEL, claude, message, prompt

pytestmark = pytest.mark.django_db
DAY = dt.date(2026, 3, 31)


@pytest.fixture
def olga(site):
    return site.person("olga", "operator")


def typed(model: str, valid_from: dt.date = DAY, dollars: tuple[float, ...] = (1, 0.1, 2, 4)) -> ModelPrice:
    """An unsaved price: dollars for a million tokens of input, cached input, cache writes and output."""
    units = [round(each * 10_000) for each in dollars]
    names = ("input_price", "cached_price", "cache_write_price", "output_price")
    return ModelPrice(model=model, valid_from=valid_from, **dict(zip(names, units, strict=True)))


def rows() -> list[tuple]:
    """All usage and all costs."""
    usage = SessionUsage.objects.order_by("session", "day", "model", "basis")
    sessions = Session.objects.order_by("pk").values_list("external_id", "tokens", "cost_micro", "cost_unknown")
    return [*usage.values_list("session", "model", "day", "basis", "list_cost_micro", "cost_micro"), *sessions]


def test_release_is_the_installed_one():
    """Whoever updates the package updates the date that pages show."""
    assert version("genai-prices") == prices.RELEASE


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("claude-opus-4-6", "claude-opus-4-6"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("openai/gpt-5.5", "gpt-5.5"),
        ("openrouter/anthropic/claude-opus-4.6", "anthropic/claude-opus-4.6"),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "regional.anthropic.claude-sonnet-4-20250514-v1:0"),
        ("codex-auto-review", None),
        ("my-own-model", None),
        ("/", None),
        ("", None),
    ],
)
def test_models_are_found_under_the_names_that_logs_have(model, name):
    known = prices.PublishedPrices().find(model)
    assert (known and known[1].id) == name


def test_a_model_without_a_price_by_tokens_is_not_free(site):
    """The published data list some models without prices, or with a price of seconds."""
    for name in ("cerebras/qwen-3-coder-480b", "whisper-1"):
        assert prices.PublishedPrices().find(name) is not None
        site.upload(name, claude(name, message(name, name[:10], model=name)))
    assert set(Session.objects.values_list("cost_unknown", flat=True)) == {CostUnknown.NO_PRICE}


def test_a_long_prompt_has_its_own_price(site):
    """Sonnet 4.5 costs twice as much from 200,000 input tokens on: response by response, not by the session's sum."""
    lines = [message("s", str(n), given=150_000, answered=0, model="claude-sonnet-4-5-20250929") for n in range(2)]
    site.upload("s", claude("s", *lines, message("s", "x", given=250_000, answered=0, model="claude-sonnet-4-5")))
    costs = dict(SessionUsage.objects.values_list("model", "cost_micro"))
    assert costs == {"claude-sonnet-4-5-20250929": 300_000 * 3, "claude-sonnet-4-5": 250_000 * 6}


def test_fast_mode_has_its_own_price(site):
    """Opus 4.8 costs $10 and $50 in fast mode."""
    site.upload("s", claude("s", message("s", "a", usage={"speed": "fast"})))
    assert Session.objects.get().cost_micro == 10_000 + 5_000


def test_typed_prices_are_rounded_half_up():
    tokens = Tokens(input_tokens=1, cached_tokens=0, cache_write_tokens=0, output_tokens=0)
    half, less = typed("m", dollars=(0.5, 0, 0, 0)), typed("m", dollars=(0.4999, 0, 0, 0))
    assert (tokens.cost_at(half), tokens.cost_at(less)) == (1, 0)


def test_an_unknown_model_has_a_cost_once_its_price_is_typed(site, olga):
    """Two days of use, and a price from the second on: the first day stays unknown, and so does the session."""
    lines = [
        message("s", "a", model="my-model", timestamp="2026-03-30T12:00:00Z"),
        message("s", "b", model="my-model", usage={"cache_read_input_tokens": 10}),
        *[prompt("s", "More. " * 1_000)],
    ]
    site.upload("s", claude("s", *lines), started_at=dt.datetime(2026, 3, 30, 11, tzinfo=dt.UTC))
    assert Session.objects.get().cost_unknown == CostUnknown.NO_PRICE
    repricing.set_price(typed("my-model"), by=olga)
    assert Session.objects.get().cost_micro is None
    assert list(SessionUsage.objects.values_list("day__day", "cost_micro")) == [(30, None), (31, 1_401)]
    repricing.set_price(typed("my-model", dt.date(2026, 1, 1), (0, 0, 0, 0)), by=olga)
    assert Session.objects.get().cost_micro == 1_401


def test_a_typed_price_takes_precedence_and_is_taken_back(site, olga):
    for name in ("s", "t"):
        site.upload(name, claude(name, message(name, name)))
    site.upload("other", claude("other", message("other", "o", model="gpt-5.5")))
    before = rows()
    assert repricing.set_price(typed(MODEL), by=olga) == 2
    costs = dict(Session.objects.values_list("external_id", "cost_micro"))
    assert costs == {"s": 1_400, "t": 1_400, "other": 8_000}  # 1,000 × $1 + 100 × $4
    later = typed(MODEL, DAY + dt.timedelta(days=1), (9, 9, 9, 9))
    assert repricing.set_price(later, by=olga) == 2
    assert Session.objects.get(external_id="s").cost_micro == 1_400
    for price in ModelPrice.objects.all():
        repricing.remove_price(price)
    assert rows() == before


def test_a_typed_price_is_that_of_new_sessions_too(site, olga):
    repricing.set_price(typed(MODEL), by=olga)
    site.upload("s", claude("s", message("s", "a")))
    assert Session.objects.get().cost_micro == 1_400


def test_pricing_again_gives_what_reading_again_gives(site, olga):
    """The SQL of `repricing` and the sums of `recording` agree, with every kind of unknown and reported cost."""
    site.upload("priced", claude("priced", message("priced", "a")))
    site.upload("unknown", claude("unknown", message("unknown", "b", model="my-model")))
    mixed = [message("mixed", "c"), message("mixed", "d", model="my-model")]
    site.upload("mixed", claude("mixed", *mixed), cost_usd=1.5)
    no_tokens = [message("none", "e", given=-1), message("none", "f", model="my-model")]
    site.upload("none", claude("none", *no_tokens))
    for price in (typed("my-model"), typed(MODEL, dollars=(0, 0, 0, 0)), None):
        if price is None:
            repricing.remove_price(ModelPrice.objects.get(model="my-model"))
        else:
            repricing.set_price(price, by=olga)
        after = rows()
        for session in Session.objects.all():
            regrade(session)
        assert sorted(map(repr, rows())) == sorted(map(repr, after))


def test_no_price_moves_a_reward(site, olga):
    """Costs of the ledger are those that were reported: a policy may weigh rewards by them."""
    site.upload("s", casts.claude("s", casts.COMMIT), cost_usd=0.25)
    site.upload("t", claude("t", message("t", "a")))

    def all_rewards() -> list:
        tables = (Grade, Settlement, LedgerEntry)
        return [list(model.objects.order_by("pk").values_list("pk", flat=True)) for model in tables]

    before = all_rewards()
    repricing.set_price(typed(MODEL), by=olga)
    repricing.set_price(typed("claude-opus-4-6", dollars=(100, 100, 100, 100)), by=olga)
    repricing.set_subscription(Agent.objects.get(name="bob"), has_subscription=True)
    for session in Session.objects.all():
        regrade(session)
    assert all_rewards() == before


def test_each_act_is_an_event(site, olga):
    repricing.set_price(typed("m", dollars=(3, 0.3, 3.75, 15)), by=olga)
    repricing.set_price(typed("m", dollars=(2, 0, 0, 15)), by=olga)
    repricing.remove_price(ModelPrice.objects.get())
    bob = site.agent("bob")
    for has_subscription in (True, True, False):
        repricing.set_subscription(bob, has_subscription=has_subscription)
    events = list(AuditEvent.objects.filter(kind="price").order_by("pk").values_list("what", "detail"))
    new = "$2 input, $0 cached input, $0 cache writes, $15 output"
    old = "$3 input, $0.30 cached input, $3.75 cache writes, $15 output"
    assert events == [
        (f"set the price of m from 2026-03-31: {old}", ""),
        (f"set the price of m from 2026-03-31: {new}", f"before: {old}"),
        (f"removed the price of m from 2026-03-31: {new}", ""),
        ("said that bob runs on a subscription", ""),
        ("said that bob runs without a subscription", ""),
    ]


def test_a_reported_cost_counts_where_tokens_do_not_explain_it(site, olga):
    """Of $1.50 for a session with a priced and an unpriced model, the priced tokens explain $0.0075."""
    lines = [message("s", "a"), message("s", "b", model="my-model")]
    site.upload("s", claude("s", *lines), cost_usd=1.5)
    site.upload("no-log", journal="Did it.", cost_usd=0.25)
    assert dict(Session.objects.values_list("external_id", "cost_micro")) == {"s": 1_500_000, "no-log": 250_000}
    assert sorted(SessionUsage.objects.filter(basis="reported").values_list("cost_micro", flat=True)) == [
        250_000,
        1_492_500,
    ]
    repricing.set_price(typed("my-model"), by=olga)
    assert Session.objects.get(external_id="s").cost_micro == 7_500 + 1_400
    assert SessionUsage.objects.filter(basis="reported").count() == 1
