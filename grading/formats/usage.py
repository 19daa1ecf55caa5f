"""Token counts under one set of names, and each model response counted once."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from grading.formats.lines import Problems
from grading.formats.seen import RecentKeys
from grading.formats.values import count, words

NAMES: Final = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_read_tokens": "cache_read_tokens",
    "cached_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
    "cache_creation_tokens": "cache_write_tokens",
    "cache_write_input_tokens": "cache_write_tokens",
    "cache_write_tokens": "cache_write_tokens",
}
# Parts of the numbers above, or no token counts at all.
HARMLESS: Final = words(
    "cache_creation inference_geo iterations output_tokens_details reasoning_output_tokens server_tool_use "
    "service_tier speed total_tokens"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedTokens:
    """Tokens of a response or of a session so far; None is "not recorded". The four are disjoint."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None

    def largest(self, other: "ReportedTokens") -> "ReportedTokens":
        """Field by field: a streamed response repeats its usage while its output grows."""
        return self._joined(other, max)

    def plus(self, other: "ReportedTokens") -> "ReportedTokens":
        return self._joined(other, lambda a, b: a + b)

    def since(self, earlier: "ReportedTokens") -> "ReportedTokens":
        """What was added after `earlier`, never negative; where `earlier` has no number, all of it."""
        return ReportedTokens(
            **{
                name: None if mine is None else max(0, mine - (getattr(earlier, name) or 0))
                for name, mine in self.pairs()
            }
        )

    def pairs(self) -> list[tuple[str, int | None]]:
        return [(name, getattr(self, name)) for name in self.__slots__]

    @property
    def is_empty(self) -> bool:
        return not any(number for _, number in self.pairs())

    def _joined(self, other: "ReportedTokens", join: Any) -> "ReportedTokens":
        joined = {}
        for name, mine in self.pairs():
            theirs = getattr(other, name)
            joined[name] = theirs if mine is None else mine if theirs is None else join(mine, theirs)
        return ReportedTokens(**joined)


def read_tokens(usage: Mapping[str, Any], problems: Problems, *, input_has_cached: bool = False) -> ReportedTokens:
    """Tokens from a harness's own usage object. Unknown keys and impossible numbers are noted, never guessed at.

    `input_has_cached`: the harness counts cached tokens into its input tokens; they are taken out, so that the four
    numbers are disjoint for every harness.
    """
    found: dict[str, int] = {}
    for key, value in usage.items():
        name = NAMES.get(key)
        if name is None:
            if key not in HARMLESS:
                problems.note(f"unknown usage key {key[:40]!r}")
        elif (number := count(value)) is not None:
            found[name] = number
        elif value is not None:
            problems.note(f"usage key {key[:40]!r} is no whole number of tokens")
    if input_has_cached and "input_tokens" in found:
        cached = found.get("cache_read_tokens", 0) + found.get("cache_write_tokens", 0)
        found["input_tokens"] = max(0, found["input_tokens"] - cached)
    return ReportedTokens(**found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One model response and where it was seen first."""

    model: str
    tokens: ReportedTokens
    at: datetime | None
    sidechain: bool
    record: str = ""
    cost: float | None = None


class Responses:
    """Responses by message id, each handed out once, with the largest numbers seen.

    A message's lines are close together, so a response is held until `pending` others have come after it; ids already
    handed out are remembered (the last `remembered` of them) and not counted again. Memory is bounded by the two.
    """

    def __init__(self, *, pending: int = 256, remembered: int = 50_000) -> None:
        self._pending: OrderedDict[str, Response] = OrderedDict()
        self._done = RecentKeys(remembered)
        self._limit = pending

    def add(self, key: str, response: Response) -> list[Response]:
        """Takes one line's usage; returns the responses that are complete by now (at once, where there is no id)."""
        if not key:
            return [response]
        earlier = self._pending.get(key)
        if earlier is not None:
            self._pending[key] = replace(earlier, tokens=earlier.tokens.largest(response.tokens))
        elif not self._done.seen(key):
            self._pending[key] = response
        return self._hand_out(self._limit)

    def drain(self) -> list[Response]:
        return self._hand_out(0)

    def _hand_out(self, keep: int) -> list[Response]:
        done = []
        while len(self._pending) > keep:
            key, response = self._pending.popitem(last=False)
            self._done.add(key)
            done.append(response)
        return done
