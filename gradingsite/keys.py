"""The site's secret keys. Hosts that share a database must have the same, or one can't read what another wrote."""

import hashlib
import hmac

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection, transaction

LABEL = b"gradingsite/fingerprint/1"
FILES = {"SECRET_KEY": "secret_key", "CHANCE_KEY": "chance.key"}


class DifferentKeys(ImproperlyConfigured):
    """The keys of this host are not the site's. The message names them and says what to do."""


def fingerprint(key: bytes) -> str:
    """64 bits in hexadecimal digits, which identify a key and reveal nothing of it."""
    return hmac.digest(key, LABEL, hashlib.sha256).hex()[:16]


def require_same() -> None:
    """Raise DifferentKeys unless this host has the keys of the site, which are those of the first host that started.

    Another SECRET_KEY is accepted if the site's is among this host's SECRET_KEY_FALLBACKS: then it becomes the site's.
    Only on PostgreSQL: hosts cannot share a SQLite database. A database that does not answer passes.
    """
    if connection.vendor != "postgresql":
        return
    try:
        different = record()
    except DatabaseError:
        return
    if different:
        files = " and ".join(f"{name} (or copy {FILES[name]} into {settings.STATE_DIR})" for name in different)
        raise DifferentKeys(
            f"This host has another {' and another '.join(different)} than the site’s other hosts, which could not "
            f"read what it writes. Set {files} as on the other hosts. To change SECRET_KEY, add the new one to "
            "SECRET_KEY_FALLBACKS on every host first (docs/operate.md). If the site’s keys are lost, accept this "
            "host’s: manage.py accept_keys"
        )


def record(*, replace: bool = False) -> list[str]:
    """Store the fingerprints of this host's keys if the site has none yet. Returns the names of keys that differ.

    With `replace`, this host's keys become the site's.
    """
    fingerprints = apps.get_model("grading", "KeyFingerprint").objects
    own_keys = {
        "SECRET_KEY": [key.encode() for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)],
        "CHANCE_KEY": [settings.CHANCE_KEY],
    }
    different = []
    with transaction.atomic():
        for name, keys in own_keys.items():
            current, *earlier = map(fingerprint, keys)
            row, _new = fingerprints.select_for_update().get_or_create(name=name, defaults={"fingerprint": current})
            if row.fingerprint != current and (replace or row.fingerprint in earlier):
                fingerprints.filter(pk=name).update(fingerprint=current)
            elif row.fingerprint != current:
                different.append(name)
    return different
