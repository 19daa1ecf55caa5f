"""The form of Insight: the measure, the time span, the split, the sessions, and the two periods to compare."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django import forms

from bandit.models import Arm
from grading.insight import changes, loading
from grading.insight.core.measures import MEASURES, Measure
from grading.insight.core.results import Span, TimeMark, TrendSplit, TrendStep
from grading.insight.loading import CellFilter
from grading.models import Agent

SPANS = [("4", "4 weeks"), ("10", "10 weeks"), ("26", "half a year")]
# By default, and the most that is shown by day: more points can't be read, and take the database too long.
WEEKS = 10
SPLITS = {
    TrendSplit.CATEGORY: "by category",
    TrendSplit.HARNESS: "by harness",
    TrendSplit.VERSION: "by harness version",
    TrendSplit.MODEL: "by model",
    TrendSplit.AGENT: "by agent",
    TrendSplit.PROJECT: "by project",
}
NARROWING = ("category", "agent", "harness", "version", "model", "project")
PERIODS = ("before_first", "before_last", "after_first", "after_last")
DAY = forms.DateInput(attrs={"type": "date"})


class InsightForm(forms.Form):
    """The page's filters. Every field is optional; an invalid value is reported and ignored."""

    measure = forms.ChoiceField(required=False, choices=[(each.name, each.title) for each in MEASURES.values()])
    step = forms.ChoiceField(
        required=False, label="Step", choices=[(TrendStep.WEEK, "by week"), (TrendStep.DAY, "by day")]
    )
    weeks = forms.ChoiceField(required=False, label="Time", choices=SPANS)
    split = forms.ChoiceField(
        required=False,
        label="Split",
        choices=[*((split.value, label) for split, label in SPLITS.items()), ("none", "not split")],
    )
    category = forms.ModelChoiceField(
        Arm.objects.filter(bandit__name="category"), required=False, to_field_name="name", empty_label="Any category"
    )
    agent = forms.ModelChoiceField(
        Agent.objects.filter(is_sample=False), required=False, to_field_name="name", empty_label="Any agent"
    )
    harness = forms.ModelChoiceField(
        Arm.objects.filter(bandit__name="harness"), required=False, to_field_name="name", empty_label="Any harness"
    )
    # Names that sessions have, in full. There may be thousands, so they are typed, or follow from a link.
    version = forms.CharField(required=False, max_length=60, label="Harness version")
    model = forms.CharField(required=False, max_length=120)
    project = forms.CharField(required=False, max_length=200)
    # The two periods: before and after a mark, or typed.
    mark = forms.CharField(required=False, max_length=300, label="Before and after")
    before_first = forms.DateField(required=False, label="From", widget=DAY)
    before_last = forms.DateField(required=False, label="to", widget=DAY)
    after_first = forms.DateField(required=False, label="against", widget=DAY)
    after_last = forms.DateField(required=False, label="to", widget=DAY)

    def __init__(self, data: Mapping[str, Any], now: dt.datetime) -> None:
        defaults = {"measure": "reward", "step": TrendStep.WEEK, "weeks": str(WEEKS), "split": TrendSplit.CATEGORY}
        super().__init__({**defaults, **{name: data[name] for name in data if data[name]}})
        self.now = now
        weeks = self.data["weeks"] if self.data["weeks"] in dict(SPANS) else WEEKS
        self.span = loading.last_weeks(now, int(weeks))
        self.is_valid()

    @property
    def common(self) -> list[forms.BoundField]:
        """The fields that the page shows at once."""
        return [self[name] for name in ("measure", "step", "weeks", "split", "category", "agent")]

    @property
    def rare(self) -> list[forms.BoundField]:
        """The fields that the page keeps in a menu."""
        return [self[name] for name in ("harness", "version", "model", "project")]

    @property
    def of_trend(self) -> list[forms.BoundField]:
        """The fields of the trend and of the sessions."""
        return [*self.common, *self.rare]

    @property
    def of_periods(self) -> list[forms.BoundField]:
        """The fields of the two periods."""
        return [self[name] for name in ("mark", *PERIODS)]

    @property
    def is_rare(self) -> bool:
        return any(field.value() for field in self.rare)

    def clean(self) -> dict[str, Any]:
        chosen = super().clean() or self.cleaned_data
        if chosen.get("step") == TrendStep.DAY and self.span.days > 7 * WEEKS:
            self.add_error("step", f"Daily figures cover at most {WEEKS} weeks.")
        days = [chosen[name] for name in PERIODS if chosen.get(name)]
        if days and len(days) < len(PERIODS):
            self.add_error("before_first", "Enter four days: the first and the last day of each period.")
        elif days and not days[0] <= days[1] < days[2] <= days[3]:
            self.add_error("before_first", "The second period must begin after the first has ended.")
        return chosen

    @property
    def chosen_measure(self) -> Measure:
        return MEASURES[self.cleaned_data.get("measure") or "reward"]

    @property
    def chosen_step(self) -> TrendStep:
        return TrendStep(self.cleaned_data.get("step") or TrendStep.WEEK)

    @property
    def chosen_split(self) -> TrendSplit | None:
        split = self.cleaned_data.get("split") or TrendSplit.CATEGORY
        return None if split == "none" else TrendSplit(split)

    @property
    def filters(self) -> CellFilter:
        return CellFilter(**self.narrowing)

    @property
    def narrowing(self) -> dict[str, str]:
        """The filters of sessions in use, by name."""
        chosen = {name: self.cleaned_data[name] for name in NARROWING if self.cleaned_data.get(name)}
        return {name: str(getattr(value, "name", value)) for name, value in chosen.items()}

    def periods(self, marks: Sequence[TimeMark]) -> tuple[Span, Span]:
        """The two periods to compare: the chosen ones; otherwise those before and after the chosen mark; otherwise the
        last two whole weeks. A mark of today has no days after it yet, and doesn't count.
        """
        days = [self.cleaned_data[name] for name in PERIODS if self.cleaned_data.get(name)]
        if len(days) == len(PERIODS) and not self.errors:
            return Span(first=days[0], last=days[1]), Span(first=days[2], last=days[3])
        mark = self.chosen_mark(marks)
        around = None if mark is None else changes.spans_around(mark, self.now)
        return around or changes.last_two_weeks(self.now)

    def chosen_mark(self, marks: Sequence[TimeMark]) -> TimeMark | None:
        key = self.cleaned_data.get("mark")
        return next((mark for mark in marks if key and mark.key == key), None)

    def query(self, **changed: str) -> str:
        """The address's query with some fields changed; an empty value leaves a field out."""
        values = {name: str(value) for name, value in self.data.items() if name in self.fields}
        return urlencode({name: value for name, value in {**values, **changed}.items() if value})


def period_fields(before: Span, after: Span) -> dict[str, str]:
    """The fields that choose these two periods."""
    days = (before.first, before.last, after.first, after.last)
    return {name: day.isoformat() for name, day in zip(PERIODS, days, strict=True)}
