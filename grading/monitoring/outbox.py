"""What people are told of alarms outside the site: a row for each channel, in the transaction that made the alarm."""

import datetime as dt
import json
import uuid
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.urls import reverse

from grading import clock
from grading.models import Alarm, Notice
from grading.models.notices import About, Channel, ChannelState
from grading.monitoring.notices.channels import Place, places
from grading.monitoring.rule import MERGED_INTO, Rule, Severity
from grading.plain import plain_text

SUBJECT_LIMIT = 200


def notifies_externally(rule: Rule) -> bool:
    """Whether people hear of this rule's alarms: those of NOTIFY_RULES, or else what the rule itself wants."""
    if settings.NOTIFY_RULES:
        return rule.id in {MERGED_INTO.get(name, name) for name in settings.NOTIFY_RULES}
    return rule.severity is Severity.ALARM or rule.notify_externally


def opened(alarm: Alarm, rule: Rule) -> None:
    """Queue the news of an alarm that was just opened. Call it in the transaction that opened it."""
    if notifies_externally(rule):
        _queue(places(), About.OPENED, alarm=alarm, content=_describe(alarm, rule))


def resolved(alarm: Alarm, rule: Rule, now: dt.datetime) -> None:
    """Queue the news that an alarm no longer holds, to whoever was told that it did."""
    notices = Notice.objects.filter(alarm=alarm, about=About.OPENED).select_related("to")
    heard = [Place(kind=Channel(each.channel), row=each.to) for each in notices]
    still = [place for place in heard if place.row is None or place.row.state == ChannelState.ON]
    _queue(still, About.RESOLVED, alarm=alarm, content={**_describe(alarm, rule), "resolved_at": _iso(now)})


def test(by: Any, to: Iterable[Place]) -> list[Notice]:
    """Queue a test message to each of these places, for the operator `by`."""
    content = {
        "title": "A test",
        "detail": f"{by.get_username()} wanted to see whether notices arrive. This one did.",
        "what_to_do": "Nothing.",
        "link": link("admin:notices"),
    }
    return _queue(to, About.TEST, by=by, content=content)


def link(page: str) -> str:
    """The address of a page, as it is reached from outside."""
    site = settings.SITE_URL.rstrip("/") or f"http://{settings.HOST}:{settings.PORT}"
    return site + reverse(page)


def chat_text(lines: Iterable[str]) -> str:
    """What a chat such as Slack or Mattermost shows of a webhook's JSON.

    Nothing that a session's name holds calls people there (<!channel>, @all) or is a link in disguise.
    """
    return "\n".join(lines).translate({ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord("@"): "@\u200b"})


def _describe(alarm: Alarm, rule: Rule) -> dict[str, Any]:
    return {
        "rule": rule.id,
        "severity": rule.severity,
        "title": rule.title,
        "detail": alarm.detail,
        "what_to_do": rule.todo,
        "link": link(rule.page),
        "opened_at": _iso(alarm.opened_at),
    }


def _queue(to: Iterable[Place], about: About, *, content: dict[str, Any], **columns: Any) -> list[Notice]:
    ended = " (no longer holds)" if about is About.RESOLVED else ""
    # One line: a session's name may have more.
    subject = (
        plain_text(f"[gradingsite] {content['title']}{ended}", SUBJECT_LIMIT).replace("\n", " ").replace("\r", " ")
    )
    parts = (content["detail"], f"What to do: {content['what_to_do']}", content["link"])
    if about is About.RESOLVED:
        parts = (f"This no longer holds: {content['title']}.", f"It had said: {content['detail']}", content["link"])
    queued, now = [], clock.now()
    for place in to:
        key = uuid.uuid4()
        is_email = place.kind is Channel.EMAIL
        message = {"notice": str(key), "about": about, **content, "text": chat_text([subject, *parts])}
        body = "\n\n".join(parts) + "\n" if is_email else json.dumps(message)
        queued.append(
            Notice.objects.create(
                key=key,
                channel=place.kind,
                to=place.row,
                about=about,
                subject=subject,
                body=body,
                next_attempt_at=now,
                **columns,
            )
        )
    return queued


def _iso(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).isoformat(timespec="seconds")
