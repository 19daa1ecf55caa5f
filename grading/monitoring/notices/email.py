"""Notices by e-mail, through the mail server that Django's own settings name."""

import smtplib

from django.conf import settings
from django.core.mail import EmailMessage

from grading.models import Notice
from grading.monitoring.notices.outcomes import DeliveryRefused, Unreachable

PERMANENT = 500


def send(notice: Notice) -> None:
    """One message to all addresses; one that arrives twice has one id. Raises DeliveryRefused or Unreachable."""
    if not settings.NOTIFY_EMAIL:
        raise DeliveryRefused("no address is configured any more (NOTIFY_EMAIL)")
    sender = settings.DEFAULT_FROM_EMAIL
    host = sender.rpartition("@")[2].strip("<> ") or "localhost"
    headers = {"Message-ID": f"<{notice.key}@{host}>", "Auto-Submitted": "auto-generated"}
    try:
        EmailMessage(notice.subject, notice.body, sender, settings.NOTIFY_EMAIL, headers=headers).send()
    except smtplib.SMTPRecipientsRefused as error:
        code, text = min(error.recipients.values())
        raise _kind(code)(f"every address was refused: {_words(code, text)}") from error
    except smtplib.SMTPResponseException as error:
        raise _kind(error.smtp_code)(_words(error.smtp_code, error.smtp_error)) from error
    except (smtplib.SMTPException, OSError) as error:
        raise Unreachable(f"the mail server {settings.EMAIL_HOST}: {error}") from error


def _kind(code: int) -> type[Exception]:
    return DeliveryRefused if code >= PERMANENT else Unreachable


def _words(code: int, said: bytes | str) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    return f"the mail server {settings.EMAIL_HOST} answered {code} {text}"
