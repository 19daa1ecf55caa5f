"""Attacks on the web server, with nothing but sockets: the real processes, on the tests' database."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest
from django.conf import settings

from grading.models import ApiToken, Session, TokenUsage
from gradingsite import broker
from tests.infra.test_supervisor import children_of, read_until, wait_until_dead
from tests.processes import for_the_site, stop, wait_for
from tests.site import NOON
from tests.site import Site as Builder

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.worker]

HALF_OF_THE_HEADERS = b"GET /login/ HTTP/1.1\r\nHost: localhost\r\nUser-Agent: x"


class Site:
    """The site's web processes, and clients that are up to no good."""

    def __init__(self, **environment):
        self.port = broker.free_port()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gradingsite.web"],
            env={**for_the_site(), "PORT": str(self.port), **environment},
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = f"http://127.0.0.1:{self.port}"
        self.clients = []
        read_until(self.process, "serving http")
        self.seconds_for_pages(1)

    def seconds_for_pages(self, pages=20):
        """How long each of so many pages takes; every one must be there."""
        found = []
        for _ in range(pages):
            began = time.monotonic()
            assert httpx2.get(f"{self.url}/login/", timeout=60).status_code == 200
            found.append(time.monotonic() - began)
        return sorted(found)

    def connect(self, data):
        client = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        self.clients.append(client)
        client.sendall(data)
        return client

    def hang_up(self):
        while self.clients:
            self.clients.pop().close()

    def end(self):
        self.hang_up()
        stop(self.process)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def shared_site(django_db_setup):
    site = Site()
    yield site
    site.end()


@pytest.fixture
def site(shared_site):
    """The site as it is served by default. It goes on for the tests that follow."""
    yield shared_site
    shared_site.hang_up()


@pytest.fixture
def serve():
    """Starts a site with settings of its own, or one that the test ends."""
    started = []

    def start(**environment):
        started.append(Site(**environment))
        return started[-1]

    yield start
    for site in started:
        site.end()


@pytest.fixture
def token():
    return ApiToken.objects.issue(Builder().agent("eve"))


