"""Faults of the site's own programs, its database and its disk, while agents submit and people correct."""

import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx2
from django.conf import settings
from django.core.files.storage import default_storage
from django.db import Error, connection

from benchmarks import scratch
from benchmarks.drill.noticing import disappears, reviewer_browser, wait_until_noticed
from benchmarks.drill.scene import Scene, Script
from benchmarks.drill.site import BROKER, JUDGE, WEB, WORKERS, Site
from grading.evidence import store
from grading.health.liveness import Component
from grading.models import Evidence, Heartbeat, Session
from grading.reward import rewards
from grading.vocabulary import Source

# Heartbeats of the web server's two processes after which they may call other programs stopped.
WATCHED_BEATS = 36
UNAVAILABLE = 503
CORRECTED_VALUE = 0.37


# People and agents, each in a thread of its own


def run_in_thread(act: Callable[[], None], scene: Scene) -> Script:
    """Call `act` in a thread and wait for it. An exception is a broken promise."""

    def work() -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - none is allowed
            scene.broken.append(f"{type(error).__name__}: {error}")
        finally:
            connection.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        yield 0.1


def keep_uploading(scene: Scene, count: int | None = None) -> Script:
    """An agent that submits sessions, whatever happens to the site."""
    if count is None:
        count = 12 if scene.quick else 36

    def act() -> None:
        for _ in range(count):
            scene.stream.send()

    yield from run_in_thread(act, scene)


def keep_correcting(scene: Scene, count: int = 6, people: Sequence[str] = ("rita",)) -> Script:
    """People who grade sessions of earlier phases, all of them the same one at a time, each until there is an answer.
    A correction that was accepted must be the session's reward.
    """
    chosen = list(Session.objects.filter(external_id__startswith="drill-").order_by("pk").values_list("pk", flat=True))
    chosen = [pk for pk in chosen if pk not in scene.site.corrected][:count]

    def act() -> None:
        with ExitStack() as stack, ThreadPoolExecutor(len(people)) as hands:
            browsers = [stack.enter_context(reviewer_browser(scene.site, name)) for name in people]
            for pk in chosen:
                if any([*hands.map(partial(correct_until_answered, pk=pk), browsers)]):
                    scene.site.corrected.add(pk)

    yield from run_in_thread(act, scene)
    accepted = scene.site.corrected & set(chosen)
    for session in Session.objects.filter(pk__in=accepted):
        reward = rewards.live(session)
        if reward is None or (reward.source, reward.value) != (Source.HUMAN, CORRECTED_VALUE):
            scene.broken.append(f"a correction of {session.external_id} was accepted and is not its reward")
    scene.remarks.append(f"{len(accepted)} corrections")
    if len(accepted) < len(chosen):
        scene.remarks.append(f"{len(chosen) - len(accepted)} refused")


four_people_correcting = partial(keep_correcting, people=("rita", "ruth", "rolf", "rosa"))


def correct_until_answered(person: httpx2.Client, pk: int) -> bool:
    """Whether the correction was accepted. False if it was refused, for example because somebody else has the session.

    Raises TimeoutError if no answer comes, and RuntimeError if it is a 500.
    """
    deadline = time.monotonic() + 60
    answer = {"answer": "grade", "value": str(CORRECTED_VALUE), "reason": "drill"}
    while time.monotonic() < deadline:
        try:
            status = person.post(f"/review/{pk}/answer/", data=answer).status_code
        except httpx2.TransportError:
            status = UNAVAILABLE
        if status == 500:  # noqa: PLR2004
            raise RuntimeError("a correction was answered with a 500")
        if status < UNAVAILABLE:
            return status < 400  # noqa: PLR2004 - a redirect to the next session
        time.sleep(0.3)
    raise TimeoutError("a correction was not answered within a minute")


# Our own programs


def web_killed(scene: Scene) -> Script:
    for _ in range(2 if scene.quick else 5):
        yield scene.rng.uniform(0.5, 3)
        scene.site.kill(WEB)
        scene.site.start(WEB)
    yield 1


