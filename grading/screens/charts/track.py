"""The line under a slider of time: outages red on it, where they were."""

import datetime as dt
from collections.abc import Iterable

from django.utils.safestring import SafeString

from grading.screens.charts.outages import OutageSpan
from grading.screens.charts.svg import wide, wide_rect

HEIGHT, THICK = 16.0, 4.0
# In percent: a short outage is still seen.
LEAST = 0.6


def track(outages: Iterable[OutageSpan], since: dt.datetime, until: dt.datetime) -> SafeString:
    """The time from `since` to `until` as a line with the outages of that time on it."""
    shown = [each for each in outages if each.until > since and each.since < until]
    top = (HEIGHT - THICK) / 2
    marks = [f'<rect class="f-rail" x="0%" y="{HEIGHT / 2 - 1:g}" width="100%" height="2"/>']
    for each in shown:
        left = 100 * max((each.since - since) / (until - since), 0.0)
        right = 100 * min((each.until - since) / (until - since), 1.0)
        width = max(right - left, LEAST)
        marks.append(wide_rect("f-alarm", (min(left, 100 - width), top, width, THICK), each.words))
    named = "; ".join(each.words for each in shown) or "no outage"
    return wide(HEIGHT, "".join(marks), f"From {since:%-d %b} to {until:%-d %b}: {named}")
