"""The three roles, as groups: viewer reads, reviewer corrects, operator also runs the site."""

from typing import Any

VIEWER, REVIEWER, OPERATOR = "viewer", "reviewer", "operator"

_EVERYTHING = [
    "agent",
    "artifact",
    "artifactrule",
    "categoryrule",
    "evidence",
    "flag",
    "alarm",
    "grade",
    "settlement",
    "judgejob",
    "judgeattempt",
    "quota",
    "quotatransition",
    "rubric",
    "session",
    "reviewitem",
    "reviewanswer",
    "comment",
    "sessionlesson",
]
_BANDIT = [
    "bandit",
    "arm",
    "armalias",
    "grader",
    "ledgerentry",
    "bucket",
    "selection",
    "erasure",
    "rectifier",
    "calibrationversion",
    "policyversion",
    "armevent",
    "assignment",
]

# Codenames by role; a role holds those of the roles before it.
PERMISSIONS: dict[str, list[tuple[str, str]]] = {
    VIEWER: [
        *[("grading", f"view_{name}") for name in _EVERYTHING],
        *[("bandit", f"view_{name}") for name in _BANDIT],
        ("grading", "add_savedview"),
    ],
    REVIEWER: [
        *[("grading", f"add_{name}") for name in ("grade", "comment", "flag")],
        *[("grading", f"change_{name}") for name in ("flag", "alarm")],
    ],
    OPERATOR: [
        *[("grading", f"{verb}_{name}") for verb in ("add", "change") for name in ("agent", "artifactrule", "rubric")],
        *[("grading", f"{verb}_apitoken") for verb in ("view", "add", "change")],
        ("grading", "view_auditevent"),
        ("grading", "view_logimport"),
        ("grading", "change_quota"),
        ("grading", "change_reviewitem"),
        ("grading", "delete_session"),
        ("grading", "delete_artifactrule"),
        *[("grading", f"{verb}_categoryrule") for verb in ("add", "change", "delete")],
        *[("bandit", f"{verb}_{name}") for verb in ("add", "change") for name in ("arm", "armalias", "bandit")],
    ],
}


def sync_roles(sender: Any, **kwargs: Any) -> None:  # noqa: ARG001 - Django's signature
    """Make the groups hold exactly their permissions. Runs after each migrate, when the permissions exist."""
    from django.contrib.auth.models import Group, Permission

    held: list[tuple[str, str]] = []
    for role in (VIEWER, REVIEWER, OPERATOR):
        held += PERMISSIONS[role]
        group, _created = Group.objects.get_or_create(name=role)
        wanted = set(held)
        group.permissions.set(
            permission
            for permission in Permission.objects.select_related("content_type")
            if (permission.content_type.app_label, permission.codename) in wanted
        )
