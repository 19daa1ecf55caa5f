"""Signal receivers that write audit events of sign-ins, users and roles. Connected when the app is ready."""

import datetime as dt
from collections.abc import Collection, Mapping
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authentication_failed, authenticator_added, authenticator_removed
from django.contrib.auth.models import Group, Permission, User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db.models.signals import m2m_changed, post_save, pre_delete, pre_save
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone

from grading.access.recording import CONSOLE, actor, record
from grading.access.sessions import LAST_USED
from grading.models.audit import AuditEvent, AuditKind
from gradingsite.clients import client_address

# Failed sign-ins that are listed in an hour, of one address and in all, so that guessing doesn't fill the table.
MAX_FAILED_OF_ADDRESS, MAX_FAILED = 20, 200
FAILED = "failed to sign in"
UNLISTED = "failed to sign in too often to list each: no more are listed for a while"
AUDITED_COLUMNS = {
    "username": "name",
    "email": "address",
    "is_active": "active",
    "is_staff": "staff",
    "is_superuser": "superuser",
}


@receiver(user_logged_in)
def signed_in(request: HttpRequest, user: User, **_kwargs: Any) -> None:
    request.session[LAST_USED] = int(timezone.now().timestamp())
    record(AuditKind.SIGN_IN, "signed in", who=user.get_username(), request=request)


@receiver(user_logged_out)
def signed_out(request: HttpRequest, user: User | None, **_kwargs: Any) -> None:
    if user:
        record(AuditKind.SIGN_IN, "signed out", who=user.get_username(), request=request)


@receiver(user_login_failed)
def failed(credentials: Mapping[str, Any], request: HttpRequest | None = None, **_kwargs: Any) -> None:
    """Record a failed sign-in with the name that was typed. It may be a password, so only operators see the event."""
    if getattr(request, "seconds_to_wait", 0):  # refused by `delays` without checking the password
        return
    recent = AuditEvent.objects.filter(
        at__gte=timezone.now() - dt.timedelta(hours=1), kind=AuditKind.SIGN_IN, what__startswith=FAILED
    )
    address = client_address(request.META) if request else ""
    count_of_address, count = recent.filter(address=address).count(), recent.count()
    if count_of_address < MAX_FAILED_OF_ADDRESS and count < MAX_FAILED:
        name = str(credentials.get("username", ""))[:80]
        record(AuditKind.SIGN_IN, f"{FAILED} as “{name}”", who="", request=request)
    elif count_of_address == MAX_FAILED_OF_ADDRESS or count == MAX_FAILED:
        record(AuditKind.SIGN_IN, UNLISTED, who="", request=request)


@receiver(authenticator_added)
def second_factor_added(user: User, authenticator: Authenticator, **_kwargs: Any) -> None:
    record(AuditKind.SIGN_IN, f"set up a second factor: {authenticator}", who=user.get_username())


@receiver(authenticator_removed)
def second_factor_removed(user: User, authenticator: Authenticator, **_kwargs: Any) -> None:
    record(AuditKind.SIGN_IN, f"removed a second factor: {authenticator}", who=user.get_username())


@receiver(authentication_failed)
def second_factor_failed(user: User, **_kwargs: Any) -> None:
    record(AuditKind.SIGN_IN, f"gave the right password of {user.get_username()} and a wrong code", who="")


@receiver(pre_save, sender=User)
def before_change(instance: User, update_fields: Collection[str] | None = None, **_kwargs: Any) -> None:
    before = None
    if instance.pk and (update_fields is None or set(update_fields) & set(AUDITED_COLUMNS)):
        before = User.objects.filter(pk=instance.pk).values(*AUDITED_COLUMNS).first()
    instance._before = before  # type: ignore[attr-defined] # noqa: SLF001 - for `changed`


@receiver(post_save, sender=User)
def changed(instance: User, created: bool, raw: bool, **_kwargs: Any) -> None:  # noqa: FBT001 - Django's
    if raw:
        return
    name = instance.get_username()
    before: dict[str, Any] = getattr(instance, "_before", None) or {}
    if created:
        detail = "a superuser" if instance.is_superuser else ""
        record(AuditKind.PERSON, f"made the user {name}", detail=detail)
        return
    if instance._password is not None:  # type: ignore[attr-defined] # noqa: SLF001 - set by set_password, not by a rehash
        record(AuditKind.PERSON, f"set the password of {name}")
    texts = {True: "yes", False: "no", "": "none"}
    changes = []
    for column, label in AUDITED_COLUMNS.items():
        value = getattr(instance, column)
        if column in before and before[column] != value:
            changes.append(f"{label}: {texts.get(before[column], before[column])} → {texts.get(value, value)}")
    if changes:
        record(AuditKind.PERSON, f"changed the user {before['username']}", detail="; ".join(changes))


@receiver(pre_delete, sender=User)
@receiver(pre_delete, sender=Group)
def deleted(instance: User | Group, **_kwargs: Any) -> None:
    what = "user" if isinstance(instance, User) else "role"
    record(AuditKind.PERSON, f"deleted the {what} {instance}")


@receiver(m2m_changed, sender=User.groups.through)
@receiver(m2m_changed, sender=User.user_permissions.through)
@receiver(m2m_changed, sender=Group.permissions.through)
def roles_changed(
    instance: User | Group,
    action: str,
    reverse: bool,  # noqa: FBT001 - Django's
    model: type[Group | Permission | User],
    pk_set: set[int] | None,
    **kwargs: Any,
) -> None:
    """Record that a role or permission was given or taken, except for permissions that migrations give to roles."""
    verb = {"post_add": "gave", "post_remove": "took", "pre_clear": "took"}.get(action)
    is_of_role = kwargs["sender"] is Group.permissions.through
    if verb is None or pk_set == set() or (is_of_role and actor() == CONSOLE):
        return
    others = "all" if pk_set is None else ", ".join(map(str, model.objects.filter(pk__in=pk_set)))
    names, holder = (str(instance), others) if reverse else (others, str(instance))
    kind = "the role" if kwargs["sender"] is User.groups.through else "the permission"
    record(AuditKind.PERSON, f"{verb} {kind} {names} {'to' if verb == 'gave' else 'from'} {holder}")
