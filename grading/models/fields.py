"""Columns that several models share."""

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
