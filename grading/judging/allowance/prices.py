"""What tokens cost. Prices are settings, never constants in code."""

from django.conf import settings


def cost(
    model: str,
    *,
    input_tokens: int = 0,
    output_tokens: int = 0,
    cache_read_tokens: int = 0,
    cache_write_tokens: int = 0,
    batch: bool = False,
) -> float:
    """The price of a call's tokens in dollars. Cached input has a price of its own, a batch a discount."""
    price_in, price_out = per_million(model)
    read, write = settings.JUDGE_CACHE_READ_PRICE, settings.JUDGE_CACHE_WRITE_PRICE
    paid_in = input_tokens + read * cache_read_tokens + write * cache_write_tokens
    usd = (paid_in * price_in + output_tokens * price_out) / 1_000_000
    return round(usd * (settings.JUDGE_BATCH_PRICE if batch else 1), 9)


def per_million(model: str) -> tuple[float, float]:
    """Dollars per million input tokens and per million output tokens.

    Of the listed names that the model's name begins with, the longest counts.
    """
    prices: dict[str, tuple[float, float]] = settings.JUDGE_PRICES
    return prices[max(_matching_names(model), key=len, default="other")]


def is_listed(model: str) -> bool:
    """Whether the model has a listed price. If not, the price of "other" is used."""
    return bool(_matching_names(model))


def _matching_names(model: str) -> list[str]:
    """The listed names that the model's name begins with."""
    return [name for name in settings.JUDGE_PRICES if model.startswith(name)]
