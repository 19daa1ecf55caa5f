"""The HTTP API: sessions in, their chain out, selections, posteriors. Bearer tokens, no cookies.

In: requests of agents. Out: JSON, and errors that say what was expected, what came and what to do.
Start with `views`: one function an operation; `uploads` reads a submission, `schemas` is what the page shows.
"""

from grading.api.views import api

__all__ = ["api"]
