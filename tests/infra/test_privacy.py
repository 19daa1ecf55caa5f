"""The state folder is closed to the other users of the machine, from the first write on or at the next start."""

import os
import pwd
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from gradingsite import broker
from gradingsite.privacy import keep_private
from tests.infra.test_supervisor import read_until
from tests.processes import started, wait_for
from tests.template_database import copy_sqlite


@pytest.fixture
def place():
    """A folder that every user of the machine can go through, as those in tmp_path are not."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def fill(state: Path) -> Path:
    """What a site left whose user's umask was 022."""
    files = ("db.sqlite3", "db.sqlite3-wal", "secret_key", "broker/broker.conf", "evidence/ab/abc.zst", "mine.txt")
    for name in files:
        path = state / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secret")
        path.chmod(0o644)
    for folder in (state, *(path for path in state.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    return state


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def begin(state: Path) -> str:
    """What a process of the site says as it reads its settings."""
    environment = {**os.environ, "GRADINGSITE_STATE": str(state), "DATABASE_URL": "", "SECRET_KEY": ""}
    command = [sys.executable, "-c", "import gradingsite.settings"]
    options = {"env": environment, "umask": 0o022, "capture_output": True, "text": True}
    return subprocess.run(command, check=True, **options).stderr


def can(*command: object) -> bool:
    """Whether another user can."""
    nobody = pwd.getpwnam("nobody")
    account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    done = subprocess.run(list(map(str, command)), check=False, cwd="/", capture_output=True, **account)
    return done.returncode == 0


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user, to try as them")


@needs_root
def test_another_user_can_list_and_read_nothing_of_a_new_state_folder(place):
    state = place / "state"
    assert begin(state) == ""
    assert can("ls", place)
    assert not can("ls", state)
    assert not can("cat", state / "secret_key")
    assert (mode(state), mode(state / "secret_key")) == (0o700, 0o600)


@needs_root
def test_another_user_can_list_and_read_nothing_of_one_that_was_open_after_a_start(place):
    state = fill(place / "state")
    files = [path for path in state.rglob("*") if path.is_file()]
    assert all(can("cat", path) for path in files)
    begin(state)
    assert not can("ls", state)
    assert not any(can("cat", path) for path in files)
    state.chmod(0o755)
    assert [path.name for path in files if can("cat", path)] == ["mine.txt"]


def test_closing_a_folder_is_said_once_in_a_line(place):
    state = fill(place / "state")
    line = f"{state} could be read by other users of this machine: closed it (9 files and folders).\n"
    assert begin(state) == line
    assert begin(state) == ""


def test_a_file_that_was_opened_since_is_closed_again_and_an_owners_own_rights_stay(tmp_path):
    state = fill(tmp_path / "state")
    keep_private(state)
    (state / "db.sqlite3").chmod(0o440)
    keep_private(state)
    assert mode(state / "db.sqlite3") == 0o400


def test_what_a_link_leads_to_and_what_the_site_did_not_write_keep_their_modes(tmp_path):
    elsewhere = fill(tmp_path / "elsewhere")
    state = fill(tmp_path / "state")
    (state / "evidence" / "link").symlink_to(elsewhere)
    (state / "cache").symlink_to(elsewhere)
    keep_private(state)
    assert mode(elsewhere) == 0o755
    assert mode(elsewhere / "evidence" / "ab" / "abc.zst") == mode(state / "mine.txt") == 0o644
    assert mode(state / "evidence" / "ab" / "abc.zst") == 0o600


def test_a_folder_that_many_users_write_to_is_refused_and_left_as_it_is(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(ImproperlyConfigured, match="use a folder of the site's own"):
        keep_private(shared)
    assert mode(shared) == 0o1777


# Somebody else on the machine, who lists the folders and reads the files again and again, and prints what they get.
LOOKS = """
cd "$0" || exit
while :; do
    ls state state/tmp state/evidence state/broker state/cache
    cat state/db.sqlite3 state/db.sqlite3-wal state/secret_key state/chance.key state/*.lock state/write.gate
    cat state/beat-schedule* state/broker/* state/broker/*/* state/tmp/* state/evidence/*/*
    sleep 0.02
done 2>/dev/null
"""


@needs_root
@pytest.mark.worker
@pytest.mark.own_database
@pytest.mark.parametrize("before", [pytest.param("new", marks=pytest.mark.slow), "open"])
def test_while_the_whole_site_runs_another_user_gets_nothing_from_the_first_start_on(place, before, django_db_setup):
    state, came = place / "state", place / "came"
    if before == "open":
        fill(state)
        for name in ("db.sqlite3", "db.sqlite3-wal", "secret_key", "broker/broker.conf"):
            (state / name).unlink()  # what is no database is no use to the site
        copy_sqlite(state / "db.sqlite3")
        (state / "db.sqlite3").chmod(0o644)
        begin(state)
    environment = {**os.environ, "DATABASE_URL": "", "REDIS_URL": "", "SECRET_KEY": "", "GRADINGSITE_STATE": str(state)}
    environment["PORT"] = str(broker.free_port())
    nobody = pwd.getpwnam("nobody")
    account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    with came.open("wb") as output, started(["sh", "-c", LOOKS, str(place)], stdout=output, cwd="/", **account):
        up = {"env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "umask": 0o022}
        with started([sys.executable, "manage.py", "up"], **up) as process:
            read_until(process, r"samples +\| done")
        process.stdout.close()
        assert came.read_bytes() == b""
        assert {"secret_key", "tmp", "broker", "evidence"} <= {path.name for path in state.iterdir()}
        (state / "secret_key").chmod(0o644)
        state.chmod(0o755)
        wait_for(lambda: (state / "secret_key").read_bytes() in came.read_bytes())  # they did look
