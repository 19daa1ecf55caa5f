"""The addresses of programs: the API and the hook file."""

from django.urls import path

from grading.agent.views import submit_session
from grading.api import api

urlpatterns = [
    path("api/v1/", api.urls),
    path("agent/submit_session.py", submit_session, name="submit_session"),
]
