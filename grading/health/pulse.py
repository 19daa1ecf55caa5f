"""A process's heartbeat, in a thread that also observes those of the others. Started after the process was forked."""

import datetime as dt
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.db import Error, connection
from django.db.models import F
from django.utils import timezone

from grading import disk
from grading.health.liveness import Component, Life, Liveness
from grading.models import Heartbeat
from grading.models.health import FORGOTTEN

logger = logging.getLogger(__name__)

# Observations of the others for each heartbeat of its own.
OBSERVATIONS = 2


def beat(parts: Iterable[Component]) -> None:
    """Increment this host's counters of these parts, and record its free disk space.

    One statement for each part, outside of any transaction.
    """
    for part in parts:
        figures = {"beat_at": timezone.now(), "disk_free": disk.free(), "disk_floor": disk.floor()}
        row = Heartbeat.objects.filter(name=part, host=settings.HOST_NAME)
        if not row.update(count=F("count") + 1, **figures):
            Heartbeat.objects.get_or_create(name=part, host=settings.HOST_NAME, defaults={"count": 1, **figures})


def forget(part: Component) -> None:
    """Delete this host's counter of a part that ends on purpose, so that no alarm opens."""
    with suppress(Error):
        Heartbeat.objects.filter(name=part, host=settings.HOST_NAME).delete()


def counts() -> Mapping[str, int]:
    """By part, the sum of all hosts' counters. If a part runs on several hosts, also each host's, as `part@host`.

    A host without a heartbeat for a day has no counter of its own.
    """
    rows = list(Heartbeat.objects.values_list("name", "host", "count", "beat_at"))
    totals = Counter[str]()
    for name, _host, count, _beat_at in rows:
        totals[name] += count
    since = timezone.now() - FORGOTTEN
    recent = [(name, host, count) for name, host, count, beat_at in rows if beat_at and beat_at > since]
    hosts = Counter(name for name, _host, _count in recent)
    by_host = {f"{name}@{host}": count for name, host, count in recent if hosts[name] > 1 and name != Component.BROKER}
    return totals | by_host


def disks(now: dt.datetime) -> dict[str, tuple[int, int]]:
    """By host, (free bytes, their minimum) on the disk of its state folder.

    If a host has two state folders, those of the fuller disk.
    """
    this_host = {settings.HOST_NAME: (disk.free(), disk.floor())}  # without heartbeats, only this host's are known
    fullest_last = F("disk_floor") - F("disk_free")
    rows: Any = Heartbeat.objects.recent(now).exclude(disk_free=None).order_by(fullest_last)
    return this_host | {row.host: (row.disk_free, row.disk_floor) for row in rows}


class Pulse(threading.Thread):
    """Sends heartbeats of `part`, and of the broker while it answers. Calls `react` with each observation of all parts.

    `trouble` says why the database could not be written to the last time; empty while it can be.
    """

    def __init__(self, part: Component, react: Callable[[Liveness], None]) -> None:
        import redis

        super().__init__(name="heartbeat", daemon=True)
        self.part = part
        self.react = react
        self.liveness = Liveness(every=settings.HEARTBEAT_SECONDS)
        self.trouble = ""
        self.ends = threading.Event()
        seconds = settings.HEARTBEAT_SECONDS / OBSERVATIONS  # a broker that hangs must not cause a gap
        limits = {"socket_timeout": seconds, "socket_connect_timeout": seconds}
        retry = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        self.broker = redis.Redis.from_url(settings.REDIS_URL, retry=retry, **limits)

    def run(self) -> None:
        turn = 0
        while not self.ends.is_set():
            try:
                self.observe(beats=turn % OBSERVATIONS == 0)
            except Exception as error:
                # Without the database there is no observation, which leaves a gap.
                if not self.trouble:
                    logger.warning("the heartbeat of %s cannot be written or read: %s", self.part, error)
                self.trouble = str(error) or type(error).__name__
                connection.close()
                if not isinstance(error, Error):
                    logger.exception("the heartbeat of %s", self.part)
            turn += 1
            self.ends.wait(settings.HEARTBEAT_SECONDS / OBSERVATIONS)
        connection.close()

    def observe(self, *, beats: bool) -> None:
        if connection.vendor == "sqlite":  # a heartbeat may be lost, so it need not wait for the disk
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA synchronous=NORMAL")
        if beats:
            beat([self.part, *([Component.BROKER] if self.broker_answers() else [])])
            self.trouble = ""
        self.liveness.observe(counts(), time.monotonic(), time.time())
        self.react(self.liveness)

    def broker_answers(self) -> bool:
        import redis

        try:
            return bool(self.broker.ping())
        except (redis.RedisError, OSError):
            return False


_pulse: Pulse | None = None  # this process's


def start(part: Component, react: Callable[[Liveness], None]) -> Pulse | None:
    """Start this process's heartbeat; None if HEARTBEAT_SECONDS is 0."""
    global _pulse  # noqa: PLW0603 - a process has one
    if settings.HEARTBEAT_SECONDS and _pulse is None:
        _pulse = Pulse(part, react)
        _pulse.start()
    return _pulse


def stop() -> None:
    """End this process's heartbeat, because the process ends on purpose."""
    if _pulse is not None:
        _pulse.ends.set()
        _pulse.join(settings.HEARTBEAT_SECONDS)
        forget(_pulse.part)


def trouble() -> str:
    """Why this process could not write to the database a moment ago; empty if it could, or has no heartbeat."""
    return "" if _pulse is None else _pulse.trouble


def silent() -> list[Component]:
    """The parts that have stopped on all hosts, as far as this process knows."""
    return [] if _pulse is None else [part for part in Component if _pulse.liveness.life(part) is Life.SILENT]
