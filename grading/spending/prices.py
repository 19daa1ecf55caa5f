"""What tokens cost: at the prices that providers publish, and at those that people typed.

The published prices come with the package genai-prices. They are those of its release; nothing is fetched.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from grading.models.sessions import MICRODOLLARS
from grading.models.spending import PRICE_UNITS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from genai_prices import types

    from grading.evidence.usage import ModelResponse
    from grading.models import ModelPrice

# The release of genai-prices whose prices are used, and its date. `tests/spending/test_prices.py` compares the release
# with the installed one, so that both change together.
RELEASE: Final = "0.2.3"
RELEASE_DATE: Final = dt.date(2026, 11, 13)


class PublishedPrices:
    """The published prices, and the models found in them so far."""

    def __init__(self) -> None:
        # Imported when prices are first needed: with its HTTP client the package takes a tenth of a second.
        from genai_prices.data import providers
        from genai_prices.data_snapshot import DataSnapshot

        self._snapshot = DataSnapshot(providers=providers, from_auto_update=False)
        self._models: dict[str, tuple[types.Provider, types.ModelInfo] | None] = {}

    def cost(self, model: str, responses: Iterable[tuple[ModelResponse, dt.datetime]]) -> Decimal | None:
        """What responses of a model cost in microdollars, unrounded, each at the price of its time.

        None if the model or the tokens of a response are unknown, or if the model isn't priced by tokens.
        """
        from genai_prices import Usage, types

        match = self.find(model)
        if match is None:
            return None
        cost = Decimal(0)
        # If long prompts have no price of their own, the sum of the tokens is priced: that takes less time.
        sums: dict[int, tuple[types.ModelPrice, Counter[str]]] = {}
        for response, at in responses:
            if not response.is_known:
                return None
            price = _price_at(*match, response.speed, at)
            tokens = _tokens_of(response)
            if price.input_mtok is None or price.output_mtok is None:
                return None
            has_tiers = any(isinstance(value, types.TieredPrices) for value in vars(price).values())
            if has_tiers:
                cost += price.calc_price(Usage(**tokens))["total_price"]
            else:
                _price, total = sums.setdefault(id(price), (price, Counter()))
                total.update(tokens)
        for price, total in sums.values():
            cost += price.calc_price(Usage(**total))["total_price"]
        return cost * MICRODOLLARS

    def find(self, model: str) -> tuple[types.Provider, types.ModelInfo] | None:
        """The model and its provider. `model` is as a log names it: `claude-opus-4-6`, `openai/gpt-5.5`, or an id of
        Bedrock such as `us.anthropic.claude-opus-4-6-v1:0`.
        """
        if model not in self._models:
            provider, _, name = model.partition("/")
            by_prefix = self._look_up(name, provider) if name else None
            self._models[model] = by_prefix or self._look_up(model, None) or self._look_up(model, "aws")
        return self._models[model]

    def base_prices(self, model: str, at: dt.datetime) -> tuple[Decimal | None, ...] | None:
        """Dollars for a million tokens of input, cached input, cache writes and output, at the prices of short prompts.
        None if the model isn't priced by tokens.
        """
        from genai_prices import types

        match = self.find(model)
        if match is None:
            return None
        _provider, model_info = match
        price = model_info.get_prices(at)
        if price.input_mtok is None or price.output_mtok is None:
            return None
        values = [getattr(price, f"{name}_mtok") for name in ("input", "cache_read", "cache_write", "output")]
        return tuple(value.base if isinstance(value, types.TieredPrices) else value for value in values)

    def _look_up(self, model: str, provider: str | None) -> tuple[types.Provider, types.ModelInfo] | None:
        try:
            return self._snapshot.find_provider_model(model, None, provider, None)
        except LookupError:
            return None


def _price_at(provider: types.Provider, model: types.ModelInfo, speed: str, at: dt.datetime) -> types.ModelPrice:
    """The price of a model at a time. A speed has a price of its own only with the model's own provider."""
    is_own_provider = any(model is other for other in provider.models)
    if speed in ("", "standard") or not is_own_provider:
        return model.get_prices(at)
    return model.get_prices(at, {"speed": speed})


def _tokens_of(response: ModelResponse) -> dict[str, int]:
    """The tokens of a response as the package counts them: its `input_tokens` include the cached ones."""
    return {
        "input_tokens": response.input_tokens + response.cache_read_tokens + response.cache_write_tokens,
        "cache_read_tokens": response.cache_read_tokens,
        "cache_write_tokens": response.cache_write_tokens,
        "cache_write_1h_tokens": response.hour_cache_write_tokens,
        "output_tokens": response.output_tokens,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Counts of tokens, which do not overlap."""

    input_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    output_tokens: int

    def cost_at(self, price: ModelPrice) -> int:
        """What they cost at a typed price in microdollars, rounded half up. `repricing` has the same formula as SQL."""
        units = (
            self.input_tokens * price.input_price
            + self.cached_tokens * price.cached_price
            + self.cache_write_tokens * price.cache_write_price
            + self.output_tokens * price.output_price
        )
        return (units + PRICE_UNITS // 2) // PRICE_UNITS


def price_on(prices: Iterable[ModelPrice], model: str, day: dt.date) -> ModelPrice | None:
    """The typed price of a model on a day: the latest one that is valid by then. None if none is."""
    valid = [price for price in prices if price.model == model and price.valid_from <= day]
    return max(valid, key=lambda price: price.valid_from, default=None)
