"""Backups of a site at work, by real processes: what a restored one holds, and how the rest comes again."""

import json
import re
from pathlib import Path

import pytest

from tests.backups.places import AGENT, Place, Uploads


def sessions(place: Place) -> int:
    """How many there are, where nothing is missing or damaged."""
    return int(re.search(r"([\d,]+) sessions", place.run("verify"))[1].replace(",", ""))


@pytest.mark.worker
def test_a_backup_made_while_sessions_come_is_restored_and_the_hooks_send_the_rest(new_place, tmp_path):
    """The restored site has every session of the backup, and after the hooks have sent again every session there is."""
    site, backups = new_place(), tmp_path / "backups"
    token = site.run("issue_token", AGENT).strip()
    with site.serving(), Uploads(site, token, tmp_path) as uploads:
        uploads.wait_for(4)
        site.run("backup", str(backups))
        uploads.wait_for(4)
    (backup,) = (path for path in backups.iterdir() if path.is_dir())
    backed_up = json.loads((backup / "manifest.json").read_text())["rows"]["grading_session"]
    place = new_place(ready=False)
    output = place.run("restore", str(backups))
    assert sessions(place) == backed_up
    assert 4 <= backed_up <= uploads.count - 4
    with place.serving():
        uploads.resend(re.search(r"--resend (\S+)", output)[1], to=place)
    assert sessions(place) == uploads.count
    assert readable_by_others(backups, place.state) == []


def readable_by_others(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o077]