def head_of_upload(secret, length, more=""):
    return (
        f"POST /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n{more}"
        f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def reply_to(client):
    """Status and body of what comes until the connection is closed."""
    data = b""
    try:
        while chunk := client.recv(65536):
            data += chunk
    except ConnectionResetError:
        pass
    head, _, body = data.partition(b"\r\n\r\n")
    return int(re.match(rb"HTTP/1.1 (\d+)", head)[1]), body


def upload(site, secret, name, size):
    metadata = json.dumps({"session_id": name, "ended_at": NOON.isoformat()})
    files = {"metadata": (None, metadata), "transcript": ("x", os.urandom(size))}
    return httpx2.post(
        f"{site.url}/api/v1/sessions", files=files, headers={"Authorization": f"Bearer {secret}"}, timeout=60
    )


def test_two_hundred_half_sent_headers_and_fifty_half_sent_uploads_hold_up_no_page(site, token):
    for _ in range(200):
        site.connect(HALF_OF_THE_HEADERS)
    for _ in range(50):
        site.connect(head_of_upload(token[1], 2_000_000) + b"--b\r\n" + b"x" * 10_000)
    slow = site.connect(head_of_upload(token[1], 2_000_000))
    took = []
    for _ in range(20):
        slow.sendall(b"x")
        took += site.seconds_for_pages(1)
    assert sorted(took)[-2] < 1


def test_half_sent_headers_are_closed_after_ten_seconds_in_all(site):
    clients = [site.connect(HALF_OF_THE_HEADERS) for _ in range(5)]
    began = time.monotonic()
    for client in clients:
        status, _ = reply_to(client)
        assert status == 408
    assert 9 < time.monotonic() - began < 20


def test_an_upload_with_a_wrong_token_is_refused_before_its_body_is_sent(site):
    status, body = reply_to(site.connect(head_of_upload("gs_wrong", 200_000_000)))
    assert (status, json.loads(body)["error"]) == (401, "unauthorised")
    client = site.connect(head_of_upload("gs_wrong", 200_000_000))
    sent = 0
    try:
        while sent < 200_000_000:
            sent += client.send(b"x" * 65536)
    except OSError:
        pass
    assert sent < 20_000_000  # what the sockets' buffers hold


def test_only_the_sites_own_hosts_are_served(site):
    """The name that Django's test client sends is a stranger's, like any other."""
    for host in ("testserver", "evil.example", "testserver:80"):
        assert httpx2.get(f"{site.url}/login/", headers={"Host": host}).status_code == 400, host


def test_a_token_that_is_revoked_while_its_body_comes_stores_nothing(site, token):
    body = b'--b\r\nContent-Disposition: form-data; name="metadata"\r\n\r\n'
    body += b'{"session_id": "late", "ended_at": "2026-03-31"}\r\n--b--\r\n'
    client = site.connect(head_of_upload(token[1], len(body), "Connection: close\r\n") + body[:20])
    wait_for(lambda: TokenUsage.objects.filter(token=token[0]).exists())
    token[0].revoke()
    client.sendall(body[20:])
    assert reply_to(client)[0] == 401
    assert not Session.objects.filter(external_id="late").exists()


def test_a_body_of_unknown_length_is_refused_unread(site, token):
    head = head_of_upload(token[1], 5).replace(b"Content-Length: 5", b"Transfer-Encoding: chunked")
    status, body = reply_to(site.connect(head))
    assert (status, json.loads(body)["error"]) == (411, "length_required")


def test_junk_from_one_token_ends_at_its_quota_in_words_and_pages_go_on(serve, token):
    site = serve(TOKEN_DAILY_BYTES="10000000")
    said = [upload(site, token[1], f"junk-{number}", 2_000_000) for number in range(5)]
    assert {reply.status_code for reply in said} <= {201, 422}
    unread = site.connect(head_of_upload(token[1], 1_000_000_000))
    status, body = reply_to(unread)
    refused = json.loads(body)
    assert (status, refused["error"]) == (429, "over quota")
    assert refused["expected"] == "at most 10,000,000 bytes a day with one token"
    assert "send it again after" in refused["todo"]
    for _ in range(50):
        site.connect(head_of_upload(token[1], 1_000_000_000) + b"x" * 10_000)
    assert site.seconds_for_pages()[-2] < 1
    other = ApiToken.objects.issue(Builder().agent("bob"))[1]
    assert upload(site, other, "work", 100).status_code in {201, 422}
    assert Session.objects.filter(external_id="work").exists()


def test_a_full_disk_is_said_in_words_before_a_body_is_read(serve, token):
    site = serve(FREE_SPACE_FLOOR=str(2**50))
    status, body = reply_to(site.connect(head_of_upload(token[1], 1_000_000)))
    assert (status, json.loads(body)["error"]) == (507, "no room")
    assert site.seconds_for_pages(1)


def test_what_is_too_large_for_memory_is_written_below_the_state_folder_and_nowhere_else(site, token):
    def unlinked(*processes):
        links = (link for process in processes for link in Path(f"/proc/{process}/fd").iterdir())
        return {str(path) for link in links if str(path := link.readlink()).endswith("(deleted)")}

    others = unlinked(site.process.pid, *children_of(site.process.pid))  # its output is the tests'
    site.connect(head_of_upload(token[1], 50_000_000) + b"x" * 2_000_000)
    wait_for(lambda: unlinked(*children_of(site.process.pid)) - others)
    (path,) = unlinked(*children_of(site.process.pid)) - others
    assert path.startswith(f"{settings.TEMP_DIR}/")
    assert list(Path(settings.TEMP_DIR).iterdir()) == []


def test_a_killed_web_process_is_replaced_and_the_other_serves_on(site):
    before = children_of(site.process.pid)
    assert len(before) == 2
    os.kill(before[0], signal.SIGKILL)
    assert site.seconds_for_pages(10)
    wait_for(lambda: len(set(children_of(site.process.pid)) - {before[0]}) == 2)
    assert site.seconds_for_pages(10)


def test_half_sent_requests_do_not_hold_up_the_end(serve, token):
    site = serve()
    for _ in range(20):
        site.connect(HALF_OF_THE_HEADERS)
        site.connect(head_of_upload(token[1], 2_000_000) + b"x")
    children = children_of(site.process.pid)
    began = time.monotonic()
    site.process.terminate()
    assert site.process.wait(20) == 0
    assert time.monotonic() - began < 8
    wait_until_dead(children)


def test_a_killed_parent_leaves_nobody_at_the_port(serve):
    site = serve()
    children = children_of(site.process.pid)
    site.process.kill()
    wait_until_dead(children)


def test_a_taken_port_and_a_site_that_cannot_start_are_said_before_anything_is_served(site):
    command = [sys.executable, "-m", "gradingsite.web"]
    options = {"capture_output": True, "text": True, "timeout": 60}
    taken = subprocess.run(command, check=False, env={**for_the_site(), "PORT": str(site.port)}, **options)
    assert taken.returncode == 1
    assert f"Port {site.port} is taken by" in taken.stderr
    assert "serving" not in taken.stdout
    broken = subprocess.run(command, check=False, env={**for_the_site(), "TOKEN_DAILY_BYTES": "lots"}, **options)
    assert broken.returncode == 1
    assert "Unexpected value TOKEN_DAILY_BYTES='lots'" in broken.stderr
    assert "serving" not in broken.stdout


def test_the_hook_hands_in_a_large_session_and_keeps_what_a_wrong_token_cannot(site, token, tmp_path):
    log = tmp_path / "session.jsonl"
    log.write_text("".join(json.dumps({"type": "user", "n": n, "x": "y" * 200}) + "\n" for n in range(20_000)))
    hook = [sys.executable, "grading/agent/submit_session.py"]
    environment = {**os.environ, "HOME": str(tmp_path), "GRADINGSITE_URL": site.url, "GRADINGSITE_TOKEN": "gs_wrong"}
    payload = json.dumps({"session_id": "big", "transcript_path": str(log), "cwd": str(tmp_path)})
    subprocess.run(hook, input=payload, env=environment, text=True, check=True, capture_output=True)
    flush = [*hook, "--flush"]
    kept = subprocess.run(flush, env=environment, text=True, check=False, capture_output=True)
    assert "kept for later, since the site answered 401" in kept.stdout
    sent = subprocess.run(
        flush, env={**environment, "GRADINGSITE_TOKEN": token[1]}, text=True, check=False, capture_output=True
    )
    assert "everything is sent" in sent.stdout, sent
    assert Session.objects.filter(external_id="big").exists()
