"""The Celery application. Its messages only ring the doorbell: the database is the queue (L7)."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gradingsite.settings")

app = Celery("gradingsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
