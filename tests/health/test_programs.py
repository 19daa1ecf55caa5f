"""Programs that stand still, with real processes: seen on every page, told outside, and over by themselves."""

import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest
from django.conf import settings
from django.test import Client

from grading.health.liveness import Component
from grading.models import Alarm, Heartbeat, Notice
from gradingsite import broker
from tests.casts.notice import WebServer, serving
from tests.infra.test_supervisor import children_of, wait_until_dead
from tests.processes import for_the_site, started, wait_for
from tests.site import Site

pytestmark = [pytest.mark.slow, pytest.mark.worker, pytest.mark.django_db(transaction=True)]

WEB = [sys.executable, "-m", "gradingsite.web"]
CELERY = [sys.executable, "-W", "ignore:You're running the worker", "-m", "celery", "-q", "-A", "gradingsite"]
WORKER = [*CELERY, "worker", "--without-gossip", "--without-mingle", "--without-heartbeat"]
BEAT = [*CELERY, "beat", "--pidfile="]


class Programs:
    """The site's programs, with heartbeats a second long; `page` is what a viewer's browser loads."""

    def __init__(self, stack, **environment):
        self.port = str(broker.free_port())
        self.environment = {**for_the_site(), "PORT": self.port, "HEARTBEAT_SECONDS": "1", **environment}
        self.stack, self.running = stack, {}
        viewer = Client()
        viewer.force_login(Site().person("vera", "viewer"))
        self.cookies = {f"sessionid_{self.port}": viewer.cookies[settings.SESSION_COOKIE_NAME].value}

    def start(self, name, command):
        process = started(command, env=self.environment, process_group=0)
        self.running[name] = self.stack.enter_context(process)

    def signal(self, name, number):
        os.killpg(self.running[name].pid, number)

    def page(self, path="/sessions/"):
        return httpx2.get(f"http://127.0.0.1:{self.port}{path}", cookies=self.cookies, timeout=30).text

    def serves(self):
        try:
            return "gradingsite" in self.page()
        except httpx2.TransportError:
            return False


@pytest.fixture
def hook():
    with serving(WebServer()) as server:
        yield server


@pytest.fixture
def programs(redis_url, hook):
    with ExitStack() as stack:
        found = Programs(stack, NOTIFY_WEBHOOK=hook.url, NOTIFY_RULES="A46")
        for name, command in {"web": WEB, "worker": WORKER, "beat": BEAT}.items():
            found.start(name, command)
        wait_for(found.serves)
        yield found
        for name in found.running:
            found.signal(name, signal.SIGCONT)


def counts():
    return dict(Heartbeat.objects.values_list("name", "count"))


def told(hook):
    return [re.search(r'"about": "(\w+)".*"detail": "The (\w+)', body.decode()).groups() for _, _, body in hook.posts]


def pill(page):
    return " ".join(re.search(r'<a class="pill[^>]*>(.*?)</a>', page, re.DOTALL)[1].split("</svg>")[-1].split())


def test_a_frozen_worker_and_a_frozen_scheduler_are_on_every_page_are_told_and_are_over_by_themselves(programs, hook):
    wait_for(lambda: set(counts()) == set(Component) and min(counts().values()) > 15)
    page = programs.page()
    assert "not responding" not in page
    assert "icon." in page
    programs.signal("worker", signal.SIGSTOP)
    wait_for(lambda: "Worker is not responding" in pill(programs.page()), 60)
    page = programs.page()
    assert "⚠ Worker is not responding ·" in page
    assert "icon-stopped." in page
    assert "The worker has not responded since" in page
    assert "Verdicts come in" not in programs.page("/quota/") + programs.page("/")
    wait_for(lambda: ("opened", "worker") in told(hook), 30)
    programs.signal("beat", signal.SIGSTOP)
    wait_for(lambda: "Worker and scheduler are not responding" in pill(programs.page()), 60)
    for name in ("worker", "beat"):
        programs.signal(name, signal.SIGCONT)
    wait_for(lambda: "not responding" not in pill(programs.page()), 60)
    wait_for(lambda: {("resolved", "worker"), ("resolved", "scheduler")} <= set(told(hook)), 60)
    assert len(told(hook)) == len(set(told(hook))) == 4
    assert not Alarm.objects.filter(rule="A46", resolved_at=None).exists()


def test_a_frozen_web_server_is_told_by_the_worker(programs, hook):
    wait_for(lambda: set(counts()) == set(Component) and min(counts().values()) > 15)
    programs.signal("web", signal.SIGSTOP)
    wait_for(lambda: ("opened", "web") in told(hook), 60)
    programs.signal("web", signal.SIGCONT)
    wait_for(lambda: ("resolved", "web") in told(hook), 60)
    wait_for(lambda: not Notice.objects.queued().exists(), 60)  # marked as sent once the receiver has answered


def test_a_broker_that_is_away_is_told_by_the_web_server(redis_url, hook, tmp_path):
    ours = broker.prepare(tmp_path / "broker")
    with ExitStack() as stack:
        server = stack.enter_context(started(broker.command(ours, tmp_path / "broker"), stdout=subprocess.DEVNULL))
        ours.wait_until_up()
        programs = Programs(stack, REDIS_URL=ours.url, NOTIFY_WEBHOOK=hook.url)
        programs.start("web", WEB)
        wait_for(programs.serves)
        wait_for(lambda: counts().get(Component.BROKER, 0) > 15)
        server.send_signal(signal.SIGSTOP)
        wait_for(lambda: "broker" in pill(programs.page()), 60)
        wait_for(lambda: ("opened", "broker") in told(hook), 60)
        server.send_signal(signal.SIGCONT)
        wait_for(lambda: ("resolved", "broker") in told(hook), 60)


def test_a_web_server_keeps_a_worker_of_its_own_and_starts_it_again(redis_url):
    with ExitStack() as stack:
        programs = Programs(stack)
        programs.start("web", [*WEB, "--with-worker"])
        wait_for(programs.serves)
        wait_for(lambda: set(counts()) == set(Component) and min(counts().values()) > 2)
        web = programs.running["web"]
        children = children_of(web.pid)
        [worker] = [child for child in children if b"celeryd" in Path(f"/proc/{child}/cmdline").read_bytes()]
        os.kill(worker, signal.SIGKILL)
        wait_until_dead([worker])
        before = counts()[Component.WORKER]
        wait_for(lambda: counts()[Component.WORKER] > before + 2, 60)
        children = children_of(web.pid)
        assert worker not in children
        web.terminate()
        assert web.wait(30) == 0
        wait_until_dead(children)
