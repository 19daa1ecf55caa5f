"""The simulated Message Batches API. A batch ends after some polls, and its results are in another order."""

import datetime as dt
import json
import re
import threading
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from grading.simulator.replies import TROUBLES, MessagesRequest, Mode, Reply, Step, reply, step, trouble

MOST_REQUESTS = 100_000
_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# Modes that produce neither a result nor an error, and so no line in a results file.
_NO_RESULT = frozenset({Mode.HANG, Mode.DROP, Mode.NOT_JSON})
RESULTS = ("succeeded", "errored", "canceled", "expired")


@dataclass(slots=True, kw_only=True)
class Batch:
    """A batch. `planned` are scripted outcomes by custom_id: a mode with options, "expired", or "canceled"."""

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
        """Count a poll. The batch ends after `polls_left` of them, or at the next one if it was canceled."""
        if self.ended_at is None and (self.polls_left <= 0 or self.canceled_at is not None):
            self.ended_at = now
        self.polls_left -= 1

    def cancel(self, now: dt.datetime) -> None:
        if self.ended_at is None and self.canceled_at is None:
            self.canceled_at = now

    def result(self, custom_id: str) -> dict[str, Any]:
        """The outcome of one request. Canceling does not change planned outcomes."""
        unplanned: Step = {"mode": Mode.VERDICT if self.canceled_at is None else "canceled"}
        planned = self.planned.get(custom_id, unplanned)
        if planned["mode"] in RESULTS:
            return {"type": planned["mode"]}
        answer = reply(planned["mode"], self.requests[custom_id], planned, f"req_{self.id[9:]}_{custom_id}")
        if planned["mode"] in TROUBLES:
            return {"type": "errored", "error": json.loads(answer.body)}
        return {"type": "succeeded", "message": json.loads(answer.body)}

    def results(self) -> list[dict[str, Any]]:
        """The results, the last request first, so that clients do not rely on the order."""
        return [{"custom_id": name, "result": self.result(name)} for name in reversed(self.requests)]

    def described(self, url: str) -> dict[str, Any]:
        """The batch as JSON of the API. All its requests count as processing until the batch has ended."""
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


