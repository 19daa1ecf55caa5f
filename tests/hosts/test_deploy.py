"""The files in deploy/ name roles, settings and files that exist. No container engine runs here."""

import re
import shutil
import subprocess

import pytest
import yaml
from django.conf import settings

from grading.management.commands.up import ROLES

pytestmark = pytest.mark.pure

DEPLOY = settings.BASE_DIR / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SITE_HOSTS = {name: each for name, each in COMPOSE["services"].items() if each["image"] == "gradingsite"}
OF_OTHERS = {"POSTGRES_PASSWORD", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}


def test_compose_has_two_web_hosts_two_workers_and_a_scheduler():
    roles = [host["command"] for host in SITE_HOSTS.values()]
    assert sorted(roles) == [["beat"], ["web"], ["web"], ["worker"], ["worker"]]
    assert all(role in ROLES for (role,) in roles)


def test_containers_of_the_site_write_to_their_own_volume_alone():
    volumes = [host["volumes"] for host in SITE_HOSTS.values()]
    assert all(host["read_only"] and host["cap_drop"] == ["ALL"] for host in SITE_HOSTS.values())
    assert len({volume for (volume,) in volumes}) == len(SITE_HOSTS)
    named = {volume.partition(":")[0] for each in COMPOSE["services"].values() for volume in each.get("volumes", ())}
    assert {name for name in named if not name.startswith(".")} == set(COMPOSE["volumes"])


def test_settings_in_the_example_exist_and_contain_no_secret():
    names = re.findall(r"^([A-Z_]+)=", (DEPLOY / "example.env").read_text(), re.MULTILINE)
    known = set(re.findall(r"`([A-Z_]+)`", (settings.BASE_DIR / "docs" / "configure.md").read_text()))
    assert set(names) - OF_OTHERS <= known
    for name in ("SECRET_KEY", "CHANCE_KEY", "AWS_SECRET_ACCESS_KEY"):
        assert f"\n{name}=REPLACE" in (DEPLOY / "example.env").read_text()


def test_the_image_is_made_of_files_that_exist():
    lines = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ").splitlines()
    copied = [word for line in lines if line.startswith("COPY") for word in line.split()[1:-1]]
    assert copied
    assert [name for name in copied if not (settings.BASE_DIR / name).exists()] == []
    assert 'ENTRYPOINT ["python", "manage.py", "up"]' in lines
    needed = {"manage.py", "bandit", "grading", "gradingsite", "templates", "docs", "CHANGELOG.md"}
    assert needed <= set(copied)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
@pytest.mark.parametrize("role", ROLES)
def test_systemd_accepts_the_units(role, tmp_path):
    unit = (DEPLOY / "systemd" / f"gradingsite-{role}.service").read_text()
    assert f"manage.py up {role}\n" in unit
    # Its programs must exist where it is verified.
    here = unit.replace("/srv/gradingsite/", f"{settings.BASE_DIR}/")
    path = tmp_path / f"gradingsite-{role}.service"
    path.write_text(here)
    verified = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, check=False)
    assert path.name not in verified.stderr, verified.stderr
