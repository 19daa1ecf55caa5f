"""Sending what people are told outside the site. The rows are written by `monitoring.outbox`, with their cause."""

from grading.monitoring.notices.sending import DeliveryRefused, Unreachable, deliver, send_due

__all__ = ["DeliveryRefused", "Unreachable", "deliver", "send_due"]
