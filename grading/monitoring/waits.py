"""Rules about people: a queue that nobody works off, and messages that don't arrive."""

import datetime as dt
from collections.abc import Iterable

from django.conf import settings
from django.db.models import Count, Max, Min, Q

from grading.models import Notice, ReviewAnswer, ReviewItem
from grading.models.notices import ChannelState, NoticeState
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
    todo = (
        "Mend the channel on the notices page, which shows what it answered, and send a test. One from the environment "
        "is changed there, with a restart."
    )
    severity = Severity.ADVISORY
    every = SOMETIMES
    page = "admin:notices"

    def look(self, now: dt.datetime) -> Iterable[Finding]:  # noqa: ARG002 - a rule's signature
        in_use = Q(to=None) | Q(to__state=ChannelState.ON)
        done = Notice.objects.filter(in_use).exclude(state=NoticeState.QUEUED).order_by()
        last = [row["last"] for row in done.values("channel", "to").annotate(last=Max("pk"))]
        for notice in Notice.objects.filter(pk__in=last, state=NoticeState.FAILED).select_related("to"):
            yield Finding(
                about=notice.channel if notice.to is None else f"{notice.channel} {notice.to.pk}",
                detail=f"“{notice.subject}” did not arrive by {notice.by_words}, and was given up after "
                f"{notice.attempts} attempts: {notice.last_error}",
            )
