"""What a request with a live token needs before its body is read: a known length, room, and a quota that is left."""

import datetime as dt

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from grading import disk
from grading.api import uploads
from grading.intake import token_quota
from grading.models import ApiToken


def require(request: HttpRequest, token: ApiToken, now: dt.datetime) -> None:
    """Count the request against its token's quota; or raise UploadRefused, NoRoom or OverQuota, and count nothing."""
    size = 0
    if request.method not in {"GET", "HEAD"}:
        is_upload = request.path == reverse("api:submit_session")
        size = uploads.size(request) if is_upload else uploads.length(request, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        if is_upload and disk.is_short(size):
            raise disk.NoRoom
    token_quota.spend(token, size, now)
