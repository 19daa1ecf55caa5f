"""How many doors a newcomer opens: what three requests pass through, and what the code's form costs its reader.

a change of room: in a traced request, a call (with its return) from a function in one folder of `grading/` or
`bandit/` to one in another; a property and a generator's next value are calls, too
a helper used once: a private function or method that its own file names in one other place
a homonym: a class name that two modules define; `Meta` and a management command's `Command` are Django's names, and
not counted
unresolved: codes like A14 or I146, and names of pages, that nothing in docs/ explains

python benchmarks/house.py [--quick | --smoke]
"""

import ast
import io
import json
import re
import subprocess
import sys
import tempfile
import tokenize
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch

ROOT = Path(__file__).resolve().parent.parent
PRODUCTION = ("bandit", "grading", "gradingsite")
ROOMS = ("bandit", "grading")
LONGEST = 120
# Laws, alarm rules and incidents are named like this, wherever it stands. A spreadsheet's cell (!A0), an escaped byte
# (%A3) and a linter's code of three digits are written otherwise.
CODE = re.compile(r"(?<![!%])\b(?:[ALN][1-9]\d?|I0[1-9]|I[1-9]\d{1,2})\b")
# In prose any letter with a number is a code: whoever writes one means a list somewhere.
PROSE = re.compile(r"(?<![!%])\b[A-Z]\d{1,3}\b")
NOQA = re.compile(r"noqa: [A-Z]+\d+(?:, ?[A-Z]+\d+)*")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PAGE = re.compile(r"\b\d\d-[a-z]+\.md\b")
# What explains a code: a row of a table, or a heading, of a page in docs/.
EXPLAINED = re.compile(r"^(?:\||#+) *([A-Z]\d{1,3}(?:, [A-Z]\d{1,3})*)\b", re.MULTILINE)
TEXT = ("*.py", "*.md", "*.html", "*.txt", "*.js", "*.css", "*.toml", "Makefile")
# Transcripts and pinned requirements are not written by us.
NOT_OURS = ("tests/data/", "grading/agent/samples/sessions/", "requirements")
TRANSCRIPT = "tests/data/transcripts"
PASSWORD = "correct horse battery"  # noqa: S105 - of a site that is thrown away


def main() -> None:
    scratch.parser(__doc__, quick="the same: it takes seconds", smoke="the same").parse_args()
    with tempfile.TemporaryDirectory() as state:
        scratch.site(state, ALLOWED_HOSTS="testserver")
        rooms = {name: Rooms().around(act) for name, act in requests().items()}
    print(f"{'request':12} {'files':>5} {'changes of room':>16}")
    for name, found in rooms.items():
        print(f"{name:12} {len(found.files):5} {found.changes:16}")
    print(json.dumps({f"{name}_rooms": found.changes for name, found in rooms.items()} | form()))


class Rooms:
    """Which files of the project a call passes through, and how often it goes from one folder to another."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.changes = 0
        self._at: list[str] = []

    def around(self, act: Callable[[], None]) -> "Rooms":
        """What `act` passes through."""
        sys.setprofile(self._watch)
        try:
            act()
        finally:
            sys.setprofile(None)
        return self

    def _watch(self, frame: FrameType, event: str, _arg: Any) -> None:
        if event not in {"call", "return"}:
            return
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(ROOT) or path.relative_to(ROOT).parts[0] not in ROOMS:
            return
        if event == "return":
            if self._at:
                self._at.pop()
            return
        room = str(path.parent.relative_to(ROOT))
        self.files.add(str(path.relative_to(ROOT)))
        self.changes += bool(self._at) and self._at[-1] != room
        self._at.append(room)


def requests() -> dict[str, Callable[[], None]]:
    """A session handed in over HTTP, a person's correction of it, and a selection; each is one request."""
    from django.contrib.auth.models import Group, User
    from django.test import Client

    from grading import roles
    from grading.models import Agent, ApiToken, Session

    agent = Agent.objects.create(name="bench")
    _token, secret = ApiToken.objects.issue(agent)
    caller = Client(headers={"Authorization": f"Bearer {secret}"})
    reviewer = User.objects.create_user("rita", password=PASSWORD, is_staff=True)
    reviewer.groups.add(Group.objects.get(name=roles.REVIEWER))
    desk = Client()
    desk.force_login(reviewer)
    log = next(iter(sorted((ROOT / TRANSCRIPT).rglob("*.jsonl"))))

    def post(name: str) -> None:
        said = {"session_id": name, "category": "code", "harness": "claude-code", "ended_at": "2026-03-31T12:00:00Z"}
        # Other records under other ids: the same ones again would be a copy, of which less is asked.
        own = UUID.sub(lambda found: str(uuid.uuid5(uuid.NAMESPACE_URL, name + found[0])), log.read_text("utf-8"))
        files = {"metadata": json.dumps(said), "transcript": io.BytesIO(_named(own, name).encode())}
        _ok(caller.post("/api/v1/sessions", files))

    def correct() -> None:
        said = {"answer": "grade", "value": ".8", "reason": "checked"}
        _ok(desk.post(f"/review/{session.pk}/answer/", {**opened, **said}))

    def select() -> None:
        said = {"bandit": "category", "decision_id": "d-2"}
        _ok(caller.post("/api/v1/selections", json.dumps(said), content_type="application/json"))

    # What is done once in a process is not counted: a first request of each kind goes before.
    post("first")
    session = Session.objects.get(external_id="first")
    page = desk.get(f"/review/{session.pk}/").content.decode()
    opened = dict(re.findall(r'name="(claim|seen_revision|seen_evidence|opened)" value="([^"]*)"', page))
    return {"post": lambda: post("second"), "correction": correct, "selection": select}


