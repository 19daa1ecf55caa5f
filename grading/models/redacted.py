"""Columns for text from sessions and people. Secrets are replaced as it is written, by save, update, bulk_create and
bulk_update, and never as it is read; `grading.intake.redacting` does it again for rows from before.

What is graded never comes from such a column, so that replacing more moves no reward. Compare with a stored row only
what `redacted` returns.
"""

from typing import Any

from django.db import models
from django.db.models import Model

from bandit.packed import PackedJSONField, PackedTextField
from grading.plain import plain_text
from grading.redaction import redact, redact_json, redact_line

# In the evidence of a grade, hashes of what the grade has seen. They are compared, and may look like keys.
SPARED_KEYS = frozenset({"shown"})


class RedactedField(models.Field):  # type: ignore[type-arg]  # generic in the stubs only
    """Mixed into a column of texts. To migrations it is the plain column."""

    def pre_save(self, instance: Model, add: bool) -> Any:  # noqa: FBT001 - Django's signature
        """The instance then has the value that the row has."""
        value = self.redacted(super().pre_save(instance, add))
        setattr(instance, self.attname, value)
        return value

    def get_db_prep_save(self, value: Any, connection: Any) -> Any:
        return super().get_db_prep_save(self.redacted(value), connection)

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, f"django.db.models.{self.get_internal_type()}", args, kwargs

    def redacted(self, value: Any) -> Any:
        """What the column stores of `value`."""
        return plain_text(redact(value), self.max_length) if isinstance(value, str) else value


class RedactedCharField(RedactedField, models.CharField):  # type: ignore[type-arg]  # as above
    """A line that may have been cut within a key."""

    def redacted(self, value: Any) -> Any:
        return plain_text(redact_line(value), self.max_length) if isinstance(value, str) else value


class RedactedTextField(RedactedField, models.TextField):  # type: ignore[type-arg]  # as above
    pass


class RedactedJSON(RedactedField):
    """The same for JSON, plain or packed."""

    def redacted(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: item if key in SPARED_KEYS else redact_json(item) for key, item in value.items()}
        return redact_json(value)


class RedactedJSONField(RedactedJSON, models.JSONField):
    pass


class RedactedPackedField(RedactedJSON, PackedJSONField):
    pass


class RedactedPackedTextField(RedactedField, PackedTextField):
    pass


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
