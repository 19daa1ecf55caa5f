"""Agents, tokens, rules and people: ordinary model admins with the site's look."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

import bandit.admin
from bandit.admin import MOMENTS, KeepAdmin
from grading.models import Agent, ApiToken, ArtifactRule


class AgentAdmin(KeepAdmin):
    list_display = ["name", "title", "is_sample", "created_at"]
    search_fields = ["name", "title"]


class ApiTokenAdmin(KeepAdmin):
    """Tokens are issued on the connect page, where the secret is shown once; here they are looked at and revoked."""

    list_display = ["agent", "hint", "note", "created_by", "created_at", "last_used_at", "revoked_at"]
    list_select_related = ["agent", "created_by"]
    list_filter = ["agent"]
    readonly_fields = ["agent", "hint", "created_by", "created_at", "last_used_at"]
    fields = ["agent", "hint", "note", "created_by", "created_at", "last_used_at", "revoked_at"]
    actions = ["revoke"]

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:  # noqa: ARG002 - see the docstring
        return False

    @admin.action(description="Revoke the selected tokens", permissions=["change"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
        count = tokens.filter(revoked_at=None).update(revoked_at=timezone.now())
        self.message_user(request, f"{count} tokens revoked: they open nothing any more.")


class ArtifactRuleAdmin(KeepAdmin):
    list_display = ["kind", "path_glob", "line_pattern", "new_files_only", "least_characters", "weight", "scale"]


class PersonAdmin(UserAdmin):  # type: ignore[type-arg] # the class takes none when it runs
    """Plain lists for groups and permissions: Django's two-box chooser fails people who hear the page."""

    filter_horizontal = ()
    formfield_overrides = MOMENTS


class RoleAdmin(GroupAdmin):
    filter_horizontal = ()


def register(site: admin.AdminSite) -> None:
    site.register(Agent, AgentAdmin)
    site.register(ApiToken, ApiTokenAdmin)
    site.register(ArtifactRule, ArtifactRuleAdmin)
    site.register(User, PersonAdmin)
    site.register(Group, RoleAdmin)
    bandit.admin.register(site)
