"""Message Batches: requests taken in together, done after some polls, their results in no reliable order."""

import datetime as dt
import json
import re
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from grading.simulator.batch import Batch
from grading.simulator.replies import TROUBLES, MessagesRequest, Mode, Reply, Step, step, trouble

MOST_REQUESTS = 100_000
_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# Neither a result nor an error: there is no line in a file for them.
_NO_RESULT = frozenset({Mode.HANG, Mode.DROP, Mode.NOT_JSON})


@dataclass(slots=True)
class Batches:
    """All batches of a simulator, and what was planned for them.

    `polls` is how often a new batch answers that it is in progress. `mode` is what calls to these endpoints meet when
    nothing is scripted; a batch is not taken in either while single messages meet an error.
    """

    polls: int = 0
    mode: Mode | str = Mode.VERDICT
    calls: list[str] = field(default_factory=list)
    held: dict[str, Batch] = field(default_factory=dict)
    _outcomes: deque[Step] = field(default_factory=deque)
    _queue: deque[Step] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def script(self, *outcomes: str | Mapping[str, Any]) -> None:
        """What becomes of the next requests that come in batches, in the order they are submitted.

        A mode, {"mode": ..., options}, "expired" or "canceled"; "verdict" once these are used up. Raises ValueError.
        """
        for item in outcomes:
            asked = item if isinstance(item, str) else item.get("mode", "")
            planned = {"mode": asked} if asked in {"expired", "canceled"} else step(item)
            if planned["mode"] in _NO_RESULT:
                raise ValueError(f"{asked!r} is no result of a request in a batch")
            self._outcomes.append(planned)

    def script_calls(self, *items: str | Mapping[str, Any]) -> None:
        """What the next calls to these endpoints meet; "verdict" lets one through. Raises ValueError."""
        self._queue.extend(step(item) for item in items)

    def apply(self, order: Mapping[str, Any]) -> None:
        """The "batches" of an order from `/_script`: polls, mode, outcomes, queue, reset. Raises ValueError."""
        if order.get("reset"):
            for kept in (self.calls, self.held, self._outcomes, self._queue):
                kept.clear()
        self.polls = int(order.get("polls", self.polls))
        self.mode = Mode(order.get("mode", self.mode))
        self.script(*order.get("outcomes", ()))
        self.script_calls(*order.get("queue", ()))

    def state(self) -> dict[str, Any]:
        batches = [{"id": b.id, "status": b.status, "requests": len(b.requests)} for b in self.held.values()]
        return {"calls": len(self.calls), "batches": batches}

    def take(self, call: str, otherwise: Mode) -> Step:
        """Note a call ("POST /v1/messages/batches") and say what it meets. `otherwise` is what single messages meet."""
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
                id=f"msgbatch_sim{len(self.held) + 1:06d}",
                api_key=api_key,
                created_at=dt.datetime.now(dt.UTC),
                requests=dict(requests),
                planned={name: self._outcomes.popleft() for name in names if self._outcomes},
                polls_left=self.polls,
            )
            self.held[batch.id] = batch
        return _json(batch.described(url))

    def listed(self, api_key: str, query: Mapping[str, str], url: str) -> Reply:
        """The key's batches, newest first, `limit` a page (20), after or before an id."""
        mine = [batch for batch in reversed(self.held.values()) if batch.api_key == api_key]
        ids = [batch.id for batch in mine]
        limit = int(query.get("limit", 20))
        if query.get("before_id") in ids:
            end = ids.index(query["before_id"])
            page, more = mine[max(0, end - limit) : end], end > limit
        else:
            start = ids.index(query["after_id"]) + 1 if query.get("after_id") in ids else 0
            page, more = mine[start : start + limit], len(mine) > start + limit
        ends = {"first_id": page[0].id, "last_id": page[-1].id} if page else {"first_id": None, "last_id": None}
        return _json({"data": [batch.described(url) for batch in page], "has_more": more, **ends})

    def one(self, batch_id: str, verb: str, api_key: str, url: str) -> Reply:
        """One batch: `verb` is GET, "GET results" or "POST cancel"."""
        batch = self.held.get(batch_id)
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