@dataclass(slots=True)
class Batches:
    """All batches of a simulator, and the outcomes planned for them.

    `polls` is how many polls a new batch is in progress. Calls to these endpoints without a scripted step get `mode`. A
    batch is not accepted either while single messages get an error.
    """

    polls: int = 0
    mode: Mode | str = Mode.VERDICT
    calls: list[str] = field(default_factory=list)
    by_id: dict[str, Batch] = field(default_factory=dict)
    _outcomes: deque[Step] = field(default_factory=deque)
    _queue: deque[Step] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def script(self, *outcomes: str | Mapping[str, Any]) -> None:
        """Plan the outcomes of the next requests in batches, in the order they are submitted.

        A mode, {"mode": ..., options}, "expired" or "canceled"; "verdict" once these are used up. Raises ValueError.
        """
        for item in outcomes:
            mode = item if isinstance(item, str) else item.get("mode", "")
            planned = {"mode": mode} if mode in {"expired", "canceled"} else step(item)
            if planned["mode"] in _NO_RESULT:
                raise ValueError(f"{mode!r} is not a possible result of a request in a batch")
            self._outcomes.append(planned)

    def script_calls(self, *items: str | Mapping[str, Any]) -> None:
        """Script the next calls to these endpoints; "verdict" lets one through. Raises ValueError."""
        self._queue.extend(step(item) for item in items)

    def apply(self, order: Mapping[str, Any]) -> None:
        """The "batches" of an order from `/_script`: polls, mode, outcomes, queue, reset. Raises ValueError."""
        if order.get("reset"):
            for collection in (self.calls, self.by_id, self._outcomes, self._queue):
                collection.clear()
        self.polls = int(order.get("polls", self.polls))
        self.mode = Mode(order.get("mode", self.mode))
        self.script(*order.get("outcomes", ()))
        self.script_calls(*order.get("queue", ()))

    def state(self) -> dict[str, Any]:
        batches = [{"id": b.id, "status": b.status, "requests": len(b.requests)} for b in self.by_id.values()]
        return {"calls": len(self.calls), "batches": batches}

    def record_call(self, call: str, otherwise: Mode) -> Step:
        """Record a call ("POST /v1/messages/batches") and return its step. `otherwise`: the mode of single messages."""
        with self._lock:
            self.calls.append(call)
            if self._queue:
                return self._queue.popleft()
            mode = Mode(self.mode)
            if mode is Mode.VERDICT and call == "POST /v1/messages/batches" and otherwise in TROUBLES:
                mode = otherwise
            return {"mode": mode}

    def create(self, requests: list[tuple[str, MessagesRequest]], api_key: str, url: str) -> Reply:
        names = [name for name, _ in requests]
        problem = ""
        if not 1 <= len(names) <= MOST_REQUESTS:
            problem = f"expected 1 to {MOST_REQUESTS:,}, got {len(names):,}"
        elif len(set(names)) < len(names):
            problem = "custom_id must be unique"
        elif wrong := [name for name in names if not _CUSTOM_ID.fullmatch(name)]:
            problem = f"custom_id {wrong[0]!r} does not match {_CUSTOM_ID.pattern}"
        if problem:
            return trouble(400, "invalid_request_error", f"requests: {problem}")
        with self._lock:
            batch = Batch(
                id=f"msgbatch_sim{len(self.by_id) + 1:06d}",
                api_key=api_key,
                created_at=dt.datetime.now(dt.UTC),
                requests=dict(requests),
                planned={name: self._outcomes.popleft() for name in names if self._outcomes},
                polls_left=self.polls,
            )
            self.by_id[batch.id] = batch
        return _json(batch.described(url))

    def list_page(self, api_key: str, query: Mapping[str, str], url: str) -> Reply:
        """A page of the key's batches, newest first: `limit` (by default 20) of them after or before an id."""
        batches = [batch for batch in reversed(self.by_id.values()) if batch.api_key == api_key]
        ids = [batch.id for batch in batches]
        limit = int(query.get("limit", 20))
        if query.get("before_id") in ids:
            end = ids.index(query["before_id"])
            page = batches[max(0, end - limit) : end]
            has_more = end > limit
        else:
            start = ids.index(query["after_id"]) + 1 if query.get("after_id") in ids else 0
            page = batches[start : start + limit]
            has_more = len(batches) > start + limit
        ends = {"first_id": page[0].id, "last_id": page[-1].id} if page else {"first_id": None, "last_id": None}
        return _json({"data": [batch.described(url) for batch in page], "has_more": has_more, **ends})

    def handle(self, batch_id: str, verb: str, api_key: str, url: str) -> Reply:
        """Answer a call about one batch: `verb` is "GET", "GET results" or "POST cancel"."""
        batch = self.by_id.get(batch_id)
        if batch is None or batch.api_key != api_key:
            return trouble(404, "not_found_error", f"no batch {batch_id}")
        now = dt.datetime.now(dt.UTC)
        with self._lock:
            match verb:
                case "GET":
                    batch.poll(now)
                case "POST cancel":
                    batch.cancel(now)
                case "GET results" if batch.ended_at is not None:
                    lines = "".join(json.dumps(line) + "\n" for line in batch.results())
                    return Reply(status=200, body=lines.encode(), headers={"content-type": "application/x-jsonl"})
                case "GET results":
                    return trouble(404, "not_found_error", f"{batch.id} has no results yet")
                case _:
                    return trouble(404, "not_found_error", f"no {verb}")
            return _json(batch.described(url))


def _json(body: Mapping[str, Any]) -> Reply:
    return Reply(status=200, body=json.dumps(body).encode())
