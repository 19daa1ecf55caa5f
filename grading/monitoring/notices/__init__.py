"""Sends notices by e-mail and webhook. `monitoring.outbox` queues them, in the transaction of their cause."""

from grading.monitoring.notices.outcomes import DeliveryRefused, Unreachable
from grading.monitoring.notices.sending import deliver, send_due

__all__ = ["DeliveryRefused", "Unreachable", "deliver", "send_due"]
