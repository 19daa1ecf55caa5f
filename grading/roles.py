"""The three roles, which are groups: viewers read, reviewers correct, operators also run the site."""

from typing import Any

VIEWER, REVIEWER, OPERATOR = "viewer", "reviewer", "operator"

_GRADING_MODELS = [
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
_BANDIT_MODELS = [
    "bandit",
    "arm",
    "armalias",
    "grader",
    "ledgerentry",
    "bucket",
    "selection",
    "erasure",
    "calibrationversion",
    "policyversion",
    "armevent",
    "assignment",
]

# App label and codename by role. Each role also has the permissions of the roles before it.
PERMISSIONS: dict[str, list[tuple[str, str]]] = {
    VIEWER: [
        *[("grading", f"view_{name}") for name in _GRADING_MODELS],
        *[("bandit", f"view_{name}") for name in _BANDIT_MODELS],
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
        ("grading", "change_project"),
        ("grading", "change_reviewitem"),
        ("grading", "change_modelprice"),
        ("grading", "change_repository"),
        ("grading", "delete_session"),
        ("grading", "delete_artifactrule"),
        *[("grading", f"{verb}_categoryrule") for verb in ("add", "change", "delete")],
        *[("bandit", f"{verb}_{name}") for verb in ("add", "change") for name in ("arm", "armalias", "bandit")],
    ],
}


def sync_roles(sender: Any, **kwargs: Any) -> None:  # noqa: ARG001 - Django's signature
    """Give each group exactly its permissions. Runs after each migrate, when the permissions exist."""
    from django.contrib.auth.models import Group, Permission

    permissions = list(Permission.objects.select_related("content_type"))
    names: set[tuple[str, str]] = set()
    for role in (VIEWER, REVIEWER, OPERATOR):
        names.update(PERMISSIONS[role])
        group, _created = Group.objects.get_or_create(name=role)
        group.permissions.set(row for row in permissions if (row.content_type.app_label, row.codename) in names)
