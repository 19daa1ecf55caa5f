"""Reads JSON and text as earlier versions packed them: with zlib, and a dictionary of typical rows."""

import json
import zlib
from functools import cache
from pathlib import Path
from typing import Any

DICTIONARY = Path(__file__).parents[2] / "bandit" / "typical_rows.jsonl"
# The first byte of a bare stream, of one in zlib's frame (JSON alone), and of text that begins like a stream.
BARE, FRAMED, PLAIN_TEXT = b"\x01", b"x", b"\x02"


def unpack(data: bytes) -> Any:
    """The value of packed JSON."""
    if data[:1] == FRAMED:
        unpacker = zlib.decompressobj(zdict=_dictionary())
        return json.loads(unpacker.decompress(data) + unpacker.flush())
    return json.loads(_plain(data))


def unpack_text(data: bytes) -> str:
    """Packed text."""
    return (_plain(data) if data[:1] == BARE else data.removeprefix(PLAIN_TEXT)).decode()


def _plain(data: bytes) -> bytes:
    if data[:1] != BARE:
        return data
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS, zdict=_dictionary())
    return unpacker.decompress(data[1:]) + unpacker.flush()


@cache
def _dictionary() -> bytes:
    return DICTIONARY.read_bytes()
