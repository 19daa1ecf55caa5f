"""What happens to the site's own programs, its database and its disk, while agents send and people correct."""

import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx2
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.files.storage import default_storage
from django.db import Error, connection
from django.test import Client

from benchmarks.drill.scene import Scene, Script
from benchmarks.drill.site import JUDGE, WEB, WORKERS, Site
from grading.evidence import store
from grading.models import Evidence, Heartbeat, Session
from grading.reward import rewards
from grading.vocabulary import Source

# In heartbeats: what stands still is on every page after so many, and told after so many.
ON_SCREEN, TOLD = 6, 12
UNAVAILABLE = 503
CORRECTED = 0.37


# --- people and agents, each in a thread of its own ------------------------------------------------------------------


def meanwhile(act: Callable[[], None], scene: Scene) -> Script:
    """Until the act is done in a thread of its own; what it raises is a broken promise."""

    def work() -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - whatever it is, it was promised not to be
            scene.broken.append(f"{type(error).__name__}: {error}")
        finally:
            connection.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        yield 0.1


def uploading(scene: Scene, count: int = 12) -> Script:
    """An agent that hands in sessions, whatever happens to the site."""

    def act() -> None:
        for _ in range(count):
            scene.stream.send()

    yield from meanwhile(act, scene)


def browser(site: Site, role: str = "reviewer") -> httpx2.Client:
    """A person who is logged in."""
    person, is_new = User.objects.get_or_create(username=f"drill-{role}", defaults={"is_staff": True})
    if is_new:
        person.groups.set(Group.objects.filter(name=role))
    known = Client()
    known.force_login(person)
    secret = "a" * 32
    cookies = {settings.SESSION_COOKIE_NAME: known.cookies[settings.SESSION_COOKIE_NAME].value}
    cookies |= {settings.CSRF_COOKIE_NAME: secret}
    return httpx2.Client(base_url=site.web, cookies=cookies, headers={"X-CSRFToken": secret}, timeout=20)


def correcting(scene: Scene, count: int = 6) -> Script:
    """A person who grades sessions of earlier phases, each until there is an answer; what was answered holds."""
    chosen = list(Session.objects.filter(external_id__startswith="drill-").order_by("pk").values_list("pk", flat=True))
    chosen = [pk for pk in chosen if pk not in scene.site.corrected][:count]

    def act() -> None:
        with browser(scene.site) as person:
            for pk in chosen:
                until_answered(person, pk)
                scene.site.corrected.add(pk)

    yield from meanwhile(act, scene)
    for session in Session.objects.filter(pk__in=chosen):
        held = rewards.live(session)
        if held is None or (held.source, held.value) != (Source.HUMAN, CORRECTED):
            scene.broken.append(f"a correction of {session.external_id} was answered and does not hold")
    scene.remarks.append(f"{len(chosen)} corrections")


def until_answered(person: httpx2.Client, pk: int) -> None:
    """Raises TimeoutError where no answer comes, and RuntimeError where it is that of a bug."""
    deadline = time.monotonic() + 60
    said = {"answer": "grade", "value": str(CORRECTED), "reason": "drill"}
    while time.monotonic() < deadline:
        try:
            status = person.post(f"/review/{pk}/answer/", data=said).status_code
        except httpx2.TransportError:
            status = UNAVAILABLE
        if status == 500:  # noqa: PLR2004
            raise RuntimeError("a correction was answered with a 500")
        if status < UNAVAILABLE:
            return
        time.sleep(0.3)
    raise TimeoutError("a correction was not answered within a minute")


# --- our own programs ------------------------------------------------------------------------------------------------


def web_killed(scene: Scene) -> Script:
    for _ in range(2 if scene.quick else 5):
        yield scene.rng.uniform(0.5, 3)
        scene.site.kill(WEB)
        scene.site.start(WEB)
    yield 1


def all_killed(scene: Scene) -> Script:
    """The supervisor is killed, so that the kernel ends all that it had started; later somebody starts it again."""
    yield 1.5
    end_all(scene.site)
    yield 0.5
    begin_all(scene.site)
    yield 1


def end_all(site: Site) -> None:
    """As the kernel ends what a supervisor had started. The judge is somebody else's."""
    for name in site.programs:
        if name != JUDGE:
            site.kill(name)


def begin_all(site: Site) -> None:
    for name in site.programs:
        if name != JUDGE:
            site.start(name)


