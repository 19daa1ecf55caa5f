"""Celery's way to Redis, without patience: redis-py retries a refused connection for seconds, in a web request too.

Nothing is lost by it: whoever publishes treats the broker as a doorbell, and the worker reconnects on its own.
"""

from typing import Any

import redis
from kombu.transport import redis as kombu_redis


class Connection(redis.Connection):
    def __init__(self, **options: Any) -> None:
        impatient = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        super().__init__(**{**options, "retry": impatient})  # type: ignore[no-untyped-call]  # redis-py is half typed


class Channel(kombu_redis.Channel):
    connection_class = Connection  # type: ignore[assignment]  # kombu does not foresee a subclass


class Transport(kombu_redis.Transport):
    Channel = Channel
