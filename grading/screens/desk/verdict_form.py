"""The base of forms for a person's verdict: an answer, a grade if the answer takes one, and a reason."""

from collections.abc import Collection
from typing import Any, ClassVar

from django import forms

from grading.models.review import GRADING, Answer

OUT_OF_RANGE = "A grade is a number from 0 to 1 with at most two decimals, for example .80."
WRONG = ("invalid", "min_value", "max_value", "max_digits", "max_decimal_places", "max_whole_digits")


class VerdictForm(forms.Form):
    """A subclass adds the field `answer`. `takes_value`: the answers with which a value in [0, 1] counts."""

    takes_value: ClassVar[Collection[Answer]] = GRADING

    value = forms.DecimalField(
        required=False,
        min_value=0,
        max_value=1,
        max_digits=4,
        decimal_places=2,
        error_messages=dict.fromkeys(WRONG, OUT_OF_RANGE),
    )
    reason = forms.CharField(required=False, max_length=2000, strip=True)

    def clean(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        # An invalid value is missing from `cleaned`, and has an error already.
        if cleaned.get("answer") == Answer.GRADE and "value" in cleaned and cleaned["value"] is None:
            self.add_error("value", OUT_OF_RANGE)
        return cleaned

    @property
    def verdict(self) -> Answer:
        return Answer(self.cleaned_data["answer"])

    @property
    def grade(self) -> float | None:
        """The grade in [0, 1], if the answer takes one."""
        value = self.cleaned_data.get("value")
        return None if value is None or self.cleaned_data.get("answer") not in self.takes_value else float(value)
