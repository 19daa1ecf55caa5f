"""How gunicorn serves the site. Read by `gunicorn -c python:gradingsite.web`."""

import os
from typing import Any

from gradingsite.settings import HOST, PORT

bind = f"[{HOST}]:{PORT}" if ":" in HOST else f"{HOST}:{PORT}"
worker_class = "gthread"
workers = int(os.environ.get("WEB_CONCURRENCY", "2"))
threads = 8
preload_app = True  # a site that cannot start says so before it claims to serve
graceful_timeout = 5
loglevel = "warning"
control_socket_disable = True


def when_ready(_server: Any) -> None:
    print(f"serving http://{bind}/", flush=True)  # noqa: T201  the supervisor's log reads it
