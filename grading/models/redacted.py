"""Columns for what sessions and people say: secrets are hidden when a row is written, and when it is read, so that rows
from before look the same. What is graded never comes from such a column, so that hiding more moves no reward.
"""

from typing import Any

from django.db import models
from django.db.models import Model

from bandit.packed import PackedJSONField, PackedTextField
from grading.plain import plain_text
from grading.redaction import redact, redact_json, redact_line

# In the evidence of a grade, what was seen, by hash: read again as it was written.
KEPT = frozenset({"shown"})


class RedactedColumn(models.Field):  # type: ignore[type-arg]  # generic in the stubs only
    """Mixed into a column of texts; to migrations it is the plain column."""

    def from_db_value(self, value: Any, *_: Any) -> Any:
        return self.redacted(value)

    def pre_save(self, instance: Model, add: bool) -> Any:  # noqa: FBT001 - Django's signature
        value = self.redacted(super().pre_save(instance, add))
        setattr(instance, self.attname, value)
        return value

    def get_db_prep_save(self, value: Any, connection: Any) -> Any:
        return super().get_db_prep_save(self.redacted(value), connection)

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, f"django.db.models.{type(self).__bases__[1].__name__}", args, kwargs

    def redacted(self, value: Any) -> Any:
        """What the column stores of `value`."""
        return plain_text(redact(value), self.max_length) if isinstance(value, str) else value


class RedactedCharField(RedactedColumn, models.CharField):  # type: ignore[type-arg]  # as above
    """A line that may have been cut within a key."""

    def redacted(self, value: Any) -> Any:
        return plain_text(redact_line(value), self.max_length) if isinstance(value, str) else value


class RedactedTextField(RedactedColumn, models.TextField):  # type: ignore[type-arg]  # as above
    pass


class RedactedJSON(RedactedColumn):
    """The same for JSON, plain or packed."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        base: Any = type(self).__bases__[1]
        return self.redacted(base.from_db_value(self, value, expression, connection))

    def redacted(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: item if key in KEPT else redact_json(item) for key, item in value.items()}
        return redact_json(value)


class RedactedJSONField(RedactedJSON, models.JSONField):
    pass


class RedactedPackedField(RedactedJSON, PackedJSONField):
    def deconstruct(self) -> Any:
        return PackedJSONField.deconstruct(self)


class RedactedPackedTextField(RedactedColumn, PackedTextField):
    def from_db_value(self, value: Any, *_: Any) -> Any:
        return self.redacted(PackedTextField.from_db_value(self, value))

    def deconstruct(self) -> Any:
        return PackedTextField.deconstruct(self)


def redacted_char(**options: Any) -> "models.CharField[str, str]":
    return RedactedCharField(**options)


def redacted_text(**options: Any) -> "models.TextField[str, str]":
    return RedactedTextField(**options)


def redacted_json(**options: Any) -> "models.JSONField[Any, Any]":
    return RedactedJSONField(**options)


def redacted_packed(**options: Any) -> "models.JSONField[Any, Any]":
    return RedactedPackedField(**options)


def redacted_packed_text(**options: Any) -> "models.TextField[str, str]":
    return RedactedPackedTextField(**options)
