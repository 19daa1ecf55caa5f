"""The site's secret keys. Hosts that share a database need the same keys, or one can't read what another wrote."""

import hashlib
import hmac
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection, transaction

from gradingsite.state import site_command

LABEL = b"gradingsite/fingerprint/1"
FILES = {"SECRET_KEY": "secret_key", "CHANCE_KEY": "chance.key"}


class DifferentKeys(ImproperlyConfigured):
    """The keys of this host are not the site's. The message names them and says what to do."""


def fingerprint(key: bytes) -> str:
    """64 bits in hexadecimal digits that identify a key without revealing anything about it."""
    return hmac.digest(key, LABEL, hashlib.sha256).hex()[:16]


def require_same() -> None:
    """Raise DifferentKeys unless this host has the site's keys: those of the first host that started.

    If the site's SECRET_KEY is among this host's SECRET_KEY_FALLBACKS, this host's SECRET_KEY becomes the site's. Only
    PostgreSQL is checked, because hosts cannot share a SQLite database. If the database does not answer, nothing is
    raised.
    """
    if connection.vendor != "postgresql":
        return
    try:
        different = record_fingerprints()
    except DatabaseError:
        return
    if different:
        files = " and ".join(f"{name} (or copy {FILES[name]} into {settings.STATE_DIR})" for name in different)
        raise DifferentKeys(
            f"This host has another {' and another '.join(different)} than the site’s other hosts, which could not "
            f"read what it writes. Set {files} as on the other hosts. To change SECRET_KEY, add the new one to "
            "SECRET_KEY_FALLBACKS on every host first (docs/operate.md). If the site’s keys are lost, accept this "
            f"host’s: {site_command('accept_keys')}"
        )


def record_fingerprints(*, replace: bool = False) -> list[str]:
    """Store the fingerprints of this host's keys if the site has none yet. Returns the names of keys that differ.

    With `replace`, this host's keys become the site's.
    """
    rows = apps.get_model("grading", "KeyFingerprint").objects
    different = []
    with transaction.atomic():
        for name, (current, *earlier) in own_fingerprints().items():
            row, _new = rows.select_for_update().get_or_create(name=name, defaults={"fingerprint": current})
            if row.fingerprint != current and (replace or row.fingerprint in earlier):
                rows.filter(pk=name).update(fingerprint=current)
            elif row.fingerprint != current:
                different.append(name)
    return different


def different(cursor: Any) -> list[str]:
    """The names of this host's keys that differ from the site's. A key that the site lacks so far doesn't differ."""
    own = own_fingerprints()
    cursor.execute("SELECT name, fingerprint FROM grading_keyfingerprint ORDER BY name")
    return [name for name, fingerprint in cursor.fetchall() if fingerprint not in own.get(name, [fingerprint])]


def own_fingerprints() -> dict[str, list[str]]:
    """The fingerprints of this host's keys, by name: of the present key, then of those in SECRET_KEY_FALLBACKS."""
    secret_keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return {
        "SECRET_KEY": [fingerprint(key.encode()) for key in secret_keys],
        "CHANCE_KEY": [fingerprint(settings.CHANCE_KEY)],
    }
