"""Attacks on the one place where everybody writes: large uploads at once, and a writer that stands still."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from django.conf import settings
from django.db import connection

from grading.models import ApiToken, Session, Settlement
from tests.processes import database_url
from tests.redteam.test_server import serve  # noqa: F401 - a fixture
from tests.site import Site

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.worker]

UPLOADS = 8
PAGES = ("/", "/sessions/", "/bandits/category/", "/quota/")


def patch(name: str, size: int = 2_000_000) -> str:
    """New files of notes, so that each has to be searched for what counts."""
    found, number = "", 0
    while len(found) < size - 20_000:
        path, number = f"knowledge/{name}/{number}.md", number + 1
        lines = [f"+What {name} found out in note {number}, line {line}, and why it matters.\n" for line in range(100)]
        found += f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,100 @@\n"
        found += "".join(lines)
    return found


def send(site, secret: str, name: str, diff: str):
    metadata = json.dumps({"session_id": name, "category": "code"})
    files = {"metadata": (None, metadata), "patch": ("work.patch", diff)}
    headers = {"Authorization": f"Bearer {secret}"}
    return httpx2.post(f"{site.url}/api/v1/sessions", files=files, headers=headers, timeout=120)


@pytest.fixture
def secret():
    _row, secret = ApiToken.objects.issue(Site().agent("eve"))
    return secret


@pytest.fixture
def read(client, rita):
    """Reads pages of a site as a reviewer, and says how each went."""
    client.force_login(rita)
    key = client.cookies[settings.SESSION_COOKIE_NAME].value

    def read(site) -> list[tuple[int, float]]:
        found = []
        for page in PAGES:
            began = time.monotonic()
            cookies = {f"sessionid_{site.port}": key}
            reply = httpx2.get(f"{site.url}{page}", cookies=cookies, timeout=60)
            found.append((reply.status_code, time.monotonic() - began))
        return found

    return read


@pytest.mark.slow
def test_large_patches_at_once_break_neither_uploads_nor_pages(serve, secret, read):  # noqa: F811
    """Each is parsed and searched before it writes, so that nobody waits for that, and none is told of a bug."""
    site = serve()
    names = [f"s{number}" for number in range(UPLOADS)]
    pages: list[tuple[int, float]] = []
    with ThreadPoolExecutor(UPLOADS) as pool:
        replies = [pool.submit(send, site, secret, name, patch(name)) for name in names]
        while not all(reply.done() for reply in replies):
            pages += read(site)
    assert {reply.result().status_code for reply in replies} == {201}
    assert {status for status, _seconds in pages} == {200}
    assert Session.objects.filter(external_id__in=names).count() == UPLOADS
    assert Settlement.objects.values("session").distinct().count() == UPLOADS


@pytest.mark.slow
def test_no_page_waits_while_somebody_writes_and_uploads_are_told_when_to_come_again(serve, secret, read):  # noqa: F811
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has no gate")
    site = serve(DATABASE_URL=f"{database_url()}?gate_seconds=1")
    assert send(site, secret, "first", patch("first", 40_000)).status_code == 201
    read(site)
    connection.ensure_connection()
    turn = connection.gate.enter(60)
    try:
        began = time.monotonic()
        reply = send(site, secret, "second", patch("second", 40_000))
        waited = time.monotonic() - began
        pages = read(site)
    finally:
        connection.gate.leave(turn)
    assert (reply.status_code, reply.json()["error"]) == (503, "busy")
    assert int(reply.headers["Retry-After"]) > 0
    assert waited < 30
    assert {status for status, _seconds in pages} == {200}
    assert send(site, secret, "second", patch("second", 40_000)).status_code == 201
