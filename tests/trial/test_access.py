"""Who may read a trial: one browser. No other user, agent, page or program on the machine."""

import re
import signal
import socket
import stat
import threading

import httpx2
import pytest

from tests.processes import wait_for
from tests.trial.homes import make_home, trial


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    make_home(home)
    with trial(home) as started:
        yield started


@pytest.fixture(scope="module")
def client(running):
    with running.sign_in() as client:
        yield client


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/try/",
        "/sessions/",
        "/login/",
        "/api/v1/sessions",
        "/agent/submit_session.py",
        "/healthz/live",
        "/metrics",
    ],
)
def test_nothing_is_shown_without_the_key(running, client, path):
    reply = httpx2.get(running.base + path)
    assert reply.status_code == 403
    assert "gradingsite try" in reply.text
    assert "set-cookie" not in reply.headers


def test_static_files_need_the_key_too(running, client):
    path = re.search(r'href="(/static/[^"]+\.css)"', client.get("/try/").text)[1]
    assert client.get(path).status_code == 200
    assert httpx2.get(running.base + path).status_code == 403


def test_the_address_works_once(running, client):
    reply = httpx2.get(running.address)
    assert reply.status_code == 403
    assert "works only once" in reply.text
    assert httpx2.get(running.address.partition("token=")[0] + "token=guess").status_code == 403
    assert client.get(running.address).status_code == 200  # the browser that has the cookie


def test_of_many_that_open_the_address_at_once_one_is_let_in(tmp_path):
    make_home(tmp_path)
    statuses = []
    with trial(tmp_path) as started:

        def open_address():
            statuses.append(httpx2.get(started.address, timeout=60).status_code)

        threads = [threading.Thread(target=open_address) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(statuses) == [302] + [403] * 7


def test_the_cookie_is_for_this_site_and_no_script(running, client):
    cookie = next(each for each in client.cookies.jar if each.name.startswith("trial_"))
    assert cookie.has_nonstandard_attr("HttpOnly")
    assert cookie.get_nonstandard_attr("SameSite") == "Lax"
    guessed = httpx2.get(running.base + "/try/", cookies={cookie.name: "guess"})
    assert guessed.status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost.evil.example:{port}"])
def test_a_page_that_rebinds_its_name_is_refused(running, client, host):
    """Its requests come from the browser that has the cookie, but name the page's own host."""
    port = running.base.rpartition(":")[2]
    assert client.get("/try/", headers={"Host": host.format(port=port)}).status_code == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_requests_of_other_pages_are_refused(client, origin):
    assert client.get("/try/", headers={"Origin": origin}).status_code == 403
    assert client.post("/try/keep/", headers={"Origin": origin}).status_code == 403


def test_a_form_without_its_token_is_refused(client):
    assert client.post("/try/keep/").status_code == 403


def test_it_listens_on_the_loopback_interface_only(running):
    port = int(running.base.rpartition(":")[2])
    own = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)}
    for address in [each for each in own if each != "::1" and not each.startswith("127.")]:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
            probe.settimeout(2)
            assert probe.connect_ex((address, port)) != 0


def test_the_state_folder_is_closed_to_other_users(running, tmp_path_factory):
    state = tmp_path_factory.getbasetemp()
    folders = [path.parent for path in state.rglob("site.lock")]
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_the_token_is_not_among_the_arguments_of_a_program(tmp_path):
    """Other users see those. A private file leads the browser to the address, and goes when the trial ends."""
    make_home(tmp_path)
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}.part; mv {seen}.part {seen}\n')
    browser.chmod(0o700)
    with trial(tmp_path, opens_browser=True, DISPLAY=":0", BROWSER=f"{browser} %s") as started:
        wait_for(seen.exists)
        token = started.address.partition("token=")[2]
        opener = tmp_path / "state" / "open.html"
        assert seen.read_text() == opener.as_uri()
        assert token in opener.read_text()
        assert stat.S_IMODE(opener.stat().st_mode) == 0o600
        started.process.send_signal(signal.SIGINT)
        assert started.process.wait(30) == 0
        assert not opener.exists()
