"""Classifies why a model call of the harness itself failed, from its error text and HTTP status."""

import re
from typing import Final

MAX_TEXT: Final = 4_000
QUOTA: Final = (
    r"(hit|reached|exceeded) your .{0,40}limit|usage.?limit|quota|credit balance|billing|payment required|"
    r"insufficient.{0,20}(credit|fund)|out of (extra )?(usage|credits)"
)
AUTH: Final = r"authenticat|unauthori[sz]ed|permission_error|api.?key|log ?in (has )?expired|/login|oauth|not logged in"
# In this order: a used-up quota also answers 429, and its text may mention logging in.
RULES: Final = (
    ("quota", QUOTA),
    ("auth", AUTH),
    ("overloaded", r"overloaded|server_is_busy|server.?busy|temporarily unavailable"),
    ("rate_limit", r"rate.?limit|too many requests"),
)
BY_STATUS: Final = {401: "auth", 402: "quota", 403: "auth", 429: "rate_limit", 503: "overloaded", 529: "overloaded"}
STATUS: Final = re.compile(r"(?:API Error|status|HTTP|error)\D{0,40}\b(4\d\d|5\d\d)\b", re.IGNORECASE)


def failure_reason(text: str, status: int | None = None) -> str:
    """One of quota, rate_limit, auth, overloaded, other: from the text, else from `status`, the HTTP status if any."""
    text = text[:MAX_TEXT]
    for reason, pattern in RULES:
        if re.search(pattern, text, re.IGNORECASE):
            return reason
    if status is None and (match := STATUS.search(text)):
        status = int(match[1])
    return BY_STATUS.get(status or 0, "other")
