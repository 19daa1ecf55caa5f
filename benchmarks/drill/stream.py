"""What agents send: small sessions over HTTP, each under an id that its prompt shows, sent until they are accepted."""

import hashlib
import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import httpx2

# How long an agent goes on trying to hand in one session (seconds).
PATIENCE = 60
# What is uploaded: file name and content by part.
Parts = dict[str, tuple[str, bytes]]
JOURNAL = "# {name}\nSubmitted PR with the fix; tests completed.\n"


class Stream:
    """Sessions of one phase, `drill-PP-NNNN`; `accepted` are those for which the site gave a receipt."""

    def __init__(self, site: str, token: str, phase: int) -> None:
        self.prefix = f"drill-{phase:02d}-"
        self.accepted: list[str] = []
        self.retried = 0
        self.refused: Counter[int] = Counter()  # by status, where the fault was the site's
        self._latest: Parts = {}
        self._client = httpx2.Client(base_url=site, headers={"Authorization": f"Bearer {token}"}, timeout=20)

    def send(self, *, minutes_ago: float = 1, title: str = "") -> str:
        """Hand in one new session that ended so many minutes ago; its id. Raises TimeoutError if nobody takes it."""
        name = f"{self.prefix}{len(self.accepted) + 1:04d}"
        self._latest = session(name, datetime.now(UTC) - timedelta(minutes=minutes_ago), title or name)
        self._send(self._latest)
        self.accepted.append(name)
        return name

    def send_again(self, times: int) -> None:
        """Hand in the latest session again, as often, all at once: an agent that got no receipt."""
        with ThreadPoolExecutor(times) as agents:
            list(agents.map(self._send, [self._latest] * times))

    def close(self) -> None:
        self._client.close()

    def _send(self, parts: Parts) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self._is_taken(parts):
            if time.monotonic() > deadline:
                raise TimeoutError(f"a session of {self.prefix} was not accepted within {PATIENCE} s; see web's log")
            self.retried += 1
            time.sleep(0.2)

    def _is_taken(self, parts: Parts) -> bool:
        try:
            reply = self._client.post("/api/v1/sessions", files=parts)
        except httpx2.TransportError:
            return False
        if reply.is_client_error:
            raise ValueError(f"the site refuses a session of the drill: {reply.text}")
        if reply.is_server_error:
            self.refused[reply.status_code] += 1
        return reply.is_success


def session(name: str, ended_at: datetime, title: str) -> Parts:
    """The parts of a submission: metadata, a journal and a short transcript, in Claude Code's format."""
    metadata = {
        "session_id": name,
        "title": title,
        "category": "code",
        "harness": "claude-code",
        "ended_at": ended_at.isoformat(),
    }
    return {
        "metadata": ("metadata.json", json.dumps(metadata).encode()),
        "journal": ("journal.md", JOURNAL.format(name=name).encode()),
        "transcript": (f"{name}.jsonl", transcript(name, ended_at)),
    }


def transcript(name: str, ended_at: datetime) -> bytes:
    """A log whose records and commit are this session's alone: those of another would be its copy."""
    commit = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:7]
    call = {
        "type": "tool_use",
        "id": f"{name}-t1",
        "name": "Bash",
        "input": {"command": "git commit -am 'try a call once'"},
    }
    result = {"type": "tool_result", "tool_use_id": f"{name}-t1", "content": f"[main {commit}] try a call once"}
    said = [
        ("user", f"Fix the guard of {name} and commit"),
        ("assistant", [call]),
        ("user", [result]),
        ("assistant", [{"type": "text", "text": "The guard is fixed and committed."}]),
    ]
    lines = []
    for number, (role, content) in enumerate(said):
        message: dict[str, object] = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "type": "message"}
        at = ended_at - timedelta(seconds=60 - 10 * number)
        line = {"type": role, "uuid": f"{name}-{number}", "timestamp": at.isoformat(), "message": message}
        lines.append(json.dumps({**line, "sessionId": name, "cwd": "/repo", "version": "2.1.0", "isSidechain": False}))
    return ("\n".join(lines) + "\n").encode()
