"""JSON and text that are only ever read as a whole, compressed with what rows of their kind have in common.

A short text compresses badly alone: what repeats is in the other rows. So zlib begins with `typical_rows.jsonl`, rows
of each kind without what was one session's own, the most frequent kinds last, where references to them are shortest.
What is packed is the bare stream behind one byte that names the dictionary: of a hundred bytes zlib's own frame is ten.
"""

import json
import zlib
from functools import cache
from pathlib import Path
from typing import Any

from django.db import models

# Never changed: what was packed with it could not be read any more. A better one is another file beside it.
TYPICAL = Path(__file__).with_name("typical_rows.jsonl")
# The first byte of what is packed by that dictionary, and of what earlier versions left in zlib's frame: no JSON begins
# with either.
TYPICALLY, FRAMED = 1, ord("x")
# The first byte of text that is as it is, where it would begin with one of these two otherwise.
PLAINLY = 2
MARKS = {bytes([TYPICALLY]), bytes([PLAINLY])}
# The window of a stream without a frame.
BARE = -zlib.MAX_WBITS


def pack(value: Any) -> bytes:
    """JSON in as few bytes as may be: as it is where it is shorter so."""
    plain = json.dumps(value, separators=(",", ":")).encode()
    packed = _packed(plain)
    return packed if len(packed) < len(plain) else plain


def pack_text(text: str) -> bytes:
    """Text in as few bytes as may be, as `pack`."""
    plain, packed = text.encode(), _packed(text.encode())
    if plain[:1] in MARKS:
        plain = bytes([PLAINLY]) + plain
    return packed if len(packed) < len(plain) else plain


def unpack_text(data: bytes) -> str:
    """The text that was packed. Raises zlib.error where it is something else."""
    if data[:1] == bytes([TYPICALLY]):
        return _unpacked(data).decode()
    return data.removeprefix(bytes([PLAINLY])).decode()


def _packed(plain: bytes) -> bytes:
    packer = zlib.compressobj(zlib.Z_BEST_COMPRESSION, wbits=BARE, zdict=_dictionary())
    return bytes([TYPICALLY]) + packer.compress(plain) + packer.flush()


def _unpacked(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(BARE, zdict=_dictionary())
    return unpacker.decompress(data[1:]) + unpacker.flush()


def unpack(data: bytes) -> Any:
    """The value that was packed, with this dictionary or with none. Raises zlib.error where it is something else."""
    if data[0] == TYPICALLY:
        data = _unpacked(data)
    elif data[0] == FRAMED:
        unpacker = zlib.decompressobj(zdict=_dictionary())
        data = unpacker.decompress(data) + unpacker.flush()
    return json.loads(data)


@cache
def _dictionary() -> bytes:
    return TYPICAL.read_bytes()


class BytesField(models.Field):  # type: ignore[type-arg]  # generic in the stubs only
    """Mixed into a column that the database has as bytes; to migrations it is the plain column of them."""

    def get_internal_type(self) -> str:
        return "BinaryField"

    def deconstruct(self) -> Any:
        name, _path, _args, kwargs = super().deconstruct()
        kept = {key: kwargs[key] for key in ("null", "blank") if key in kwargs}
        return name, "django.db.models.BinaryField", [], kept


class PackedJSONField(BytesField, models.JSONField):
    """A column that no query looks into."""

    def from_db_value(self, value: Any, *_: Any) -> Any:
        return None if value is None else unpack(bytes(value))

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:  # noqa: FBT001, FBT002, ARG002 - Django's signature
        return None if value is None else connection.Database.Binary(pack(value))

    def get_transform(self, lookup_name: str) -> Any:  # noqa: ARG002 - as above
        """None: a query that looked inside would have to unpack every row."""
        return


class PackedTextField(BytesField, models.TextField):  # type: ignore[type-arg]  # generic in the stubs only
    """As a PackedJSONField, for text: a query may ask whether it is the same, and nothing else."""

    def from_db_value(self, value: Any, *_: Any) -> Any:
        return None if value is None else unpack_text(bytes(value))

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:  # noqa: FBT001, FBT002, ARG002 - Django's signature
        return pack_text(value) if isinstance(value, str) else value

    def get_lookup(self, lookup_name: str) -> Any:
        """None but for equality: a query that looked inside would have to unpack every row."""
        return super().get_lookup(lookup_name) if lookup_name in {"exact", "in", "isnull"} else None
