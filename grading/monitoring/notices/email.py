"""Notices by e-mail, through the mail server that EMAIL_HOST names."""

import smtplib

from django.conf import settings
from django.core.mail import EmailMessage

from grading.models import Notice
from grading.models.notices import Mail
from grading.monitoring.notices.outcomes import DeliveryRefused, Unreachable

# SMTP replies from this code on are permanent refusals.
PERMANENT = 500


def send(notice: Notice, to: Mail) -> None:
    """Send one message to all addresses, with the same id at each attempt. Raises DeliveryRefused or Unreachable."""
    server = settings.EMAIL_HOST
    sender = to.sender or settings.DEFAULT_FROM_EMAIL
    domain = sender.rpartition("@")[2].strip("<> ") or "localhost"
    headers = {"Message-ID": f"<{notice.key}@{domain}>", "Auto-Submitted": "auto-generated"}
    try:
        EmailMessage(notice.subject, notice.body, sender, to.addresses, headers=headers).send()
    except smtplib.SMTPRecipientsRefused as error:
        code, text = min(error.recipients.values())  # a temporary refusal (4xx), if there is one
        raise _error_class(code)(f"every address was refused: {_describe(server, code, text)}") from error
    except smtplib.SMTPResponseException as error:
        raise _error_class(error.smtp_code)(_describe(server, error.smtp_code, error.smtp_error)) from error
    except (smtplib.SMTPException, OSError) as error:
        raise Unreachable(f"the mail server {server}: {error}") from error


def _error_class(code: int) -> type[Exception]:
    return DeliveryRefused if code >= PERMANENT else Unreachable


def _describe(server: str, code: int, reply: bytes | str) -> str:
    text = reply.decode(errors="replace") if isinstance(reply, bytes) else reply
    return f"the mail server {server} answered {code} {text}"
