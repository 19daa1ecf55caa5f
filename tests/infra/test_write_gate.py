"""SQLite's writers come in turn: threads of one process in the order in which they came, of several in some order."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError, connection, transaction

from grading.judging import worker
from grading.models import ApiToken, JudgeAttempt, JudgeJob
from grading.models.judging import AttemptOutcome
from gradingsite.middleware import server_error
from gradingsite.sqlite.gate import MAX_WAITING, WriteGate, WriteGateBusy, gate_of
from tests.casts import judge as judge_cast
from tests.processes import for_the_site, started, wait_for
from tests.site import Site

LONG = 60.0  # seconds: nobody waits that long here


@pytest.fixture
def on_sqlite(transactional_db) -> WriteGate:
    """The gate of the tests' database."""
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has no gate")
    connection.ensure_connection()
    assert connection.gate is not None
    return connection.gate


@contextmanager
def busy(gate: WriteGate) -> Iterator[None]:
    """Somebody writes, in a thread that has nothing else to do; who waits gives up soon."""
    turn, usual = gate.enter(LONG), connection.settings_dict["OPTIONS"]
    connection.close()
    connection.settings_dict["OPTIONS"] = {**usual, "gate_seconds": 0.05}
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["OPTIONS"] = usual
        gate.leave(turn)


@contextmanager
def another_process(code: str, *arguments: str, **environment: str) -> Iterator[subprocess.Popen]:
    """A process that runs this, and has said a line."""
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **environment}) as process:
        assert process.stdout.readline() == b"ready\n"
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.stdin.close()
            process.stdout.close()


HOLDER = """
    import sys
    from pathlib import Path
    from gradingsite.sqlite.gate import WriteGate
    turn = (gate := WriteGate(Path(sys.argv[1]))).enter(60)
    print("ready", flush=True)
    sys.stdin.read()
    gate.leave(turn)
"""


# --- the gate --------------------------------------------------------------------------------------------------------


def test_who_came_first_writes_first(tmp_path):
    gate, served = WriteGate(tmp_path / "write.gate"), []

    def write(number: int) -> None:
        turn = gate.enter(LONG)
        served.append(number)
        gate.leave(turn)

    turn = gate.enter(LONG)
    threads = [threading.Thread(target=write, args=[number]) for number in range(MAX_WAITING)]
    for number, thread in enumerate(threads, start=1):
        thread.start()
        wait_for(lambda number=number: len(gate._turns) == number + 1)
    gate.leave(turn)
    for thread in threads:
        thread.join()
    assert served == list(range(MAX_WAITING))


def test_the_seventeenth_who_would_wait_is_told_so_at_once(tmp_path):
    gate = WriteGate(tmp_path / "write.gate")
    turn = gate.enter(LONG)
    threads = [threading.Thread(target=lambda: gate.leave(gate.enter(LONG))) for _ in range(MAX_WAITING)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(gate._turns) == MAX_WAITING + 1)
    with pytest.raises(WriteGateBusy, match="at most 16 waiting"):
        gate.enter(LONG)
    gate.leave(turn)
    for thread in threads:
        thread.join()
    gate.leave(gate.enter(LONG))


def test_a_writer_that_stands_still_holds_nobody_up_for_ever(tmp_path):
    path = tmp_path / "write.gate"
    gate = WriteGate(path)
    with another_process(HOLDER, str(path)) as holder:
        holder.send_signal(signal.SIGSTOP)
        with ThreadPoolExecutor(3) as pool:
            refusals = [pool.submit(gate.enter, 0.2) for _ in range(3)]
            assert [type(each.exception()) for each in refusals] == [WriteGateBusy] * 3
        holder.send_signal(signal.SIGCONT)
        holder.stdin.close()
        gate.leave(gate.enter(LONG))


def test_a_writer_that_is_killed_holds_nobody_up(tmp_path):
    path = tmp_path / "write.gate"
    gate = WriteGate(path)
    with another_process(HOLDER, str(path)) as holder:
        with pytest.raises(WriteGateBusy):
            gate.enter(0)
        holder.send_signal(signal.SIGSTOP)
        holder.kill()
        gate.leave(gate.enter(LONG))


def test_a_forked_process_keeps_nothing_of_its_parents_gate(tmp_path):
    """The child lives on, and its parent is killed while it writes."""
    code = """
        import os, signal, sys, time
        from pathlib import Path
        from gradingsite.sqlite.gate import gate_of
        gate = gate_of(Path(sys.argv[1]))
        turn = gate.enter(60)
        if os.fork() == 0:
            gate.leave(turn)  # its parent's
            Path(sys.argv[2]).write_text(str(os.getpid()))
            time.sleep(60)
            os._exit(0)
        print("ready", flush=True)
        sys.stdin.read()
    """
    database, child = tmp_path / "db.sqlite3", tmp_path / "child"
    gate = gate_of(database)
    with another_process(code, str(database), str(child)) as parent:
        wait_for(lambda: child.exists() and child.read_text())
        with pytest.raises(WriteGateBusy):
            gate.enter(0)
        parent.kill()
        gate.leave(gate.enter(LONG))
        os.kill(int(child.read_text()), signal.SIGKILL)


def test_nobody_else_may_open_the_gate(tmp_path):
    gate = WriteGate(tmp_path / "write.gate")
    gate.leave(gate.enter(LONG))
    assert (tmp_path / "write.gate").stat().st_mode & 0o777 == 0o600


# --- the database behind it ------------------------------------------------------------------------------------------


