"""The simulator: standard library only, scriptable while it runs.

    with Simulator() as sim:
        sim.script("overloaded", {"mode": "verdict", "score": 0.8})   # the next two calls
        sim.mode = "usage_limits"                                     # and every call after them
        sim.calls                                                     # what came in

Over HTTP: `POST /_script` with {"mode": ..., "queue": [...], "release": true, "reset": true}, `GET /_state`.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from grading.simulator.replies import Mode, Request
from grading.simulator.wire import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that came in: when (monotonic seconds), where, and which mood met it."""

    at: float
    path: str
    mode: Mode
    request: Request
    api_key: str
    request_id: str


@dataclass(slots=True)
class Simulator:
    """A judge on 127.0.0.1. `mode` is what it does when nothing is scripted; `calls` is what came in.

    `hang` calls wait until `release()` (then a verdict is sent) or `close()` (then the connection is dropped).
    """

    port: int = 0
    mode: Mode | str = Mode.VERDICT
    calls: list[Call] = field(default_factory=list)
    _queue: deque[dict[str, Any]] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _released: threading.Event = field(default_factory=threading.Event)
    _closing: bool = False
    _server: Server | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Bind (port 0 finds a free one) and answer in threads. Raises OSError where the port is taken."""
        self._server = Server(("127.0.0.1", self.port), self)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._closing = True
        self._released.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def script(self, *items: str | Mapping[str, Any]) -> None:
        """Queue what the next calls get: a mode, or {"mode": ..., options}. Raises ValueError for an unknown one."""
        for item in items:
            step = {"mode": item} if isinstance(item, str) else dict(item)
            step["mode"] = Mode(step.get("mode", Mode.VERDICT))
            self._queue.append(step)

    def release(self) -> None:
        """Let every hanging call go on to its verdict."""
        self._released.set()
        self._released = threading.Event()

    def state(self) -> dict[str, Any]:
        counts = Counter(call.mode.value for call in self.calls)
        queue = [step["mode"].value for step in self._queue]
        return {"mode": Mode(self.mode).value, "queue": queue, "calls": len(self.calls), "counts": dict(counts)}

    def take(self, path: str, request: Request, api_key: str) -> tuple[Call, Mapping[str, Any]]:
        """Note a call and decide what it meets."""
        with self._lock:
            step = self._queue.popleft() if self._queue else {"mode": Mode(self.mode)}
            number = len(self.calls) + 1
            call = Call(
                at=time.monotonic(),
                path=path,
                mode=step["mode"],
                request=request,
                api_key=api_key,
                request_id=f"req_sim{number:08d}",
            )
            self.calls.append(call)
        return call, step

    def wait(self) -> bool:
        """Hang. True once released, False where the simulator closes."""
        self._released.wait()
        return not self._closing

    def apply(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """An order from `/_script`. Raises ValueError for an unknown mode."""
        if order.get("reset"):
            self._queue.clear()
            self.calls.clear()
        if "mode" in order:
            self.mode = Mode(order["mode"])
        self.script(*order.get("queue", ()))
        if order.get("release"):
            self.release()
        return self.state()
