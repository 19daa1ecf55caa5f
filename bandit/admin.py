"""Admin pages: bandits and arms can be edited, records can only be read."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.admin import AdminSite, ModelAdmin, TabularInline
from django.contrib.admin.views.main import PAGE_VAR
from django.contrib.admin.widgets import AdminSplitDateTime
from django.core.paginator import Paginator
from django.db.models import DateTimeField, Field, Model, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property

from bandit import arms, ledger
from bandit.models import (
    Arm,
    ArmAlias,
    ArmEvent,
    Assignment,
    Bandit,
    Bucket,
    CalibrationVersion,
    Erasure,
    Grader,
    LedgerEntry,
    PolicyVersion,
    Selection,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    AnyModelAdmin = ModelAdmin[Model]
    AnyAliasInline = TabularInline[ArmAlias, Arm]
    AnyPaginator = Paginator[Model]
else:
    AnyModelAdmin = ModelAdmin
    AnyAliasInline = TabularInline
    AnyPaginator = Paginator


class LabelledDateTime(AdminSplitDateTime):
    """Django's date and time fields with accessible labels."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__(attrs)
        for widget, label in zip(self.widgets, ("Date", "Time"), strict=True):
            widget.attrs["aria-label"] = label


DATE_TIME_FIELDS: "Mapping[type[Field[Any, Any]], Mapping[str, Any]]" = {
    DateTimeField: {"form_class": forms.SplitDateTimeField, "widget": LabelledDateTime}
}


# A list counts its rows only up to this many beyond the current page.
COUNT_AHEAD = 1000


class StoppedCount(int):
    """A count that was stopped at this number, shown as "more than" the number before it."""

    def __str__(self) -> str:
        return f"more than {self - 1:,}"


