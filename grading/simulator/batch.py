"""One message batch: what is asked for, what becomes of each request, and how the service tells it."""

import datetime as dt
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grading.simulator.replies import TROUBLES, MessagesRequest, Mode, Step, reply

RESULTS = ("succeeded", "errored", "canceled", "expired")


@dataclass(slots=True, kw_only=True)
class Batch:
    """One batch. `planned` says what becomes of a request: a mode with options, "expired", or "canceled"."""

    id: str
    api_key: str
    created_at: dt.datetime
    requests: dict[str, MessagesRequest]
    planned: Mapping[str, Step]
    polls_left: int
    canceled_at: dt.datetime | None = None
    ended_at: dt.datetime | None = None

    @property
    def status(self) -> str:
        if self.ended_at is not None:
            return "ended"
        return "in_progress" if self.canceled_at is None else "canceling"

    def poll(self, now: dt.datetime) -> None:
        """Being asked after is what time is to a real one; a canceled batch ends at once."""
        if self.ended_at is None and (self.polls_left <= 0 or self.canceled_at is not None):
            self.ended_at = now
        self.polls_left -= 1

    def cancel(self, now: dt.datetime) -> None:
        if self.ended_at is None and self.canceled_at is None:
            self.canceled_at = now

    def result(self, custom_id: str) -> dict[str, Any]:
        """What became of one request. Canceling spares those for which something was planned."""
        unplanned: Step = {"mode": Mode.VERDICT if self.canceled_at is None else "canceled"}
        planned = self.planned.get(custom_id, unplanned)
        if planned["mode"] in RESULTS:
            return {"type": planned["mode"]}
        answer = reply(planned["mode"], self.requests[custom_id], planned, f"req_{self.id[9:]}_{custom_id}")
        if planned["mode"] in TROUBLES:
            return {"type": "errored", "error": json.loads(answer.body)}
        return {"type": "succeeded", "message": json.loads(answer.body)}

    def results(self) -> list[dict[str, Any]]:
        """Last first, so that nobody takes the order for granted."""
        return [{"custom_id": name, "result": self.result(name)} for name in reversed(self.requests)]

    def described(self, url: str) -> dict[str, Any]:
        """As the service describes it. Requests count as processing until all of the batch has ended."""
        ended = self.ended_at is not None
        counts = Counter(line["result"]["type"] for line in self.results()) if ended else Counter()
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": self.status,
            "request_counts": {
                **{name: counts[name] for name in RESULTS},
                "processing": len(self.requests) - counts.total(),
            },
            "created_at": self.created_at.isoformat(),
            "expires_at": (self.created_at + dt.timedelta(hours=24)).isoformat(),
            "cancel_initiated_at": None if self.canceled_at is None else self.canceled_at.isoformat(),
            "ended_at": self.ended_at.isoformat() if self.ended_at else None,
            "archived_at": None,
            "results_url": f"{url}/v1/messages/batches/{self.id}/results" if ended else None,
        }
