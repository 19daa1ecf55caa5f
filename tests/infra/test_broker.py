"""The site's own Valkey: private, recognised by its password, never confused with another's."""

import stat
from subprocess import DEVNULL

import redis

from gradingsite import broker
from gradingsite.celery import app
from tests.processes import started


def test_it_starts_answers_and_ends(tmp_path):
    ours = broker.prepare(tmp_path)
    with started(broker.command(ours, tmp_path), stdout=DEVNULL) as process:
        ours.wait_until_up()
        assert ours.is_up()
        assert ours.end()
        assert process.wait(5) == 0
    assert not ours.is_up()
    assert not ours.end()


def test_what_was_in_it_survives_a_restart(tmp_path):
    for attempt in ("written", "read"):
        ours = broker.prepare(tmp_path)
        with started(broker.command(ours, tmp_path), stdout=DEVNULL):
            ours.wait_until_up()
            with redis.Redis.from_url(ours.url) as client:
                if attempt == "written":
                    client.set("bell", "rung")
                assert client.get("bell") == b"rung"


def test_a_server_left_over_is_recognised_and_ended(tmp_path):
    ours = broker.prepare(tmp_path)
    with started(broker.command(ours, tmp_path), stdout=DEVNULL) as left_over:
        ours.wait_until_up()
        assert broker.prepare(tmp_path) == ours
        assert left_over.wait(5) == 0
    assert broker.is_free(ours.port)


def test_another_sites_server_on_the_old_port_is_left_alone(tmp_path):
    old = broker.prepare(tmp_path / "old")
    other = broker.Broker(port=old.port, password="another")
    (tmp_path / "other").mkdir()
    with started(broker.command(other, tmp_path / "other"), stdout=DEVNULL) as process:
        other.wait_until_up()
        new = broker.prepare(tmp_path / "old")
        assert new.port != old.port
        assert process.poll() is None


def test_strangers_need_the_password_and_cannot_read_it(tmp_path):
    ours = broker.prepare(tmp_path)
    command = broker.command(ours, tmp_path)
    assert not any(ours.password in word for word in command)
    files = [tmp_path / "broker.json", tmp_path / "broker.conf"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_ring_that_nobody_answered_is_not_given_back(tmp_path):
    """Giving one back to a broker that is gone ended the worker with kombu's AttributeError."""
    ours = broker.prepare(tmp_path)
    with started(broker.command(ours, tmp_path), stdout=DEVNULL):
        ours.wait_until_up()
        with app.connection_for_read(ours.url) as connection:
            bell = connection.SimpleQueue("bell", channel=connection.default_channel)
            bell.put("rung")
            bell.get(timeout=10)
        with redis.Redis.from_url(ours.url) as client:
            assert client.llen("bell") == 0
