"""Sessions of agents whose logs share records, and what the site makes of them."""

import hashlib
import json

from django.db.models import QuerySet

from bandit.core.table import ABSTAINED
from bandit.models import Bucket
from grading.evidence import ownership
from grading.models import Artifact, Grade, Session
from grading.reward import rewards
from grading.vocabulary import Source

PADDING = 6_000
COMMIT_AT = 5


def step(name: str) -> list[dict]:
    """The lines of one step of work, the same in every copy of it: a call and its result. Every fifth is a commit."""
    number = int(name.lstrip("abcdefghijklmnopqrstuvwxyz") or 0)
    command, output = f"make part-{name}", "ok"
    if number % COMMIT_AT == 0:
        command, output = (
            f"git commit -m 'Step {name} of it'",
            f"[main {hash_of(name)}] Step {name} of it\n 1 file changed",
        )
    use = {"type": "tool_use", "id": f"t-{name}", "name": "Bash", "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": f"t-{name}", "content": output, "is_error": False}
    usage = {"input_tokens": 10, "output_tokens": 5}
    reply = {"id": f"m-{name}", "role": "assistant", "model": "claude-opus-4-6", "content": [use], "usage": usage}
    return [
        {"type": "assistant", "uuid": f"uuid-a-{name}", "message": reply},
        {"type": "user", "uuid": f"uuid-r-{name}", "message": {"role": "user", "content": [result]}},
    ]


def hash_of(name: str) -> str:
    """The commit of a step, as git abbreviates it."""
    return full_hash(name)[:7]


def full_hash(name: str) -> str:
    """The commit of a step, in full."""
    return hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()


def steps(letter: str, first: int, last: int) -> list[str]:
    return [f"{letter}{number}" for number in range(first, last + 1)]


def opened(url: str, name: str) -> list[dict]:
    """A pull request opened by a call."""
    lines = step(f"{name}1")
    lines[0]["message"]["content"][0]["input"]["command"] = "gh pr create --fill"
    lines[1]["message"]["content"][0]["content"] = f"{url}\n"
    return lines


def log(
    session_id: str, *parts: list[str] | list[dict], sidechain: bool = False, at: str = "2026-03-31T11:40:00.000Z"
) -> bytes:
    """A log of Claude Code with these steps, every line under that id."""
    lines = []
    for part in parts:
        for each in part:
            lines += step(each) if isinstance(each, str) else [each]
    said = {"isSidechain": sidechain, "sessionId": session_id, "cwd": "/repo", "version": "2.1.100", "timestamp": at}
    first = {"type": "user", "uuid": f"uuid-first-{lines[0]['uuid']}"}
    first["message"] = {"role": "user", "content": "Do it. " + "x" * PADDING}
    return "".join(json.dumps({**line, **said}) + "\n" for line in (first, *lines)).encode()


def session(name: str, agent: str = "bob") -> Session:
    return Session.objects.get(agent__name=agent, external_id=name)


def trajectory(name: str, agent: str = "bob") -> Grade:
    return session(name, agent).grades.filter(source=Source.TRAJECTORY).last()


def reward(name: str, agent: str = "bob") -> float | None:
    """What the bandits were given for it; None where they were given nothing."""
    live = rewards.live(session(name, agent))
    return live.value if live.weight else None


def commits(name: str, agent: str = "bob") -> list[str]:
    """The commits that the session's trajectory was graded by."""
    found = session(name, agent)
    hidden = ownership.foreign(found).commits
    return [each["hash"] for each in (found.signals or {}).get("commits", []) if each["hash"] not in hidden]


def learned() -> list[tuple]:
    """The sums of rewards, to the last bit; without abstentions."""
    return bits(Bucket.objects.exclude(grader__source=ABSTAINED))


def bits(rows: QuerySet[Bucket] | None = None) -> list[tuple]:
    """All sums of the bandits, to the last bit. Those of what came and went again are left out."""
    rows = (Bucket.objects if rows is None else rows).select_related("grader").exclude(n=0)
    return sorted((str(row.arm), str(row.grader), row.effective_day, row.n, row.s, row.q) for row in rows)


def owners() -> list[tuple]:
    """Whose each claimed thing is."""
    rows = Artifact.objects.exclude(lookup="").select_related("session", "owned_by")
    return sorted(
        (row.kind, row.key, row.origin, row.session.external_id, (row.owned_by or row.session).external_id)
        for row in rows
    )
