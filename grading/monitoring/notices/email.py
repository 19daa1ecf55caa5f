"""Notices by e-mail, through the mail server of the environment, or else of the channel."""

import smtplib
import socket

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend

from grading.models import Notice
from grading.models.notices import Encryption, Mail, MailServer
from grading.monitoring.notices import guarded
from grading.monitoring.notices.outcomes import DeliveryRefused, Unreachable

PERMANENT = 500


def send(notice: Notice, to: Mail) -> None:
    """One message to all addresses; one that arrives twice has one id. Raises DeliveryRefused or Unreachable."""
    server = None if settings.MAIL_WORKS else to.server
    name = server.host if server else settings.EMAIL_HOST
    sender = to.sender or settings.DEFAULT_FROM_EMAIL
    domain = sender.rpartition("@")[2].strip("<> ") or "localhost"
    headers = {"Message-ID": f"<{notice.key}@{domain}>", "Auto-Submitted": "auto-generated"}
    try:
        connection = _connection(server) if server else None
        EmailMessage(notice.subject, notice.body, sender, to.addresses, headers=headers, connection=connection).send()
    except guarded.ForbiddenAddress as error:
        raise DeliveryRefused(f"the mail server {name} was not called: {error}") from error
    except smtplib.SMTPRecipientsRefused as error:
        code, text = min(error.recipients.values())
        raise _kind(code)(f"every address was refused: {_describe(name, code, text)}") from error
    except smtplib.SMTPResponseException as error:
        raise _kind(error.smtp_code)(_describe(name, error.smtp_code, error.smtp_error)) from error
    except (smtplib.SMTPException, OSError) as error:
        raise Unreachable(f"the mail server {name}: {error}") from error


def _connection(server: MailServer) -> BaseEmailBackend:
    """Raises ForbiddenAddress and OSError."""
    for *_, address in socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM):
        guarded.check(str(address[0]))
    connection: BaseEmailBackend = get_connection(
        host=server.host,
        port=server.port,
        username=server.user,
        password=server.password,
        use_tls=server.encryption is Encryption.STARTTLS,
        use_ssl=server.encryption is Encryption.TLS,
        timeout=settings.NOTIFY_TIMEOUT,
    )
    return connection


def _kind(code: int) -> type[Exception]:
    return DeliveryRefused if code >= PERMANENT else Unreachable


def _describe(name: str, code: int, reply: bytes | str) -> str:
    text = reply.decode(errors="replace") if isinstance(reply, bytes) else reply
    return f"the mail server {name} answered {code} {text}"
