"""All mail goes through the site's mail server. Each channel that had one of its own loses it, and History says so."""

import base64
import hashlib
import json
from typing import Any

from django.conf import settings
from django.db import migrations


def remove_servers(apps: Any, schema_editor: Any) -> None:
    """A channel that was encrypted with another secret can't be read, here as everywhere; it stays as it is."""
    from cryptography.fernet import Fernet, InvalidToken, MultiFernet

    database = schema_editor.connection.alias
    event = apps.get_model("grading", "AuditEvent").objects.using(database)
    secrets = [str(settings.SECRET_KEY), *map(str, settings.SECRET_KEY_FALLBACKS)]
    digests = [hashlib.sha256(f"notice channel/{secret}".encode()).digest() for secret in secrets]
    fernet = MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])
    for row in apps.get_model("grading", "NoticeChannel").objects.using(database).filter(kind="email").exclude(sealed=""):
        try:
            target = json.loads(fernet.decrypt(row.sealed.encode()))
        except InvalidToken:
            continue
        server = target.pop("server")
        row.sealed = fernet.encrypt(json.dumps(target).encode()).decode()
        row.save(update_fields=["sealed"])
        if server is not None:
            event.create(
                kind="token",
                what=f"removed the mail server of the e-mail “{row.name}”",
                detail=f"It was {server['host']}. Since this upgrade EMAIL_HOST sets the mail server for all channels.",
            )


class Migration(migrations.Migration):
    dependencies = [("grading", "0073_delete_person_zones")]

    operations = [migrations.RunPython(remove_servers, migrations.RunPython.noop, elidable=True)]
