"""Columns that several models share."""

import json
import zlib
from enum import StrEnum
from typing import Any

from django.db import models
from django.db.models import Q


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


class CompressedJSONField(models.BinaryField):  # type: ignore[type-arg]  # generic in the stubs only
    """JSON that is only ever read as a whole, at a tenth of its size; to migrations it is the plain column of bytes."""

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.BinaryField", args, kwargs

    def from_db_value(self, value: Any, *_: Any) -> Any:
        return None if value is None else json.loads(zlib.decompress(bytes(value)))

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:  # noqa: FBT001, FBT002 - Django's signature
        said = None if value is None else zlib.compress(json.dumps(value, separators=(",", ":")).encode())
        return super().get_db_prep_value(said, connection, prepared)

    def value_to_string(self, obj: models.Model) -> str:
        return json.dumps(self.value_from_object(obj))

    def to_python(self, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value
