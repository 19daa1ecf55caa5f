"""SECRET_KEY: a short one starts no new site, an old site is told how to change it, and a change loses nothing."""

import subprocess
import sys

import pytest
from django.conf import settings

from gradingsite.sealing import seal
from tests.backups.test_schema import CELERY
from tests.infra.test_supervisor import read_until
from tests.processes import for_the_site, stop

pytestmark = pytest.mark.django_db(transaction=True)

SHORT, NEW = "x" * 31, "x" * 32


@pytest.mark.parametrize("command", ["migrate", "up"])
def test_short_key_starts_no_new_site(new_place, command):
    """A new database stays empty, and the message says what was expected, what came and what to do."""
    place = new_place(ready=False, SECRET_KEY=SHORT)
    message = place.run(command, ends=1)
    for words in ("at least 32 characters", "got 31", "Leave SECRET_KEY unset", "secrets.token_urlsafe"):
        assert words in message
    assert SHORT not in message
    assert "The database is empty" in place.run("verify", ends=1)


@pytest.mark.worker
@pytest.mark.parametrize(
    "program", [("-m", "gradingsite.web"), (*CELERY, "worker"), ("manage.py", "up")], ids=["web", "worker", "up"]
)
def test_short_key_of_an_existing_site_is_warned_about(new_place, program):
    """Each program starts, and says how to change the key without losing what the old one protects."""
    place = new_place(SECRET_KEY=SHORT, LOG_LEVEL="WARNING")
    process = place.start(*program)
    try:
        warning = read_until(process, "SECRET_KEY has 31 characters")[-1]
    finally:
        stop(process)
        process.stdout.close()
    assert "SECRET_KEY_FALLBACKS" in warning
    assert SHORT not in warning


def test_rotation_keeps_secrets_and_sign_ins(client, site):
    """With the old key in SECRET_KEY_FALLBACKS, a sealed judge's key is still read and people stay signed in."""
    client.force_login(site.person("olga", "operator"))
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    sealed = seal("sk-ant-the-judges-key-h7Qw", purpose="test")
    code = f"""if True:
        import django
        django.setup()
        from django.test import Client
        from gradingsite.sealing import unseal
        visitor = Client(SERVER_NAME="localhost")
        visitor.cookies[{settings.SESSION_COOKIE_NAME!r}] = {cookie!r}
        for _ in range(2):
            print(visitor.get("/quota/").status_code)
        print(unseal({sealed!r}, purpose="test"))
    """
    environment = {**for_the_site(), "SECRET_KEY": NEW, "SECRET_KEY_FALLBACKS": f"older, {settings.SECRET_KEY}"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["200", "200", "sk-ant-the-judges-key-h7Qw"], done.stderr
