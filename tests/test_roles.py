"""The roles themselves. What each opens and does, at every address: `test_roles_matrix.py`."""

import pytest
from django.contrib.auth.models import Group, Permission

from grading.roles import OPERATOR, PERMISSIONS, REVIEWER, VIEWER

pytestmark = pytest.mark.django_db


def held(role: str) -> set[tuple[str, str]]:
    permissions = Group.objects.get(name=role).permissions
    return set(permissions.values_list("content_type__app_label", "codename"))


def test_every_permission_of_the_roles_exists():
    known = set(Permission.objects.values_list("content_type__app_label", "codename"))
    assert {wanted for role in PERMISSIONS.values() for wanted in role} <= known


def test_each_role_holds_what_those_before_it_hold():
    assert held(VIEWER) < held(REVIEWER) < held(OPERATOR)


def test_no_role_touches_users_groups_or_what_is_append_only():
    assert not [name for app, name in held(OPERATOR) if app in {"auth", "admin"}]
    written = {
        "settlement",
        "reviewanswer",
        "reveal",
        "judgeattempt",
        "ledgerentry",
        "bucket",
        "calibrationversion",
        "erasure",
    }
    verbs = ("add", "change", "delete")
    assert not {f"{verb}_{name}" for verb in verbs for name in written} & {name for _app, name in held(OPERATOR)}
