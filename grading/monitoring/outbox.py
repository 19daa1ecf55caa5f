"""Notices about alarms and weeks: queued as a row for each channel, in the transaction of their cause."""

import datetime as dt
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.urls import reverse

from grading import clock
from grading.models import Alarm, Notice, WeeklyLetter
from grading.models.notices import About, Channel, ChannelState
from grading.monitoring.notices.channels import Destination, destinations, letter_destinations
from grading.monitoring.rule import MERGED_INTO, Rule, Severity
from grading.plain import plain_text

SUBJECT_LIMIT = 200


def notifies_externally(rule: Rule) -> bool:
    """Whether notices are sent about this rule's alarms: by NOTIFY_RULES if set, otherwise by the rule itself."""
    if settings.NOTIFY_RULES:
        return rule.id in {MERGED_INTO.get(name, name) for name in settings.NOTIFY_RULES}
    return rule.severity is Severity.ALARM or rule.notify_externally


def queue_opened(alarm: Alarm, rule: Rule) -> None:
    """Queue notices that an alarm was opened. Call it in the transaction that opened it."""
    if notifies_externally(rule):
        content = _describe(alarm, rule)
        _queue(destinations(), About.OPENED, content=content, paragraphs=_paragraphs(content), alarm=alarm)


def queue_resolved(alarm: Alarm, rule: Rule, now: dt.datetime) -> None:
    """Queue notices that an alarm was resolved, to the channels that were notified of it."""
    notices = Notice.objects.filter(alarm=alarm, about=About.OPENED).select_related("to")
    notified = [Destination(kind=Channel(notice.channel), row=notice.to) for notice in notices]
    still_on = [place for place in notified if place.row is None or place.row.state == ChannelState.ON]
    content = {**_describe(alarm, rule), "resolved_at": _iso(now)}
    paragraphs = (f"This no longer holds: {rule.title}.", f"The alarm said: {alarm.detail}", content["link"])
    _queue(still_on, About.RESOLVED, content=content, paragraphs=paragraphs, alarm=alarm)


def queue_test(by: Any, to: Iterable[Destination]) -> list[Notice]:
    """Queue a test message to each of these destinations, for the operator `by`."""
    content = {
        "title": "A test",
        "detail": f"This is a test that {by.get_username()} sent. Notices arrive on this channel.",
        "what_to_do": "Nothing.",
        "link": link("admin:notices"),
    }
    return _queue(to, About.TEST, content=content, paragraphs=_paragraphs(content), by=by)


def queue_letter(letter: WeeklyLetter) -> None:
    """Queue a weekly letter to the channels that get it. Call it in the transaction that wrote it."""
    address = f"{link('admin:letter')}?week={letter.monday.isoformat()}"
    content = {
        "title": letter.subject,
        "week": letter.monday.isoformat(),
        "sentences": letter.sentences,
        "link": address,
    }
    paragraphs = (*letter.sentences, address)
    _queue(letter_destinations(), About.LETTER, content=content, paragraphs=paragraphs, letter=letter)


def link(page: str) -> str:
    """The external address of a page."""
    site = settings.SITE_URL.rstrip("/") or f"http://{settings.HOST}:{settings.PORT}"
    return site + reverse(page)


def chat_text(lines: Iterable[str]) -> str:
    """The text that a chat such as Slack or Mattermost shows of a webhook's JSON.

    It is escaped, so that a session's name can't mention people (<!channel>, @all) or disguise a link.
    """
    return "\n".join(lines).translate({ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord("@"): "@\u200b"})


def _paragraphs(content: Mapping[str, Any]) -> Sequence[str]:
    """The paragraphs of an e-mail with this content: what is wrong, what to do, and the link."""
    return content["detail"], f"What to do: {content['what_to_do']}", content["link"]


def _describe(alarm: Alarm, rule: Rule) -> dict[str, Any]:
    """The fields of a webhook's JSON that describe an alarm."""
    return {
        "rule": rule.id,
        "severity": rule.severity,
        "title": rule.title,
        "detail": alarm.detail,
        "what_to_do": rule.todo,
        "link": link(rule.page),
        "opened_at": _iso(alarm.opened_at),
    }


def _queue(
    to: Iterable[Destination], about: About, *, content: dict[str, Any], paragraphs: Sequence[str], **columns: Any
) -> list[Notice]:
    """Queue a message to each destination: an e-mail of these paragraphs, or the content as JSON.

    `columns` are further columns of the notices' rows.
    """
    ended = " (no longer holds)" if about is About.RESOLVED else ""
    subject = plain_text(f"[gradingsite] {content['title']}{ended}", SUBJECT_LIMIT)
    subject = subject.replace("\n", " ").replace("\r", " ")  # a title may have several lines
    now = clock.now()
    queued = []
    for destination in to:
        key = uuid.uuid4()
        is_email = destination.kind is Channel.EMAIL
        message = {"notice": str(key), "about": about, **content, "text": chat_text([subject, *paragraphs])}
        body = "\n\n".join(paragraphs) + "\n" if is_email else json.dumps(message)
        queued.append(
            Notice.objects.create(
                key=key,
                channel=destination.kind,
                to=destination.row,
                about=about,
                subject=subject,
                body=body,
                next_attempt_at=now,
                **columns,
            )
        )
    return queued


def _iso(moment: dt.datetime) -> str:
    """A moment in ISO 8601, in UTC, to the second."""
    return moment.astimezone(dt.UTC).isoformat(timespec="seconds")
