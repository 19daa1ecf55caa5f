"""Who notices a fault, and how soon: somebody who looks at a page, and whoever is told outside the site."""

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

# Seconds after a fault until every page shows it, until people are told, and after its end until no page shows it.
ON_PAGES, TOLD, OVER = 30, 60, 120
# Seconds between two looks at a page; and how long a fault is waited for.
LOOKS, BEGINS = 0.3, 600


def browser(site: Site, name: str = "rita") -> httpx2.Client:
    """A reviewer who is logged in."""
    person, is_new = User.objects.get_or_create(username=f"drill-{name}", defaults={"is_staff": True})
    if is_new:
        person.groups.set(Group.objects.filter(name="reviewer"))
    known = Client(SERVER_NAME="localhost")
    known.force_login(person)
    secret = "a" * 32
    cookies = {settings.SESSION_COOKIE_NAME: known.cookies[settings.SESSION_COOKIE_NAME].value}
    cookies |= {settings.CSRF_COOKIE_NAME: secret}
    return httpx2.Client(base_url=site.web, cookies=cookies, headers={"X-CSRFToken": secret}, timeout=20)


def shows(person: httpx2.Client, sign: str) -> bool:
    """Whether these words stand on top of every page. No page shows nothing."""
    with suppress(httpx2.TransportError):
        return bool(re.search(rf"\b{sign}\b", person.get("/sessions/").text.partition("<main")[0]))
    return False


def over(scene: Scene, sign: str) -> bool:
    """Whether no page shows an earlier fault any more, or soon doesn't."""
    deadline = time.monotonic() + OVER
    with browser(scene.site) as person:
        while is_shown := shows(person, sign):
            if time.monotonic() > deadline:
                break
            time.sleep(LOOKS)
    return not is_shown


def looking(scene: Scene, sign: str) -> Script:
    """A person who looks at a page again and again, from the fault on, until it shows this sign of it."""
    with browser(scene.site) as person:
        yield from until(lambda: scene.fault_at is not None, BEGINS)
        began = time.monotonic()
        while time.monotonic() < began + TOLD:
            if shows(person, sign):
                scene.shown_at = timezone.now()
                return
            yield LOOKS


def noticed(scene: Scene) -> Script:
    """Until the fault is on the page and told, or the time for that is over."""
    yield from until(lambda: scene.shown_at is not None and scene.told_at is not None, TOLD)


def unnoticed(scene: Scene, sign: str) -> list[str]:
    """What should have been noticed and was not in time; waits until then. `scene.rule` is empty where none tells."""
    if scene.fault_at is None:
        return ["its fault never began"]
    while scene.rule and scene.told_at is None and (timezone.now() - scene.fault_at).total_seconds() < TOLD:
        time.sleep(LOOKS)
    promised = {"on every page": (sign, scene.shown_at, ON_PAGES), "told": (scene.rule, scene.told_at, TOLD)}
    broken = []
    for what, (wanted, at, limit) in promised.items():
        seconds = None if at is None else (at - scene.fault_at).total_seconds()
        if wanted and (seconds is None or seconds > limit):
            broken.append(f"{wanted} was not {what} within {limit} s")
        if seconds is not None:
            scene.remarks.append(f"{what} after {seconds:.1f} s")
    return broken


def until(holds: Callable[[], bool], seconds: float) -> Script:
    """Waits for something, but not for ever."""
    for _ in range(int(seconds / 0.2)):
        if holds():
            return
        yield 0.2