def _named(log: str, name: str) -> str:
    """The log as that of a session of this name."""
    return re.sub(r'"sessionId":\s*"[^"]*"', f'"sessionId":"{name}"', log)


def _ok(response: Any) -> None:
    if response.status_code >= 400:  # noqa: PLR2004 - HTTP's refusals
        raise SystemExit(f"expected an answer, got {response.status_code}: {response.content.decode()[:500]}")


def form() -> dict[str, Any]:
    """What can be counted without running anything."""
    modules = {path: path.read_text(encoding="utf-8") for path in _tracked(PRODUCTION, "*.py")}
    modules = {path: text for path, text in modules.items() if "migrations" not in path.parts}
    classes = Counter(
        node.name
        for path, text in modules.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
        and not (node.name == "Command" and path.parts[-3:-1] == ("management", "commands"))
    )
    tests = [path.read_text(encoding="utf-8") for path in _tracked(("tests", "benchmarks"), "*.py")]
    templates = [path.read_text(encoding="utf-8") for path in _tracked(("templates",), "*")]
    return {
        "once_helpers": sum(_used_once(text) for text in modules.values()),
        "homonyms": sum(n > 1 for name, n in classes.items() if name != "Meta"),
        "long_template_lines": sum(len(line) > LONGEST for text in templates for line in text.splitlines()),
        "unresolved": len(unresolved()),
        "lines": {
            "production": sum(text.count("\n") for text in modules.values()),
            "tests": sum(text.count("\n") for text in tests),
            "templates": sum(text.count("\n") for text in templates),
        },
    }


def _used_once(text: str) -> int:
    """How many private functions of a module it names in one other place."""
    tree = ast.parse(text)
    functions = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    private = {name for name in functions if name.startswith("_") and not name.startswith("__")}
    named = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    # An override that calls what it overrides is no helper: its name is somebody else's.
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    named += Counter(node.attr for node in attributes if not ast.unparse(node.value).startswith("super("))
    return sum(named[name] == 1 for name in private)


def unresolved() -> dict[str, set[str]]:
    """Codes and names of pages that the repository uses and nothing in docs/ explains, and the files that use them."""
    pages = {path: path.read_text(encoding="utf-8") for path in _tracked((".",), "*.md")}
    explained = {path.name for path in pages}
    for path, text in pages.items():
        if path.is_relative_to(ROOT / "docs"):
            explained |= {code for codes in EXPLAINED.findall(text) for code in codes.split(", ")}
    used: dict[str, set[str]] = {}
    for path in (path for glob in TEXT for path in _tracked((".",), glob)):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(NOT_OURS):
            continue
        text = path.read_text(encoding="utf-8")
        for code in {*CODE.findall(text), *PAGE.findall(text), *PROSE.findall(_prose(path, text))}:
            used.setdefault(code, set()).add(name)
    return {code: files for code, files in used.items() if code not in explained}


def _prose(path: Path, text: str) -> str:
    """What of a file is written for people: a page as it is, of a module its comments and docstrings."""
    if path.suffix != ".py":
        return text if path.suffix == ".md" else ""
    comments = [
        NOQA.sub("", token.string)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(text)) if isinstance(node, documented)]
    return "\n".join([*comments, *docstrings])


def _tracked(folders: Iterable[str], glob: str) -> list[Path]:
    """The files of these folders that belong to the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *(f":(glob){'' if each == '.' else each + '/'}**/{glob}" for each in folders)],  # noqa: S607
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name]


if __name__ == "__main__":
    main()
