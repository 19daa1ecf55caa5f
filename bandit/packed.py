"""Compressed columns for JSON and text that no query looks into.

A short text compresses badly, because what repeats is in other rows. So zlib starts with a dictionary,
`typical_rows.jsonl`: typical rows of each kind, the most frequent kinds last, where references are shortest. The result
is zlib's raw stream after one byte that identifies the format; zlib's own frame would add ten bytes.
"""

import json
import zlib
from functools import cache
from pathlib import Path
from typing import Any

from django.db import models

# Never change this file: rows packed with it could not be read any more. Add a better dictionary as another file.
TYPICAL = Path(__file__).with_name("typical_rows.jsonl")
# The first byte of a packed value, and of one that an earlier version packed with zlib's frame. No JSON begins with
# either.
PACKED, FRAMED = 1, ord("x")
# The first byte of uncompressed text whose own first character is one of the MARKS. Other text has no mark.
PLAIN = 2
MARKS = {bytes([PACKED]), bytes([PLAIN])}
# zlib's parameter for a stream without a frame.
RAW_STREAM = -zlib.MAX_WBITS


def pack(value: Any) -> bytes:
    """The value as JSON, compressed if that is shorter."""
    plain = json.dumps(value, separators=(",", ":")).encode()
    packed = _compress(plain)
    return packed if len(packed) < len(plain) else plain


def pack_text(text: str) -> bytes:
    """The text, compressed if that is shorter."""
    plain = text.encode()
    packed = _compress(plain)
    if plain[:1] in MARKS:
        plain = bytes([PLAIN]) + plain  # otherwise `unpack_text` would take its first character for a mark
    return packed if len(packed) < len(plain) else plain


def unpack_text(data: bytes) -> str:
    """The text that `pack_text` packed. Raises zlib.error if the bytes are marked as packed but are not."""
    if data[:1] == bytes([PACKED]):
        return _decompress(data).decode()
    return data.removeprefix(bytes([PLAIN])).decode()


def _compress(plain: bytes) -> bytes:
    packer = zlib.compressobj(zlib.Z_BEST_COMPRESSION, wbits=RAW_STREAM, zdict=_dictionary())
    return bytes([PACKED]) + packer.compress(plain) + packer.flush()


def _decompress(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(RAW_STREAM, zdict=_dictionary())
    return unpacker.decompress(data[1:]) + unpacker.flush()


def unpack(data: bytes) -> Any:
    """The value that `pack`, or an earlier version of it, packed. Raises zlib.error for other bytes."""
    if data[0] == PACKED:
        data = _decompress(data)
    elif data[0] == FRAMED:
        unpacker = zlib.decompressobj(zdict=_dictionary())
        data = unpacker.decompress(data) + unpacker.flush()
    return json.loads(data)


@cache
def _dictionary() -> bytes:
    return TYPICAL.read_bytes()


class BytesField(models.Field):  # type: ignore[type-arg]  # generic in the stubs only
    """Mixin for fields stored as bytes; migrations see a BinaryField."""

    def get_internal_type(self) -> str:
        return "BinaryField"

    def deconstruct(self) -> Any:
        name, _path, _args, kwargs = super().deconstruct()
        options = {key: kwargs[key] for key in ("null", "blank") if key in kwargs}
        return name, "django.db.models.BinaryField", [], options


class PackedJSONField(BytesField, models.JSONField):
    """JSON that no query looks into."""

    def from_db_value(self, value: Any, *_: Any) -> Any:
        return None if value is None else unpack(bytes(value))

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:  # noqa: FBT001, FBT002, ARG002 - Django's signature
        return None if value is None else connection.Database.Binary(pack(value))

    def get_transform(self, lookup_name: str) -> Any:  # noqa: ARG002 - as above
        """None, because a lookup inside the JSON would have to unpack every row."""
        return


class PackedTextField(BytesField, models.TextField):  # type: ignore[type-arg]  # generic in the stubs only
    """Text that queries may only test for equality."""

    def from_db_value(self, value: Any, *_: Any) -> Any:
        return None if value is None else unpack_text(bytes(value))

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:  # noqa: FBT001, FBT002, ARG002 - Django's signature
        return pack_text(value) if isinstance(value, str) else value

    def get_lookup(self, lookup_name: str) -> Any:
        """None except for equality, because other lookups would have to unpack every row."""
        return super().get_lookup(lookup_name) if lookup_name in {"exact", "in", "isnull"} else None
