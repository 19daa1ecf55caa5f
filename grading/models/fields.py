"""Columns that several models share."""

from collections.abc import Iterable
from enum import StrEnum
from hashlib import sha256
from typing import Any

from django.db import models
from django.db.models import Q
from django.db.models.expressions import RawSQL

from bandit.packed import BytesField


def enum_field(enum: type[StrEnum], **options: Any) -> "models.CharField[str, str]":
    """A text column that holds one value of `enum`. Pair it with `one_of` in Meta.constraints."""
    longest = max(len(member.value) for member in enum)
    choices = [(member.value, getattr(member, "words", member.value)) for member in enum]
    return models.CharField(max_length=max(longest, 32), choices=choices, **options)


def one_of(model: str, field: str, enum: type[StrEnum]) -> models.CheckConstraint:
    """The database's half of `enum_field`: nothing outside the enum is ever stored."""
    return models.CheckConstraint(
        condition=Q(**{f"{field}__in": [member.value for member in enum]}), name=f"{model}_{field}_known"
    )


class Literal(models.Value):
    """A word of an enum, written into the statement itself. With a parameter in its place SQLite plans before it knows
    the word: it takes a rare one for usual, and never uses an index that holds rows with that word alone.
    """

    def as_sql(self, *_: Any, **__: Any) -> tuple[str, tuple[str | int, ...]]:
        if not isinstance(self.value, StrEnum) or not self.value.isalpha():
            raise ValueError(f"expected a word of an enum, of letters alone; got {self.value!r}")
        return f"'{self.value}'", ()


class Keys(RawSQL):
    """Thousands of keys for `__in`, written into the statement itself: to hand over as many parameters takes Django and
    the driver longer than the database needs for its answer.
    """

    def __init__(self, keys: Iterable[int]) -> None:
        super().__init__(", ".join(str(int(key)) for key in keys) or "NULL", ())


class HashField(BytesField, models.CharField):  # type: ignore[type-arg]  # generic in the stubs only
    """A SHA-256 as its 64 hexadecimal digits, empty where there is none; the database has the 32 bytes that they say.

    Storing anything but such digits raises ValueError.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": 64, **options})

    def to_python(self, value: Any) -> Any:
        return value if isinstance(value, bytes) else super().to_python(value)

    def from_db_value(self, value: Any, *_: Any) -> Any:
        return None if value is None else bytes(value).hex()

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:  # noqa: ARG002, FBT001, FBT002 - Django's signature
        return bytes.fromhex(value) if isinstance(value, str) else value


class HashListField(BytesField):
    """A list of such hashes; the database has their bytes one after the other."""

    def from_db_value(self, value: Any, *_: Any) -> list[str] | None:
        if value is None:  # of a row that an outer join did not find
            return None
        digits = bytes(value).hex()
        return [digits[start : start + 64] for start in range(0, len(digits), 64)]

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:  # noqa: ARG002, FBT001, FBT002 - Django's signature
        return b"".join(map(bytes.fromhex, value))


def hash_field(**options: Any) -> "models.CharField[str, str]":
    """A column of SHA-256 hashes: `HashField`."""
    return HashField(**options)


def short_hash(*said: object) -> int:
    """64 bits, signed as the databases' whole numbers are, that tell apart what is said; the same in every process."""
    digest = sha256("\x1f".join(map(str, said)).encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


class CopiedField(models.Field):  # type: ignore[type-arg]  # generic in the stubs only
    """Mixed into a column for queries: it repeats what the packed JSON of `packed` says under its own name."""

    def __init__(self, *args: Any, packed: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.packed = packed

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, f"django.db.models.{type(self).__bases__[1].__name__}", args, kwargs

    def pre_save(self, instance: models.Model, add: bool) -> Any:  # noqa: ARG002, FBT001 - Django's signature
        said = getattr(instance, self.packed).get(self.name)
        value = said if isinstance(said, str if self.null is False else (int, float)) else self.get_default()
        setattr(instance, self.attname, value)
        return value


class CopiedTextField(CopiedField, models.CharField):  # type: ignore[type-arg]  # as above
    pass


class CopiedNumberField(CopiedField, models.FloatField):  # type: ignore[type-arg]  # as above
    pass
