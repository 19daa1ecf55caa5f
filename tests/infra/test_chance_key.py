"""The key that the site draws with: made once, whole, for one user alone; anything else is refused in words."""

import os
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from gradingsite.privacy import chance_key
from tests.infra.test_privacy import needs_root


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def begin(state: Path, **environment: str) -> subprocess.CompletedProcess:
    """A process of the site that reads its settings, and says its key."""
    command = [sys.executable, "-c", "import gradingsite.settings as s; print(s.CHANCE_KEY.hex())"]
    environment = {**os.environ, "GRADINGSITE_STATE": str(state), "DATABASE_URL": "", **environment}
    return subprocess.run(command, check=False, env=environment, umask=0o022, capture_output=True, text=True)


def test_it_is_made_once_for_its_owner_alone(tmp_path):
    path = tmp_path / "state" / "chance.key"
    key = chance_key(path)
    assert (len(key), mode(path), list(path.parent.iterdir())) == (32, 0o600, [path])
    assert chance_key(path) == key
    assert chance_key(tmp_path / "another.key") != key


def test_processes_that_start_at_the_same_time_end_with_the_same_key(tmp_path):
    with ThreadPoolExecutor(6) as pool:
        said = list(pool.map(lambda _: begin(tmp_path / "state"), range(6)))
    assert {each.stdout.strip() for each in said} == {(tmp_path / "state" / "chance.key").read_bytes().hex()}
    assert mode(tmp_path / "state" / "chance.key") == 0o600


def test_threads_that_make_it_at_once_get_the_same_key(tmp_path):
    for number in range(50):
        path = tmp_path / f"{number}.key"
        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(chance_key, [path] * 8))) == 1
    assert len(list(tmp_path.iterdir())) == 50


@pytest.mark.parametrize("content", [b"", b"half of it", b"x" * 33, b"x" * 2**16])
def test_a_file_that_is_not_one_key_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "chance.key"
    path.write_bytes(content)
    with pytest.raises(ImproperlyConfigured, match=r"32 random bytes .*found [\d,]+ bytes.*from a backup"):
        chance_key(path)
    assert path.read_bytes() == content


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(ImproperlyConfigured, match="found no regular file"):
        chance_key(tmp_path)
    with pytest.raises(ImproperlyConfigured, match="found no regular file"):
        chance_key(Path("/dev/zero"))
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ImproperlyConfigured, match="Cannot use CHANCE_KEY_FILE"):
        chance_key(tmp_path / "link")


def test_one_that_others_can_read_is_closed_and_that_is_said(tmp_path, capsys):
    path = tmp_path / "chance.key"
    key = chance_key(path)
    path.chmod(0o644)
    assert chance_key(path) == key
    assert mode(path) == 0o600
    assert "could be read by other users of this machine: closed it" in capsys.readouterr().err


@needs_root
def test_one_that_this_user_cannot_close_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "chance.key"
        chance_key(path)
        path.chmod(0o644)
        script = (
            "import os; from pathlib import Path; from gradingsite.privacy import chance_key; os.setuid(65534); "
            f"chance_key(Path({str(path)!r}))"
        )
        done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "ImproperlyConfigured: Cannot use CHANCE_KEY_FILE" in done.stderr


def test_the_environment_names_another_file(tmp_path):
    path = tmp_path / "elsewhere" / "key"
    said = begin(tmp_path / "state", CHANCE_KEY_FILE=str(path))
    assert said.stdout.strip() == path.read_bytes().hex()
    assert not (tmp_path / "state" / "chance.key").exists()


def test_a_site_with_a_broken_key_does_not_start(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(b"too short")
    said = begin(tmp_path / "state", CHANCE_KEY_FILE=str(path))
    assert said.returncode == 1
    assert "found 9 bytes" in said.stderr


def test_a_key_left_open_in_the_state_folder_is_closed_at_the_start(tmp_path):
    begin(tmp_path / "state")
    (tmp_path / "state" / "chance.key").chmod(0o644)
    assert "closed it" in begin(tmp_path / "state").stderr
    assert mode(tmp_path / "state" / "chance.key") == 0o600
