"""Agents, tokens, rules and people: ordinary model admins with the site's look."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.urls import URLPattern, URLResolver

import bandit.admin
from bandit.admin import DATE_TIME_FIELDS, UndeletableAdmin
from grading.access.recording import record
from grading.models import Agent, ApiToken, Artifact, ArtifactRule
from grading.models.audit import AuditKind
from grading.signals.artifacts import DEFAULT_RULES


class AgentAdmin(UndeletableAdmin):
    list_display = ["name", "title", "is_sample", "created_at"]
    search_fields = ["name", "title"]


class ApiTokenAdmin(UndeletableAdmin):
    """Tokens are made, narrowed, rotated and revoked on the connect page; here they are looked at and revoked."""

    fields = ("agent", "hint", "scope", "note", "created_by", "created_at", "last_used_at", "expires_at", "revoked_at")
    list_display = fields
    list_select_related = ["agent", "created_by"]
    list_filter = ["scope", "agent"]
    readonly_fields = ("agent", "hint", "scope", "created_by", "created_at", "last_used_at", "expires_at", "revoked_at")
    actions = ["revoke"]

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:  # noqa: ARG002 - see the docstring
        return False

    @admin.action(description="Revoke the selected tokens", permissions=["change"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
        live = list(tokens.filter(revoked_at=None))
        for token in live:
            token.revoke()
            record(AuditKind.TOKEN, f"revoked the token {token}")
        self.message_user(request, f"{len(live)} tokens revoked; they no longer work.")


class ArtifactRuleAdmin(UndeletableAdmin):
    """Artifact rules, the only rows that the admin can delete. The confirmation says what that changes."""

    list_display = (
        "kind",
        "path_glob",
        "line_pattern",
        "new_files_only",
        "least_characters",
        "weight",
        "scale",
        "cannot_work",
    )
    actions = None

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """The list, with the default rules whose least number of characters differs from this site's."""
        here = dict(ArtifactRule.objects.values_list("kind", "least_characters"))
        differing = [
            f"{rule.least_characters} in a {rule.kind} artifact (here {here[rule.kind]})"
            for rule in DEFAULT_RULES
            if here.get(rule.kind, rule.least_characters) != rule.least_characters
        ]
        return super().changelist_view(request, {**(extra_context or {}), "new_sites": ", ".join(differing)})

    @admin.display(description="Cannot work", empty_value="–")
    def cannot_work(self, rule: ArtifactRule) -> str:
        """What is wrong with the rule. While one rule cannot work, none does."""
        return rule.problem()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 - Django's
        return request.user.has_perm("grading.delete_artifactrule")

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> Any:
        """The confirmation, with the number of artifacts and sessions that the rule matched."""
        artifacts = Artifact.objects.filter(rule=str(self.get_object(request, object_id)))
        matched = artifacts.aggregate(artifacts=Count("pk"), sessions=Count("session", distinct=True))
        return super().delete_view(request, object_id, {**(extra_context or {}), "matched": matched})


class PersonAdmin(UserAdmin):  # type: ignore[type-arg] # the class takes none when it runs
    """Plain lists for groups and permissions: Django's two-box chooser fails people who hear the page."""

    filter_horizontal = ()
    formfield_overrides = DATE_TIME_FIELDS


class RoleAdmin(GroupAdmin):
    filter_horizontal = ()


class GradingAdminSite(admin.AdminSite):
    site_title = site_header = "gradingsite"
    site_url = None
    enable_nav_sidebar = False
    # The admin shares the root with the screens, so an unknown address is a plain 404.
    final_catch_all_view = False

    def get_urls(self) -> list[URLResolver | URLPattern]:
        """Django's URLs without `view_on_site`, whose redirect tells any member of staff whether a row exists."""
        return [page for page in super().get_urls() if getattr(page, "name", "") != "view_on_site"]


site = GradingAdminSite()
site.register(Agent, AgentAdmin)
site.register(ApiToken, ApiTokenAdmin)
site.register(ArtifactRule, ArtifactRuleAdmin)
site.register(User, PersonAdmin)
site.register(Group, RoleAdmin)
bandit.admin.register(site)
