"""A log of any length is read in the same memory."""

import json
import tracemalloc
from collections.abc import Iterator
from io import RawIOBase

import pytest

from grading.formats import read
from tests.formats.logs import GPTME_PROMPT, claude, codex_item, codex_meta, gptme, tool_result

pytestmark = pytest.mark.pure

LINE = 40_000
MEGABYTE = 1024 * 1024


class Endless(RawIOBase):
    """A log made as it is read, so that the test itself holds none of it."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._left = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        while len(self._left) < size and (line := next(self._lines, b"")):
            self._left += line
        piece, self._left = self._left[:size], self._left[size:]
        return piece


def claude_line(n: int) -> dict:
    usage = {"output_tokens": n}
    return claude("user", tool_result(f"{n} " * (LINE // 8)), uuid=f"u{n}", message={"id": f"m{n}", "usage": usage})


def line_with_long_id(n: int) -> dict:
    return claude("user", "hi", uuid=f"{n} " * (LINE // 8))


def codex_line(n: int) -> dict:
    return codex_meta() if n == 0 else codex_item("function_call_output", call_id=f"c{n}", output=f"{n} " * (LINE // 8))


def gptme_line(n: int) -> dict:
    return GPTME_PROMPT if n == 0 else gptme("system", f"Ran {n} " * (LINE // 8), call_id=f"c{n}")


def peak(make, megabytes: int) -> float:
    """The most memory, in MiB, that reading a log of so many MiB took."""
    size = len(json.dumps(make(1)))
    lines = (json.dumps(make(n)).encode() + b"\n" for n in range(megabytes * MEGABYTE // size))
    tracemalloc.start()
    try:
        assert sum(1 for _ in read(Endless(lines))) > megabytes
        return tracemalloc.get_traced_memory()[1] / MEGABYTE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("make", [claude_line, line_with_long_id, codex_line, gptme_line])
def test_memory_does_not_grow_with_the_log(make):
    small, large = peak(make, 4), peak(make, 40)
    assert large < 8
    assert large < small + 2
