"""The Celery application. Its messages only wake workers up: the database is the queue (L7)."""

import os

from celery import Celery
from kombu.transport.redis import Channel

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gradingsite.settings")

app = Celery("gradingsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

# A worker that loses its broker must not give its messages back to it: kombu does so through a connection that it may
# have let go already, and the AttributeError ends the worker. What a lost message was about, the sweep finds.
Channel.do_restore = False
