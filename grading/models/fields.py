"""Columns and constraints that several models share.

Columns whose name begins with "redacted" hold text from sessions and people. They replace secrets when a row is
written by save, update, bulk_create or bulk_update, never when it is read. `grading.intake.redacting` redacts older
rows again. Nothing is graded from such a column, so a new rule for secrets moves no reward. Compare a stored row only
with what `redacted` returns.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from hashlib import sha256
from typing import Any

from django.db import models
from django.db.models import Q
from django.db.models.expressions import RawSQL

from bandit.packed import BytesField, PackedJSONField, PackedTextField
from grading.plain import plain_text
from grading.redaction import redact, redact_json, redact_line

# Keys of a grade's evidence that are not redacted: hashes of what the grade was given. They are compared with later
# ones, and a hash may look like a secret.
NOT_REDACTED = frozenset({"shown"})


def enum_field(enum: type[StrEnum], **options: Any) -> "models.CharField[str, str]":
    """A text column that holds one value of `enum`. Add `one_of` to the model's constraints."""
    longest = max(len(member.value) for member in enum)
    choices = [(member.value, getattr(member, "words", member.value)) for member in enum]
    return models.CharField(max_length=max(longest, 32), choices=choices, **options)


def one_of(model: str, field: str, enum: type[StrEnum]) -> models.CheckConstraint:
    """The constraint that an `enum_field` has one of the enum's values."""
    return models.CheckConstraint(
        condition=Q(**{f"{field}__in": [member.value for member in enum]}), name=f"{model}_{field}_known"
    )


def unit_interval(field: str, name: str, *, null: bool = False) -> models.CheckConstraint:
    """The constraint that `field` is from 0 to 1 or, with `null`, empty."""
    condition = Q(**{f"{field}__gte": 0, f"{field}__lte": 1})
    return models.CheckConstraint(condition=Q(**{field: None}) | condition if null else condition, name=name)


class Literal(models.Value):
    """A value of an enum, written into the SQL text. Given a parameter, SQLite plans the query before it knows the
    value, and never uses a partial index on that value.
    """

    def as_sql(self, *_: Any, **__: Any) -> tuple[str, tuple[str | int, ...]]:
        if not isinstance(self.value, StrEnum) or not self.value.isalpha():
            raise ValueError(f"expected a word of an enum, of letters alone; got {self.value!r}")
        return f"'{self.value}'", ()


class Keys(RawSQL):
    """Thousands of keys for `__in`, written into the SQL text. As parameters they take Django and the driver longer
    than the database needs for its answer.
    """

    def __init__(self, keys: Iterable[int]) -> None:
        super().__init__(", ".join(str(int(key)) for key in keys) or "NULL", ())


class HashField(BytesField, models.CharField):  # type: ignore[type-arg]  # generic in the stubs only
    """A SHA-256 as 64 hexadecimal digits, or empty. The database stores the 32 bytes.

    Storing anything else raises ValueError.
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
    """A list of SHA-256 hashes in hexadecimal digits. The database stores their bytes one after the other."""

    def from_db_value(self, value: Any, *_: Any) -> list[str] | None:
        if value is None:  # an outer join without a row
            return None
        digits = bytes(value).hex()
        return [digits[start : start + 64] for start in range(0, len(digits), 64)]

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:  # noqa: ARG002, FBT001, FBT002 - Django's signature
        return b"".join(map(bytes.fromhex, value))


def short_hash(*parts: object) -> int:
    """A signed 64-bit hash of the parts' text, the same in every process."""
    digest = sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


class RedactedField(models.Field):  # type: ignore[type-arg]  # generic in the stubs only
    """Mixin for text and JSON columns that are redacted when they are written. Migrations see the plain column."""

    def pre_save(self, instance: models.Model, add: bool) -> Any:  # noqa: FBT001 - Django's signature
        """The redacted value, which the instance gets too."""
        value = self.redacted(super().pre_save(instance, add))
        setattr(instance, self.attname, value)
        return value

    def get_db_prep_save(self, value: Any, connection: Any) -> Any:
        return super().get_db_prep_save(self.redacted(value), connection)

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, f"django.db.models.{self.get_internal_type()}", args, kwargs

    def redacted(self, value: Any) -> Any:
        """What the column stores for `value`."""
        return plain_text(redact(value), self.max_length) if isinstance(value, str) else value


class RedactedCharField(RedactedField, models.CharField):  # type: ignore[type-arg]  # generic in the stubs only
    """A column of one line of text, which may have been cut in the middle of a secret."""

    def redacted(self, value: Any) -> Any:
        return plain_text(redact_line(value), self.max_length) if isinstance(value, str) else value


class RedactedTextField(RedactedField, models.TextField):  # type: ignore[type-arg]  # generic in the stubs only
    pass


class RedactedJSON(RedactedField):
    """Mixin for JSON columns, plain or packed, whose texts are redacted."""

    def redacted(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: item if key in NOT_REDACTED else redact_json(item) for key, item in value.items()}
        return redact_json(value)


class RedactedJSONField(RedactedJSON, models.JSONField):
    pass


class RedactedPackedField(RedactedJSON, PackedJSONField):
    pass


class RedactedPackedTextField(RedactedField, PackedTextField):
    pass


# Models use these names instead of the classes, so that the type checker knows the type of a column's values.
hash_field: "Callable[..., models.CharField[str, str]]" = HashField
redacted_char: "Callable[..., models.CharField[str, str]]" = RedactedCharField
redacted_text: "Callable[..., models.TextField[str, str]]" = RedactedTextField
redacted_json: "Callable[..., models.JSONField[Any, Any]]" = RedactedJSONField
redacted_packed: "Callable[..., models.JSONField[Any, Any]]" = RedactedPackedField
redacted_packed_text: "Callable[..., models.TextField[str, str]]" = RedactedPackedTextField
