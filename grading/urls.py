"""URLs for programs: the API, the hook file, health checks and metrics."""

from django.urls import path

from grading.agent.views import submit_session
from grading.api import api, watching, webhooks

urlpatterns = [
    path("api/v1/", api.urls),
    path("agent/submit_session.py", submit_session, name="submit_session"),
    path("hooks/github/<int:pk>/", webhooks.github_event, name="github_event"),
    path("healthz/live", watching.live, name="live"),
    path("healthz/ready", watching.ready, name="ready"),
    path("metrics", watching.figures, name="metrics"),
]