def database_killed(scene: Scene) -> Script:
    """PostgreSQL ends all its connections and recovers from its log once one of its processes is killed."""
    if connection.vendor != "postgresql":
        return
    for _ in range(3):
        yield scene.rng.uniform(0.5, 2)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
            processes = [pid for (pid,) in cursor.fetchall()]
        os.kill(scene.rng.choice(processes), signal.SIGKILL)
        try:  # until it has ended ours too: a connection made earlier would be ended with the others
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_sleep(30)")
        except Error:
            connection.close()
        for _attempt in range(300):
            try:
                connection.ensure_connection()
                break
            except Error:
                time.sleep(0.1)


def frozen(scene: Scene) -> Script:
    """Workers and scheduler stand still: on every page, told outside, and over by itself once they go on."""
    every = settings.HEARTBEAT_SECONDS
    with closing(Listener()) as hook, browser(scene.site) as person:
        before = dict(Heartbeat.objects.values_list("name", "count"))
        for _ in range(600):  # until the web server has watched for long enough
            now = dict(Heartbeat.objects.values_list("name", "count"))
            if now.get("web", 0) - before.get("web", 0) > 2 * (ON_SCREEN + TOLD):
                break
            yield every / 4
        for name in WORKERS:
            scene.site.freeze(name)
        began = time.monotonic()
        waits = {
            "on the screen": (ON_SCREEN, lambda: "stands still" in shown(person) or "stand still" in shown(person)),
            "told": (TOLD, lambda: any("stands still" in body for body in hook.bodies)),
        }
        for what, (beats, is_so) in waits.items():
            while not is_so() and time.monotonic() - began < 2 * TOLD * every:
                yield every / 10
            seconds = time.monotonic() - began
            scene.remarks.append(f"{what} after {seconds:.1f} s")
            if seconds > beats * every:
                scene.broken.append(f"what stood still was {what} after {seconds:.1f} s, not {beats * every:g}")
        for name in WORKERS:
            scene.site.thaw(name)
        while "still" in shown(person) and time.monotonic() - began < 4 * TOLD * every:
            yield every / 4
        if "still" in shown(person):
            scene.broken.append("what goes on again is still said to stand still")


def shown(person: httpx2.Client) -> str:
    """The top of a page."""
    return person.get("/sessions/").text.partition("</header>")[0]


class Listener(HTTPServer):
    """Where notices go."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", int(settings.NOTIFY_WEBHOOK.rpartition(":")[2].strip("/"))), HeardNotice)
        self.bodies: list[str] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class HeardNotice(BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_said: Any) -> None:
        """Not between the drill's own lines."""


# --- the disk --------------------------------------------------------------------------------------------------------


def disk_full(scene: Scene) -> Script:
    """The web server may write no byte more, as on a disk that is full; then there is room again."""
    room(scene.site, is_left=False)
    upload = uploading(scene, 4)
    until = time.monotonic() + scene.pause(6)
    for wait in upload:
        if time.monotonic() > until:
            room(scene.site, is_left=True)
        yield wait
    room(scene.site, is_left=True)
    if not scene.stream.refused[UNAVAILABLE]:
        scene.broken.append("no upload was told that the disk is full")
    scene.remarks.append(f"{scene.stream.refused[UNAVAILABLE]} uploads told to come again")


def room(site: Site, *, is_left: bool) -> None:
    limit = (resource.RLIM_INFINITY if is_left else 0, resource.RLIM_INFINITY)
    for process in family(site.running[WEB].pid):
        resource.prlimit(process, resource.RLIMIT_FSIZE, limit)


def family(process: int) -> Iterator[int]:
    yield process
    for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
        yield from family(int(child))


def truncated(scene: Scene) -> Script:
    """A blob loses its end; the agent sends the same once more, and it is whole again."""
    scene.stream.send()
    for row in Evidence.objects.filter(session__external_id=scene.stream.accepted[-1]):
        path = Path(default_storage.path(f"{row.sha256[:2]}/{row.sha256}.zst"))
        os.truncate(path, path.stat().st_size // 2)
    yield 0.5
    scene.stream.send_again(1)


def power_cut(scene: Scene) -> Script:
    """Everything ends at once, and of files that nobody brought to the disk only the names are left."""
    for _ in range(3):
        scene.stream.send()
    yield 0.1
    end_all(scene.site)
    synced = {int(line) for line in Path(os.environ["DRILL_SYNCED"]).read_text().split()}
    for path in Path(settings.MEDIA_ROOT).glob("??/*.zst"):
        if path.stat().st_ino not in synced:
            os.truncate(path, 0)
    begin_all(scene.site)
    yield 1


def damaged() -> list[str]:
    """Stored evidence that is not what was stored."""
    hashes: Iterable[str] = Evidence.objects.order_by().values_list("sha256", flat=True).distinct()
    return [f"the stored file {sha256[:12]} is {what}" for sha256 in hashes if (what := store.damage(sha256))]
