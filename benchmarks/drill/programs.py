"""What happens to the site's own programs, its database and its disk, while agents send and people correct."""

import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx2
from django.conf import settings
from django.core.files.storage import default_storage
from django.db import Error, connection

from benchmarks.drill.noticing import browser, noticed, over
from benchmarks.drill.scene import Scene, Script
from benchmarks.drill.site import BROKER, JUDGE, WEB, WORKERS, Site
from grading.evidence import store
from grading.health.liveness import Component
from grading.models import Evidence, Heartbeat, Session
from grading.reward import rewards
from grading.vocabulary import Source

# Heartbeats of the web server's two processes after which they may say of the others that they stand still.
SETTLED = 36
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


def uploading(scene: Scene, count: int | None = None) -> Script:
    """An agent that hands in sessions, whatever happens to the site."""
    if count is None:
        count = 12 if scene.quick else 36

    def act() -> None:
        for _ in range(count):
            scene.stream.send()

    yield from meanwhile(act, scene)


def correcting(scene: Scene, count: int = 6, people: Sequence[str] = ("rita",)) -> Script:
    """People who grade sessions of earlier phases, all of them the same one at a time, each until there is an answer;
    what was answered holds.
    """
    chosen = list(Session.objects.filter(external_id__startswith="drill-").order_by("pk").values_list("pk", flat=True))
    chosen = [pk for pk in chosen if pk not in scene.site.corrected][:count]

    def act() -> None:
        with ExitStack() as stack, ThreadPoolExecutor(len(people)) as hands:
            browsers = [stack.enter_context(browser(scene.site, name)) for name in people]
            for pk in chosen:
                if any([*hands.map(partial(until_answered, pk=pk), browsers)]):
                    scene.site.corrected.add(pk)

    yield from meanwhile(act, scene)
    taken = scene.site.corrected & set(chosen)
    for session in Session.objects.filter(pk__in=taken):
        held = rewards.live(session)
        if held is None or (held.source, held.value) != (Source.HUMAN, CORRECTED):
            scene.broken.append(f"a correction of {session.external_id} was answered and does not hold")
    scene.remarks.append(f"{len(taken)} corrections")
    if len(taken) < len(chosen):
        scene.remarks.append(f"{len(chosen) - len(taken)} refused")


disagreeing = partial(correcting, people=("rita", "ruth", "rolf", "rosa"))


def until_answered(person: httpx2.Client, pk: int) -> bool:
    """Whether it was taken; False where it was refused in words, for somebody else is at the session, say.

    Raises TimeoutError where no answer comes, and RuntimeError where it is that of a bug.
    """
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
            return status < 400  # noqa: PLR2004 - it leads on to the next
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
    for _ in range(3 if scene.quick else 12):
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
    yield from watched_for_long(scene)
    scene.fault()
    for name in WORKERS:
        scene.site.freeze(name)
    yield from noticed(scene)
    for name in WORKERS:
        scene.site.thaw(name)
    scene.need(over(scene, scene.rule), "what goes on again is still said to stand still")


def away(scene: Scene, name: str) -> Script:
    """A program is gone, and back once that was noticed."""
    yield from watched_for_long(scene)
    scene.fault()
    scene.site.kill(name)
    yield from noticed(scene)
    scene.site.start(name)


broker_away = partial(away, name=BROKER)
# It ends with its worker; the other worker goes on, and nobody tells it what is due.
scheduler_away = partial(away, name=WORKERS[1])


def watched_for_long(scene: Scene) -> Script:
    """Until the web server has had an eye on the others for so long that it may judge them. Not for ever."""
    before = beats()
    for _ in range(600):
        if beats() - before > SETTLED:
            return
        yield settings.HEARTBEAT_SECONDS / 4
    scene.broken.append("the web server has no heartbeat")


def beats() -> int:
    return Heartbeat.objects.filter(name=Component.WEB).values_list("count", flat=True).first() or 0


# --- the disk --------------------------------------------------------------------------------------------------------


def disk_full(scene: Scene) -> Script:
    """The web server may write no byte more, as on a disk that is full; then there is room again."""
    scene.fault()
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
