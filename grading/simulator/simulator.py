"""A simulated judge: an HTTP server that speaks the Messages API and is scripted while it runs. Standard library only.

    with Simulator(limits=Limits(requests=50)) as sim:
        sim.script("overloaded", {"mode": "verdict", "score": 0.8})   # the next two calls
        sim.mode = "usage_limits"                                     # and every call after them
        sim.calls                                                     # the received calls

Over HTTP: `GET /_state`, `GET /_calls?after=0`, and `POST /_script` with {"mode": ..., "options": {...},
"queue": [...], "limits": {...}, "latency": ..., "release": true, "reset": true, "batches": {"polls": ...,
"outcomes": [...], "queue": [...], "mode": ...}}.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from types import TracebackType
from typing import Any, Self

from grading.simulator.batches import Batches
from grading.simulator.limits import Gate, Limits, limits_from
from grading.simulator.replies import TROUBLES, MessagesRequest, Mode, Reply, Step, step
from grading.simulator.verdicts import luck
from grading.simulator.wire import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedCall:
    """One received call: when (monotonic seconds), where, and its mode. `refused_for`: the limit that refused it."""

    at: float
    path: str
    mode: Mode
    request: MessagesRequest
    api_key: str
    request_id: str
    refused_for: str = ""


@dataclass(slots=True)
class Simulator:
    """A judge on 127.0.0.1. Calls without a scripted step get `mode`, with `options`. `calls` are the received calls.

    `limits` are enforced for each API key and model; None enforces none, and the headers state generous ones. `filled`
    in [0, 1] is how full their buckets are at first. A scripted error is sent without counting against the limits.
    `latency` is the mean time of a reply in seconds; a prompt always takes the same time, from half to one and a half
    of it. Calls in mode `hang` wait until `release()` (then a verdict is sent) or `close()` (then the connection is
    dropped).
    """

    port: int = 0
    mode: Mode | str = Mode.VERDICT
    options: Mapping[str, Any] = field(default_factory=dict)
    limits: InitVar[Limits | None] = None
    filled: InitVar[float] = 1.0
    latency: float = 0.0
    calls: list[ReceivedCall] = field(default_factory=list)
    batches: Batches = field(default_factory=Batches)
    gate: Gate = field(init=False)
    _queue: deque[Step] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _released: threading.Event = field(default_factory=threading.Event)
    _closing: bool = False
    _server: Server | None = None

    def __post_init__(self, limits: Limits | None, filled: float) -> None:
        self.gate = Gate(limits, filled)

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
        """Bind the port (0 finds a free one) and answer in threads. Raises OSError if the port is taken."""
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
        """Script the next calls, one step each: a mode, or {"mode": ..., options}. Raises ValueError for others."""
        self._queue.extend(step(item) for item in items)

    def release(self) -> None:
        """Answer every hanging call with a verdict."""
        self._released.set()
        self._released = threading.Event()

    def limit(self, limits: Limits | None) -> None:
        """Enforce other limits from now on, with full buckets; None enforces none."""
        with self._lock:
            self.gate.limit(limits)

    def state(self) -> dict[str, Any]:
        with self._lock:
            counts = Counter(call.mode.value for call in self.calls)
            return {
                "mode": Mode(self.mode).value,
                "queue": [waiting["mode"].value for waiting in self._queue],
                "calls": len(self.calls),
                "counts": dict(counts),
                **self.gate.counters.state(),
                "batches": self.batches.state(),
            }

    def record_call(self, path: str, request: MessagesRequest, api_key: str) -> tuple[ReceivedCall, Step]:
        """Record a call and return it with its step. A call that a limit refuses uses up no scripted step."""
        with self._lock:
            next_step = self._queue[0] if self._queue else {**self.options, "mode": Mode(self.mode)}
            refusal = None
            if not path.endswith("count_tokens"):
                self.gate.counters.add(time.monotonic(), calls=1)
                if next_step["mode"] not in TROUBLES:
                    # Tokens read from a cache do not count.
                    input_tokens = request.input_tokens - int(next_step.get("cache_read_tokens", 0))
                    refusal = self.gate.admit(api_key, request.model, input_tokens)
            if refusal is not None:
                next_step = {"mode": Mode.RATE_LIMIT, "message": refusal.message, "retry_after": refusal.retry_after}
            elif self._queue:
                self._queue.popleft()
            call = ReceivedCall(
                at=time.monotonic(),
                path=path,
                mode=next_step["mode"],
                request=request,
                api_key=api_key,
                request_id=f"req_sim{len(self.calls) + 1:08d}",
                refused_for="" if refusal is None else refusal.dimension,
            )
            self.calls.append(call)
        return call, next_step

    def reply_seconds(self, call: ReceivedCall, call_step: Step) -> float:
        """Seconds until this call is answered: the step's "delay", else by the latency; 0 for an error."""
        usual = 0.0 if call.mode in TROUBLES else self.latency * (0.5 + luck(call.request.user))
        return float(call_step.get("delay", usual))

    def count_reply(self, call: ReceivedCall, answer: Reply) -> dict[str, str]:
        """Count a reply's output tokens. Returns the rate-limit headers."""
        with self._lock:
            if answer.output_tokens:
                self.gate.write(call.api_key, call.request.model, answer.output_tokens)
            return self.gate.headers(call.api_key, call.request.model)

    @property
    def released(self) -> threading.Event:
        """The event that a hanging call waits for. Get it before the call is recorded, since the call may be released
        as soon as it is.
        """
        return self._released

    def wait(self, released: threading.Event) -> bool:
        """Wait for the event. Returns False if the simulator is closing."""
        released.wait()
        return not self._closing

    def apply(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Apply an order from `/_script`. Raises ValueError for an unknown mode or limit."""
        if order.get("reset"):
            with self._lock:
                self._queue.clear()
                self.calls.clear()
                self.gate.reset()
        if "limits" in order:
            self.limit(limits_from(order["limits"]))
        if "mode" in order:
            self.mode, self.options = Mode(order["mode"]), order.get("options", {})
        self.latency = float(order.get("latency", self.latency))
        self.script(*order.get("queue", ()))
        self.batches.apply({"reset": order.get("reset"), **order.get("batches", {})})
        if order.get("release"):
            self.release()
        return self.state()