def is_free(gate: WriteGate) -> bool:
    """Whether another process could write now."""
    mine = WriteGate(gate._path)
    try:
        mine.leave(mine.enter(0))
    except WriteGateBusy:
        return False
    return True


def test_a_transaction_holds_the_gate_until_it_ends(on_sqlite):
    with transaction.atomic():
        assert not is_free(on_sqlite)
        with transaction.atomic():
            assert not is_free(on_sqlite)
        assert not is_free(on_sqlite)
    assert is_free(on_sqlite)
    with pytest.raises(Group.DoesNotExist), transaction.atomic():
        Group.objects.get(name="nobody")
    assert is_free(on_sqlite)


def test_a_connection_that_is_closed_while_it_writes_gives_the_gate_back(on_sqlite):
    with transaction.atomic():
        connection.close()
        assert is_free(on_sqlite)
    assert is_free(on_sqlite)


def test_a_transaction_that_cannot_begin_gives_the_gate_back(on_sqlite):
    """A program that knows nothing of the gate holds the database itself."""
    stranger = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 50")
    with pytest.raises(OperationalError, match="database is locked"), transaction.atomic():
        pass
    assert is_free(on_sqlite)
    stranger.close()
    connection.close()
    with transaction.atomic():
        Group.objects.create(name="after")


def test_a_statement_by_itself_takes_the_gate_and_gives_it_back(on_sqlite):
    with busy(on_sqlite):
        with pytest.raises(WriteGateBusy):
            Group.objects.create(name="x")
        with pytest.raises(WriteGateBusy), transaction.atomic():
            pass
    Group.objects.create(name="x")
    assert is_free(on_sqlite)


def test_who_only_reads_never_waits_at_the_gate(on_sqlite, client, rita):
    session = judge_cast.session()
    client.force_login(rita)
    pages = ("/", "/sessions/", f"/sessions/{session.pk}/", "/review/", "/bandits/category/", "/quota/", "/alarms/")
    for page in pages:  # what a first look keeps
        assert client.get(page).status_code == 200, page
    with busy(on_sqlite):
        for page in pages:
            assert client.get(page).status_code == 200, page


WRITER = """
    import sys, threading
    import django
    django.setup()
    from django.contrib.auth.models import Group
    from django.db import connection, transaction
    from django.db.models import F
    print("ready", flush=True)
    sys.stdin.read(1)
    def write(name):
        for number in range(25):
            with transaction.atomic():
                group = Group.objects.get(name="count")
                Group.objects.create(name=f"{name} {number}")
            Group.objects.filter(name=f"{name} {number}").update(name=f"{name} {number}.")
        connection.close()
    threads = [threading.Thread(target=write, args=[f"{sys.argv[1]}.{number}"]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_eight_writers_of_two_processes_all_get_their_turn(on_sqlite):
    Group.objects.create(name="count")
    site = for_the_site()
    with another_process(WRITER, "one", **site) as one, another_process(WRITER, "two", **site) as two:
        for process in (one, two):
            process.stdin.write(b"g")
            process.stdin.flush()
        assert [one.wait(), two.wait()] == [0, 0]
    assert Group.objects.filter(name__endswith=".").count() == 200


# --- what people and programs are told -------------------------------------------------------------------------------


def test_a_page_that_cannot_write_in_time_says_so_and_when_to_try_again(on_sqlite, client, rita):
    session = judge_cast.session()
    client.force_login(rita)
    with busy(on_sqlite):
        reply = client.post(f"/review/{session.pk}/comment/", {"reason": "Looks good"})
    assert reply.status_code == 503
    assert int(reply["Retry-After"]) > 0
    assert "busy writing" in reply.content.decode()


@pytest.mark.parametrize(("error", "status"), [(WriteGateBusy("busy"), 503), (ValueError("a bug"), 500)])
def test_what_is_written_after_a_view_says_it_in_the_same_words(rf, error, status):
    """As the middleware of browser sessions does."""
    try:
        raise error
    except type(error):
        assert server_error(rf.get("/")).status_code == status


def test_the_api_says_what_was_expected_and_when_to_send_it_again(on_sqlite, client):
    _token, secret = ApiToken.objects.issue(Site().agent())
    headers = {"Authorization": f"Bearer {secret}"}
    with busy(on_sqlite):
        reply = client.post("/api/v1/sessions", {"metadata": '{"session_id": "s1"}'}, headers=headers)
    assert reply.status_code == 503
    assert int(reply["Retry-After"]) > 0
    assert (reply.json()["error"], reply.json()["todo"]) == ("busy", "send it again in 5 s")
    assert client.post("/api/v1/sessions", {"metadata": '{"session_id": "s1"}'}, headers=headers).status_code == 201


def test_a_verdict_that_was_paid_for_is_kept_until_it_can_be_written_down(on_sqlite, sim, redis_url):
    del redis_url
    sim.script({"mode": "hang", "score": 0.78})
    job = judge_cast.job()
    outcome: list[AttemptOutcome | None] = []

    def work() -> None:
        outcome.append(worker.run(job.pk))
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    wait_for(lambda: sim.calls)
    with busy(on_sqlite):
        sim.release()
        time.sleep(0.5)  # so that it has been refused a few times
        assert JudgeAttempt.objects.get().outcome == AttemptOutcome.RUNNING
    thread.join()
    assert outcome == [AttemptOutcome.GRADED]
    assert JudgeJob.objects.get(pk=job.pk).session.grades.get(source="judge", status="scored").value == 0.78
