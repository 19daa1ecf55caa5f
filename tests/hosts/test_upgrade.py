"""Hosts that share a PostgreSQL database: their keys agree, and only code that knows the schema is connected."""

import threading

import pytest
from django.db import connection, connections
from django.db.backends.signals import connection_created
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.urls import reverse

from grading.busy import OtherKeys, Outdated, Unavailable, Upgrading, trouble
from grading.models import KeyFingerprint
from gradingsite import keys, schema

pytestmark = [
    pytest.mark.postgresql,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="hosts cannot share SQLite"),
]


@pytest.fixture
def watched():
    """This process's connections are watched, as a web server's are."""
    schema.watch_connections(ends_if_outdated=False)
    connection.close()
    yield
    connection_created.disconnect(dispatch_uid="schema")
    connection.close()


@pytest.fixture
def newer_schema():
    """The database has a migration that this code does not know."""
    connection.ensure_connection()
    MigrationRecorder(connection).record_applied("grading", "9999_future")
    yield
    connection_created.disconnect(dispatch_uid="schema")
    connection.close()
    MigrationRecorder(connection).record_unapplied("grading", "9999_future")


def in_another_thread(work):
    """What `work` returned or raised in a thread, which has a connection of its own."""
    results = []

    def run():
        try:
            results.append(work())
        except Exception as error:  # noqa: BLE001  the test looks at it
            results.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    return results[0]


def count():
    return KeyFingerprint.objects.count()


def test_programs_connect_while_the_versions_agree(watched):
    assert count() == 0
    assert in_another_thread(count) == 0


def test_an_upgrade_disconnects_programs_and_lets_nobody_connect(watched):
    count()
    holder_lost, go_on = threading.Event(), threading.Event()

    def hold():
        count()
        go_on.set()
        holder_lost.wait(10)
        count()  # on a connection that the upgrade has ended

    holder = threading.Thread(target=lambda: errors.append(_error(hold)))
    errors = []
    holder.start()
    go_on.wait(10)
    connection_created.disconnect(dispatch_uid="schema")  # the upgrade's own connection is not watched
    connection.close()
    with schema.turn(str), schema.alone():
        schema.watch_connections(ends_if_outdated=False)
        holder_lost.set()
        holder.join(10)
        error = in_another_thread(count)
        assert isinstance(error, Upgrading)
        assert trouble(error) is Unavailable.UPGRADING
        assert trouble(errors[0]) in {Unavailable.AWAY, Unavailable.UPGRADING}
    assert in_another_thread(count) == 0


def _error(work):
    try:
        work()
    except Exception as error:  # noqa: BLE001  the test looks at it
        return error
    finally:
        connections.close_all()


def test_upgrades_of_two_hosts_take_turns():
    said = []
    with schema.turn(str):
        thread = threading.Thread(target=lambda: in_turn(said))
        thread.start()
        thread.join(1)
        assert said == ["Another host is upgrading the database: waiting for it."]
    thread.join(10)
    assert said[-1] == "my turn"


def in_turn(said):
    with schema.turn(said.append):
        said.append("my turn")
    connections.close_all()


def test_code_that_is_older_than_the_schema_answers_503(watched, newer_schema, settings):
    settings.ALLOWED_HOSTS = ["testserver"]
    connection.close()
    with pytest.raises(Outdated, match="9999_future"):
        count()
    client = Client(raise_request_exception=False)
    reply = client.get("/healthz/ready")
    assert reply.status_code == 503
    reply = client.post(reverse("admin:login"), {"username": "olga", "password": "secret"})
    assert reply.status_code == 503
    assert "older than the database" in reply.content.decode()


def test_a_command_of_manage_py_is_disconnected_by_an_upgrade_too():
    """A command that runs for hours would go on writing without knowing the schema."""
    schema.require_for(["regrade"])
    try:
        assert in_another_thread(count) == 0
        connection.ensure_connection()
        connection_created.disconnect(dispatch_uid="schema")
        with schema.turn(str), schema.alone():
            schema.watch_connections()
            assert isinstance(in_another_thread(count), Upgrading)
    finally:
        connection_created.disconnect(dispatch_uid="schema")
        connection.close()


@pytest.mark.parametrize(("name", "value"), [("SECRET_KEY", "x" * 50), ("CHANCE_KEY", b"y" * 32)])
def test_a_host_that_started_without_the_database_has_its_keys_compared_later(settings, name, value):
    before = settings.SECRET_KEY
    keys.require_same()
    setattr(settings, name, value)
    schema.watch_connections(checks_keys=True)
    try:
        error = in_another_thread(count)
        assert isinstance(error, OtherKeys)
        assert name in str(error)
        assert trouble(error) is Unavailable.OTHER_KEYS
        if name == "SECRET_KEY":
            settings.SECRET_KEY_FALLBACKS = [before]
            assert in_another_thread(count) == 2
    finally:
        connection_created.disconnect(dispatch_uid="schema")
        connection.close()


def test_the_first_host_gives_the_site_its_keys(settings):
    keys.require_same()
    assert {row.pk for row in KeyFingerprint.objects.all()} == {"SECRET_KEY", "CHANCE_KEY"}
    assert settings.SECRET_KEY not in str(list(KeyFingerprint.objects.values()))
    keys.require_same()


@pytest.mark.parametrize(("name", "value"), [("SECRET_KEY", "x" * 50), ("CHANCE_KEY", b"y" * 32)])
def test_a_host_with_another_key_is_refused_and_told_which(settings, name, value):
    keys.require_same()
    setattr(settings, name, value)
    with pytest.raises(keys.DifferentKeys, match=f"another {name} than") as refusal:
        keys.require_same()
    assert str(value) not in str(refusal.value)
    with pytest.raises(SystemExit, match=f"another {name} than"):
        schema.require_or_exit(keys.require_same)
    keys.record_fingerprints(replace=True)
    keys.require_same()


def test_secret_key_is_changed_host_by_host(settings):
    """Each step is taken by one host after the other, and all of them start at any time."""
    old, new = settings.SECRET_KEY, "n" * 50
    steps = [[(old, []), (old, [new])], [(old, [new]), (new, [old])], [(new, [old]), (new, [])]]
    for step in steps:
        for _round in range(2):
            for secret, fallbacks in step:
                settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = secret, fallbacks
                keys.require_same()
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = old, []
    with pytest.raises(keys.DifferentKeys, match="SECRET_KEY"):
        keys.require_same()
