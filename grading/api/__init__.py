"""The HTTP API for agents: submit sessions, read grades and posteriors, make selections. Bearer tokens, no cookies.

In: requests of agents. Out: JSON, and errors that say what was expected, what came and what to do.
Start with `views`, which has one function for each operation; `uploads` reads a submission, and `schemas` has the
bodies of requests and replies, which the API's page shows.
"""

from grading.api.views import api

__all__ = ["api"]
