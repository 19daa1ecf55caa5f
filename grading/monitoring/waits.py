"""Rules about people: a queue that nobody works off, and messages that don't arrive."""

import datetime as dt
from collections.abc import Iterable

from django.conf import settings
from django.db.models import Count, Max, Min, Q

from grading.models import Notice, ReviewAnswer, ReviewItem
from grading.models.notices import Channel, NoticeState
from grading.models.review import QueueEntry
from grading.models.sessions import yours
from grading.monitoring.graders import SOMETIMES
from grading.monitoring.rule import Finding, Rule, Severity, stamp


class ReviewWaits(Rule):
    """A31. What a rule put up and nobody looks at is a wrong reward that the bandit goes on learning from."""

    id = "A31"
    title = "Review is overdue"
    means = (
        "Opens when a session flagged by a rule has been awaiting review for longer than REVIEW_WAITS_HOURS (48 "
        "hours by default)."
    )
    todo = "Open the review queue. The first sessions move the bandit most, and each takes about ten seconds."
    severity = Severity.ADVISORY
    every = SOMETIMES
    notify_externally = True
    page = "admin:review"

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        late = Q(entered_as=QueueEntry.RULE, entered_at__lte=now - dt.timedelta(hours=settings.REVIEW_WAITS_HOURS))
        found = (
            ReviewItem.objects.open()
            .filter(yours())
            .aggregate(late=Count("pk", filter=late), oldest=Min("entered_at", filter=late), n=Count("pk"))
        )
        if found["late"]:
            wait = "session has" if found["late"] == 1 else "sessions have"
            answers = ReviewAnswer.objects.filter(yours()).order_by("-created_at")
            last = answers.values_list("created_at", flat=True).first()
            reviewed = f"The last review was on {stamp(last)}." if last else "Nothing has been reviewed yet."
            yield Finding(
                detail=f"{found['late']} {wait} been awaiting review for more than "
                f"{settings.REVIEW_WAITS_HOURS:g} hours, since {stamp(found['oldest'])}; {found['n']} are queued. "
                f"{reviewed} Until somebody looks, their rewards stay as they are and the bandit learns from them."
            )


class NoticesFail(Rule):
    """A32. Who is told that nobody can be told?"""

    id = "A32"
    title = "A notice could not be delivered"
    means = "Opens when the latest e-mail or webhook call was given up; closes when one gets through."
    todo = "Fix the channel (the notices page shows what it answered), restart, and send a test."
    severity = Severity.ADVISORY
    every = SOMETIMES
    page = "admin:notices"

    def look(self, now: dt.datetime) -> Iterable[Finding]:  # noqa: ARG002 - a rule's signature
        done = Notice.objects.exclude(state=NoticeState.QUEUED).order_by().values("channel").annotate(last=Max("pk"))
        for notice in Notice.objects.filter(pk__in=[row["last"] for row in done], state=NoticeState.FAILED):
            words = Channel(notice.channel).words
            yield Finding(
                about=notice.channel,
                detail=f"“{notice.subject}” did not arrive by {words}, and was given up after {notice.attempts} "
                f"attempts: {notice.last_error}",
            )