def all_killed(scene: Scene) -> Script:
    """The supervisor is killed, so the kernel ends all that it had started; later somebody starts it again."""
    yield 1.5
    kill_all(scene.site)
    yield 0.5
    start_all(scene.site)
    yield 1


def kill_all(site: Site) -> None:
    """Kill all programs but the judge, which is another company's."""
    for name in site.programs:
        if name != JUDGE:
            site.kill(name)


def start_all(site: Site) -> None:
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
        try:  # until this connection is ended too; one that was opened before would end with it
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
    """Workers and scheduler are suspended: shown on every page, people are notified, and over once they go on."""
    yield from wait_until_watched(scene)
    scene.begin_fault()
    for name in WORKERS:
        scene.site.freeze(name)
    yield from wait_until_noticed(scene)
    for name in WORKERS:
        scene.site.thaw(name)
    scene.need(disappears(scene, scene.rule), "programs that run again are still called stopped")


def program_away(scene: Scene, name: str) -> Script:
    """A program is killed, and started again once that was noticed."""
    yield from wait_until_watched(scene)
    scene.begin_fault()
    scene.site.kill(name)
    yield from wait_until_noticed(scene)
    scene.site.start(name)


broker_away = partial(program_away, name=BROKER)
# The scheduler ends with its worker. The other worker goes on, and nothing tells it what is due.
scheduler_away = partial(program_away, name=WORKERS[1])


def wait_until_watched(scene: Scene) -> Script:
    """Until the web server has watched the other programs for so long that it may call them stopped."""
    before = count_beats()
    for _ in range(600):
        if count_beats() - before > WATCHED_BEATS:
            return
        yield settings.HEARTBEAT_SECONDS / 4
    scene.broken.append("the web server has no heartbeat")


def count_beats() -> int:
    return Heartbeat.objects.filter(name=Component.WEB).values_list("count", flat=True).first() or 0


# The disk


def disk_full(scene: Scene) -> Script:
    """The web server can't write another byte, as on a full disk; then there is room again."""
    scene.begin_fault()
    set_disk_room(scene.site, is_left=False)
    upload = keep_uploading(scene, 4)
    until = time.monotonic() + scene.pause(6)
    for wait in upload:
        if time.monotonic() > until:
            set_disk_room(scene.site, is_left=True)
        yield wait
    set_disk_room(scene.site, is_left=True)
    if not scene.stream.server_errors[UNAVAILABLE]:
        scene.broken.append("no upload was answered with a 503 while the disk was full")
    scene.remarks.append(f"{scene.stream.server_errors[UNAVAILABLE]} uploads answered with a 503")


def set_disk_room(site: Site, *, is_left: bool) -> None:
    limit = (resource.RLIM_INFINITY if is_left else 0, resource.RLIM_INFINITY)
    for process in scratch.process_tree(site.running[WEB].pid):
        resource.prlimit(process, resource.RLIMIT_FSIZE, limit)


def truncated(scene: Scene) -> Script:
    """A blob loses its end. The agent sends the session again, and the blob is whole again."""
    scene.stream.send()
    for row in Evidence.objects.filter(session__external_id=scene.stream.accepted[-1]):
        path = Path(default_storage.path(f"{row.sha256[:2]}/{row.sha256}.zst"))
        os.truncate(path, path.stat().st_size // 2)
    yield 0.5
    scene.stream.send_again(1)


def power_cut(scene: Scene) -> Script:
    """Everything ends at once, and of files that were not synced only the names are left."""
    for _ in range(3):
        scene.stream.send()
    yield 0.1
    kill_all(scene.site)
    synced = {int(line) for line in Path(os.environ["DRILL_SYNCED"]).read_text().split()}
    for path in Path(settings.MEDIA_ROOT).glob("??/*.zst"):
        if path.stat().st_ino not in synced:
            os.truncate(path, 0)
    start_all(scene.site)
    yield 1


def damaged_evidence() -> list[str]:
    """A sentence for each stored file that is missing or damaged."""
    hashes: Iterable[str] = Evidence.objects.order_by().values_list("sha256", flat=True).distinct()
    return [f"the stored file {sha256[:12]} is {what}" for sha256 in hashes if (what := store.damage(sha256))]
