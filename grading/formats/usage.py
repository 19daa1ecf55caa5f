"""Normalises token counts to one set of names, and counts each model response once."""

import operator
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from grading.formats.lines import Problems, RecentKeys
from grading.formats.values import MAX_COUNT, count_or_none, mapping, word_set

FIELD_BY_KEY: Final = {
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
# Parts or sums of the counts above, or not token counts at all.
IGNORED_KEYS: Final = word_set(
    "cache_creation inference_geo iterations output_tokens_details reasoning_output_tokens server_tool_use "
    "service_tier speed total_tokens"
)
# The providers charge more to store tokens in a cache for an hour than for five minutes.
ONE_HOUR_KEY: Final = "ephemeral_1h_input_tokens"


class ReportedTokens(Struct, frozen=True, kw_only=True):
    """Tokens of a response, or of a session so far. The first four counts are disjoint; None means "not recorded".

    `hour_cache_write_tokens` are those of the `cache_write_tokens` that are cached for an hour. `is_valid`: none of the
    counts was recorded as anything but a whole number from 0.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    hour_cache_write_tokens: int | None = None
    is_valid: bool = True

    def maximum(self, other: "ReportedTokens") -> "ReportedTokens":
        """The larger count of each field: a streamed response repeats its usage while its output grows."""
        if other == self:
            return self
        return self._combine(other, max)

    def plus(self, other: "ReportedTokens") -> "ReportedTokens":
        return self._combine(other, operator.add)

    def minus(self, earlier: "ReportedTokens") -> "ReportedTokens":
        """The tokens added since `earlier`, at least 0 per field; an unrecorded earlier count is taken as 0."""
        added: dict[str, int | None] = {}
        for name, number in self.fields():
            added[name] = None if number is None else max(0, number - (getattr(earlier, name) or 0))
        return ReportedTokens(**added, is_valid=self.is_valid)

    def without_cached_input(self) -> "ReportedTokens":
        """The tokens of a harness that includes cached ones, read or written, in its input: they are taken off it."""
        if self.input_tokens is None:
            return self
        cached = (self.cache_read_tokens or 0) + (self.cache_write_tokens or 0)
        return replace(self, input_tokens=max(0, self.input_tokens - cached))

    def fields(self) -> list[tuple[str, int | None]]:
        """The counts by name."""
        return [(name, getattr(self, name)) for name in self.__struct_fields__ if name != "is_valid"]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to report: no tokens, and no invalid count."""
        return self.is_valid and not any(number for _, number in self.fields())

    def _combine(self, other: "ReportedTokens", combine: Callable[[int, int], int]) -> "ReportedTokens":
        """Combine the two counts of each field; if only one is recorded, it is taken as it is."""
        combined: dict[str, int | None] = {}
        for name, number in self.fields():
            other_number = getattr(other, name)
            if number is None or other_number is None:
                combined[name] = other_number if number is None else number
            else:
                combined[name] = combine(number, other_number)
        return ReportedTokens(**combined, is_valid=self.is_valid and other.is_valid)


def read_tokens(usage: Mapping[str, Any], problems: Problems, *, input_has_cached: bool = False) -> ReportedTokens:
    """Tokens from a harness's own usage object. Unknown keys and invalid numbers are noted as problems and left out.

    `input_has_cached`: the harness includes cached tokens in its input tokens. They are subtracted, so that the four
    counts are disjoint for every harness.
    """
    tokens: dict[str, int] = {}
    is_valid = True
    for key, value in usage.items():
        name = FIELD_BY_KEY.get(key)
        if name is None:
            if key not in IGNORED_KEYS:
                problems.note(f"unknown usage key {key[:40]!r}")
        elif type(value) is int and 0 <= value <= MAX_COUNT:
            tokens[name] = value
        elif (number := count_or_none(value)) is not None:
            tokens[name] = number
        elif value is not None:
            is_valid = False
            problems.note(f"usage key {key[:40]!r} is no whole number of tokens")
    if (hour := count_or_none(mapping(usage.get("cache_creation")).get(ONE_HOUR_KEY))) is not None:
        tokens["hour_cache_write_tokens"] = min(hour, tokens.get("cache_write_tokens", 0))
    reported = ReportedTokens(**tokens, is_valid=is_valid)
    return reported.without_cached_input() if input_has_cached else reported


def select_tokens(usage: Mapping[str, Any], *keys: str) -> ReportedTokens:
    """The counts under these keys of a harness's usage object: input, output, read from a cache, written to it."""
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    counts = {name: count_or_none(usage.get(key)) for name, key in zip(names, keys, strict=False)}
    return ReportedTokens(**counts, is_valid=True)


class Response(Struct, frozen=True, kw_only=True):
    """The usage of one model response, with time and record id of the first line that reported it.

    `message` is the provider's id of the response, "" if the log has none, and `speed` how fast it was ordered.
    `copied`: the log shows that the response is another session's.
    """

    model: str
    tokens: ReportedTokens
    at: datetime | None
    sidechain: bool
    record: str = ""
    cost: float | None = None
    message: str = ""
    speed: str = ""
    copied: bool = False


class ResponseBuffer:
    """Merges usage lines by message id into responses, each returned once with its largest counts.

    A message's lines are close together, so a response counts as complete when `max_pending` others have come after
    it. The last `max_completed` ids are remembered, and further lines with them are ignored.
    """

    def __init__(self, *, max_pending: int = 256, max_completed: int = 50_000) -> None:
        self._pending: OrderedDict[str, Response] = OrderedDict()
        self._completed = RecentKeys(max_completed)
        self._max_pending = max_pending

    def add(self, key: str, response: Response) -> list[Response]:
        """Add one line's usage under its message id; returns the responses now complete (without an id, this one)."""
        if not key:
            return [response]
        earlier = self._pending.get(key)
        if earlier is not None:
            self._pending[key] = replace(earlier, tokens=earlier.tokens.maximum(response.tokens))
        elif key not in self._completed:
            self._pending[key] = response
        return self._complete_oldest(self._max_pending)

    def mark_copied(self) -> None:
        """Mark the pending responses as another session's: the lines so far were copied from it."""
        self._pending = OrderedDict((key, replace(each, copied=True)) for key, each in self._pending.items())

    def drain(self) -> list[Response]:
        """The responses still pending."""
        return self._complete_oldest(0)

    def _complete_oldest(self, max_pending: int) -> list[Response]:
        completed = []
        while len(self._pending) > max_pending:
            key, response = self._pending.popitem(last=False)
            self._completed.check_and_add(key)
            completed.append(response)
        return completed