class RecordPaginator(AnyPaginator):
    """Pages of a list that may have millions of rows, which are counted only up to COUNT_AHEAD beyond `page_number`."""

    def __init__(self, *args: Any, page_number: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self.page_number = page_number

    @cached_property
    def count(self) -> int:
        limit = (self.page_number - 1) * self.per_page + COUNT_AHEAD
        rows: Any = self.object_list
        count: int = rows.order_by()[: limit + 1].count()
        return count if count <= limit else StoppedCount(count)


class UndeletableAdmin(AnyModelAdmin):
    """Rows that may be added and changed, and never deleted: arms retire."""

    view_on_site = False
    formfield_overrides = DATE_TIME_FIELDS

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False


class RecordAdmin(UndeletableAdmin):
    """Rows that the program writes and people only read."""

    list_per_page = 50
    show_full_result_count = False

    def get_paginator(self, request: HttpRequest, *args: Any, **options: Any) -> RecordPaginator:
        text = request.GET.get(PAGE_VAR, "")
        number = int(text) if text.isdecimal() and len(text) < 10 else 1  # noqa: PLR2004 - beyond any page
        return RecordPaginator(*args, page_number=max(number, 1), **options)

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False


class BanditAdmin(UndeletableAdmin):
    list_display = ["name", "title", "kind", "baseline"]
    list_select_related = ["baseline"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:  # noqa: ARG002
        """Name and kind are fixed: callers use the name, and the record's meaning depends on the kind."""
        return ["name", "kind"] if obj else []


class AliasInline(AnyAliasInline):
    """Read-only, because `bandit.arms` records an event for each change of an alias."""

    model = ArmAlias
    fields = ("alias",)
    readonly_fields = ("alias",)
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False


class ArmAdmin(UndeletableAdmin):
    list_display = ["name", "bandit", "title", "is_consumption", "is_looking", "is_low_stakes", "paused", "retired_at"]
    list_filter = ["bandit", "is_consumption", "is_looking", "is_low_stakes", "paused", "probation"]
    list_select_related = ["bandit"]
    search_fields = ["name", "title", "aliases__alias"]
    inlines = [AliasInline]
    fieldsets = [
        (None, {"fields": ["bandit", "name", "title", "is_consumption", "is_looking", "is_low_stakes"]}),
        (
            "By an act with a name",
            {
                "fields": ["paused", "retired_at", "probation", "merged_into"],
                "description": "These are changed on the bandit's page of arms, where each act leaves an event.",
            },
        ),
    ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:  # noqa: ARG002
        """Bandit and name are fixed, because the arm's record refers to them; other spellings are aliases."""
        by_act = ["paused", "retired_at", "probation", "merged_into"]
        return ["bandit", "name", *by_act] if obj else by_act

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:  # noqa: FBT001 - Django's
        """Add an arm with an event, or save a changed one and invalidate cached readings of its bandit."""
        if change:
            super().save_model(request, obj, form, change)
            ledger.touch(obj.bandit)
            return
        flags = {name: getattr(obj, name) for name in ("is_consumption", "is_looking", "is_low_stakes")}
        by = request.user.get_username()
        obj.pk = arms.add(obj.bandit.name, obj.name, by=by, title=obj.title, **flags).pk


class LedgerEntryAdmin(RecordAdmin):
    list_display = ["observation", "arm", "op", "revision", "value", "grader", "effective_day", "recorded_at"]
    list_filter = ["bandit", "op", "grader__source"]
    search_fields = ["=observation"]

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Any]":
        return super().get_queryset(request).select_related("bandit", "arm", "grader", "policy")


class BucketAdmin(RecordAdmin):
    list_display = ["effective_day", "arm", "grader", "n", "s", "q"]
    list_filter = ["bandit", "grader__source"]
    date_hierarchy = "effective_day"
    list_select_related = ["bandit", "arm", "grader"]


class SelectionAdmin(RecordAdmin):
    list_display = ["decision_id", "created", "arm", "propensity", "executed_arm", "observation", "completed_at"]
    list_filter = ["bandit", "arm"]
    search_fields = ["=decision_id", "=observation", "=agent"]
    list_select_related = ["bandit", "arm", "executed_arm"]


class GraderAdmin(RecordAdmin):
    list_display = [
        "source", "model", "route", "rubric", "version", "stratum", "context", "salience", "view", "witness",
        "standing", "agent",
    ]  # fmt: skip
    list_filter = ["source", "stratum", "view", "standing", "agent"]


class CalibrationVersionAdmin(RecordAdmin):
    list_display = ["bandit", "version", "enabled", "accepted", "target", "by", "created_at", "note"]
    list_filter = ["bandit", "enabled", "accepted"]
    list_select_related = ["bandit"]


class PolicyVersionAdmin(RecordAdmin):
    list_display = ["bandit", "version", "half_life_days", "floor", "by", "created_at", "note"]
    list_filter = ["bandit"]
    list_select_related = ["bandit"]


class ArmEventAdmin(RecordAdmin):
    list_display = ["created_at", "arm", "act", "other", "by", "why"]
    list_filter = ["act"]
    list_select_related = ["arm", "other"]


class AssignmentAdmin(RecordAdmin):
    list_display = ["decision_id", "created", "arm", "taken", "chance", "observation"]
    list_filter = ["taken"]
    search_fields = ["=decision_id", "=observation", "=agent"]
    list_select_related = ["arm"]


class ErasureAdmin(RecordAdmin):
    list_display = ["opened_at", "who", "why", "counts"]


PAGES = {
    Bandit: BanditAdmin,
    Arm: ArmAdmin,
    LedgerEntry: LedgerEntryAdmin,
    Bucket: BucketAdmin,
    Selection: SelectionAdmin,
    Grader: GraderAdmin,
    CalibrationVersion: CalibrationVersionAdmin,
    PolicyVersion: PolicyVersionAdmin,
    ArmEvent: ArmEventAdmin,
    Assignment: AssignmentAdmin,
    Erasure: ErasureAdmin,
}


def register(site: AdminSite) -> None:
    """Add this app's pages to the project's admin site."""
    for model, page in PAGES.items():
        site.register(model, page)
