"""How soon a fault is noticed: by a person who looks at a page, and by people who are notified outside the site."""

import re
import time
from collections.abc import Callable
from contextlib import suppress

import httpx2
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from benchmarks.drill.scene import Scene, Script
from benchmarks.drill.site import Site

# Seconds after a fault until every page shows it and until people are notified; after its end until no page shows it.
MAX_SHOWN_SECONDS, MAX_NOTIFIED_SECONDS, MAX_OVER_SECONDS = 30, 60, 120
# Seconds between two looks at a page; and for how long a fault's beginning is awaited.
LOOK_SECONDS, BEGIN_SECONDS = 0.3, 600


def reviewer_browser(site: Site, name: str = "rita") -> httpx2.Client:
    """A browser in which this reviewer has signed in."""
    person, is_new = User.objects.get_or_create(username=f"drill-{name}", defaults={"is_staff": True})
    if is_new:
        person.groups.set(Group.objects.filter(name="reviewer"))
    client = Client(SERVER_NAME="localhost")
    client.force_login(person)
    secret = "a" * 32
    cookies = {settings.SESSION_COOKIE_NAME: client.cookies[settings.SESSION_COOKIE_NAME].value}
    cookies |= {settings.CSRF_COOKIE_NAME: secret}
    return httpx2.Client(base_url=site.web, cookies=cookies, headers={"X-CSRFToken": secret}, timeout=20)


def page_shows(person: httpx2.Client, sign: str) -> bool:
    """Whether the top of every page says `sign`. False while no page comes."""
    with suppress(httpx2.TransportError):
        return bool(re.search(rf"\b{sign}\b", person.get("/sessions/").text.partition("<main")[0]))
    return False


def disappears(scene: Scene, sign: str) -> bool:
    """Wait until pages don't show the sign of an earlier fault, for so long at most. Returns whether they don't."""
    deadline = time.monotonic() + MAX_OVER_SECONDS
    with reviewer_browser(scene.site) as person:
        while page_shows(person, sign):
            if time.monotonic() > deadline:
                return False
            time.sleep(LOOK_SECONDS)
    return True


def watch_pages(scene: Scene, sign: str) -> Script:
    """A person who looks at a page again and again after the fault began, until it shows the fault's sign."""
    with reviewer_browser(scene.site) as person:
        yield from wait_for(lambda: scene.fault_at is not None, BEGIN_SECONDS)
        started = time.monotonic()
        while time.monotonic() < started + MAX_NOTIFIED_SECONDS:
            if page_shows(person, sign):
                scene.shown_at = timezone.now()
                return
            yield LOOK_SECONDS


def wait_until_noticed(scene: Scene) -> Script:
    """Until pages show the fault and people were notified, or the time for that is over."""
    yield from wait_for(lambda: scene.shown_at is not None and scene.notified_at is not None, MAX_NOTIFIED_SECONDS)


def unnoticed(scene: Scene, sign: str) -> list[str]:
    """What should have been noticed and was not in time; waits until then. Without `scene.rule` nobody is notified."""
    if scene.fault_at is None:
        return ["its fault never began"]
    while (
        scene.rule
        and scene.notified_at is None
        and (timezone.now() - scene.fault_at).total_seconds() < MAX_NOTIFIED_SECONDS
    ):
        time.sleep(LOOK_SECONDS)
    promises = (
        ("on every page", sign, scene.shown_at, MAX_SHOWN_SECONDS),
        ("notified", scene.rule, scene.notified_at, MAX_NOTIFIED_SECONDS),
    )
    broken = []
    for what, subject, at, limit in promises:
        seconds = None if at is None else (at - scene.fault_at).total_seconds()
        if subject and (seconds is None or seconds > limit):
            broken.append(f"{subject} was not {what} within {limit} s")
        if seconds is not None:
            scene.remarks.append(f"{what} after {seconds:.1f} s")
    return broken


def wait_for(condition: Callable[[], bool], seconds: float) -> Script:
    """Until the condition is true, for so long at most."""
    for _ in range(int(seconds / 0.2)):
        if condition():
            return
        yield 0.2
