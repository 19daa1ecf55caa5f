"""The HTTP API: sessions in, their chain out, selections, posteriors. Bearer tokens, no cookies."""

from grading.api.views import api

__all__ = ["api"]
