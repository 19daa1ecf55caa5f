"""The calls to the provider's batch endpoints, through the SDK. Every failure is a `BatchApiError`."""

import datetime as dt
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

from django.conf import settings

from grading import clock
from grading.judging import client
from grading.judging.allowance import quota
from grading.judging.client import CallOutcome
from grading.judging.core.api_errors import SPEND_CODES, NotItsProtocol
from grading.judging.judges import Judge

if TYPE_CHECKING:
    import anthropic
    from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse

logger = logging.getLogger(__name__)

# The most that sending all requests, or reading all results, may take.
TRANSFER_SECONDS = 600
PATH = "/v1/messages/batches"
NOT_FOUND, REQUEST_TIMEOUT, RATE_LIMITED, SERVER_ERROR = 404, 408, 429, 500
# Server errors after which nothing was accepted. After others something may have been.
NOT_ACCEPTED = frozenset({503, 529})


class BatchApiError(Exception):
    """A call to the provider's batch endpoints failed. `error` is what the SDK raised."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.error = error
        self.status: int | None = getattr(error, "status_code", None)

    @property
    def is_missing(self) -> bool:
        """Whether the provider has no such batch."""
        return self.status == NOT_FOUND

    @property
    def was_rejected(self) -> bool:
        """Whether the provider certainly did not carry out the call. After a timeout it may have."""
        if self.status is None or self.status == REQUEST_TIMEOUT:
            return False
        return self.status < SERVER_ERROR or self.status in NOT_ACCEPTED

    @property
    def concerns_quota(self) -> bool:
        """Whether single calls would fail too. Not so for a missing batch or a full queue of batches."""
        if self.status == RATE_LIMITED:
            return getattr(self.error, "error_code", None) in SPEND_CODES
        return not self.is_missing

    def update_quota(self, judge: Judge, started_at: dt.datetime) -> CallOutcome:
        """Update the judge's quota by the error, if it concerns it. Returns the outcome that the error means."""
        outcome = client.outcome_of_error(self.error)
        if self.concerns_quota:
            quota.learn(judge, outcome.result, started_at=started_at, now=clock.now())
        return outcome


def create(judge: Judge, body: IO[bytes]) -> "MessageBatch":
    """Create a batch from `body`, the JSON of the request, which is streamed. Raises BatchApiError."""
    from anthropic.types.messages import MessageBatch

    body.seek(0)
    with _call(judge, TRANSFER_SECONDS) as sdk:
        return _checked_batch(sdk.post(PATH, cast_to=MessageBatch, content=body))


def retrieve(judge: Judge, provider_id: str) -> "MessageBatch":
    """A batch by its id at the provider. Raises BatchApiError."""
    with _call(judge) as sdk:
        return _checked_batch(sdk.messages.batches.retrieve(provider_id))


def cancel(judge: Judge, provider_id: str) -> None:
    """Ask the provider to cancel a batch. Raises BatchApiError."""
    with _call(judge) as sdk:
        sdk.messages.batches.cancel(provider_id)


def list_since(judge: Judge, oldest: dt.datetime) -> list["MessageBatch"]:
    """The key's batches that were created at `oldest` or later, newest first. Raises BatchApiError."""
    with _call(judge) as sdk:
        batches = map(_checked_batch, sdk.messages.batches.list(limit=100))
        return list(takewhile(lambda batch: batch.created_at >= oldest, batches))


def results(judge: Judge, provider_id: str) -> Iterator["MessageBatchIndividualResponse"]:
    """The results of a batch that has ended, in any order; unreadable lines are skipped. Raises BatchApiError.

    They are downloaded to a file first, because applying them takes longer than a connection may stay open.
    """
    from anthropic.types.messages import MessageBatchIndividualResponse

    with TemporaryFile(dir=settings.STATE_DIR) as file:
        with (
            _call(judge, TRANSFER_SECONDS) as sdk,
            sdk.messages.batches.with_streaming_response.results(provider_id) as response,
        ):
            file.writelines(response.iter_bytes())
        file.seek(0)
        for line in file:
            try:
                result = MessageBatchIndividualResponse.construct(**json.loads(line))
            except (ValueError, TypeError):
                logger.exception("a line of a batch's results cannot be read: %.200r", line)
                continue
            yield result


@contextmanager
def _call(judge: Judge, seconds: float | None = None) -> Iterator["anthropic.Anthropic"]:
    """The SDK's client for calls within `seconds`, by default JUDGE_TIMEOUT. Turns exceptions into BatchApiError."""
    from grading.judging import deadline

    try:
        with deadline.within(seconds or settings.JUDGE_TIMEOUT):
            yield client.sdk(judge)
    except Exception as error:
        raise BatchApiError(error) from error


def _checked_batch(batch: "MessageBatch | Any") -> "MessageBatch":
    """The same batch. Raises NotItsProtocol if the SDK has returned something that is no usable batch."""
    from anthropic.types.messages import MessageBatch

    if (
        isinstance(batch, MessageBatch)
        and isinstance(getattr(batch, "id", None), str)
        and 0 < len(batch.id) <= 120  # noqa: PLR2004 - the column's width
        and isinstance(getattr(batch, "created_at", None), dt.datetime)
    ):
        return batch
    raise NotItsProtocol("The service answered something that is not a batch; is ANTHROPIC_BASE_URL right?")
