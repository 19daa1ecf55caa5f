#!/usr/bin/env python3
"""Send a finished agent session to gradingsite. Needs Python 3.9 or newer and nothing else.

An agent's session-end hook runs this file. It writes the session to a spool folder, starts a sender in the background
and exits, well within two seconds. Whatever the site cannot accept now is sent with a later session, or by --flush.

    submit_session.py             as a hook: reads its JSON from standard input (Claude Code, Codex), or the environment
                                  (gptme)
    submit_session.py --codex {}  as Codex's older `notify`, which passes its JSON as an argument
    submit_session.py --install claude-code
                                  add the hook to the settings of claude-code, codex or gptme, after showing the change
                                  and asking. --yes: don't ask. --token-file FILE: store the token that is in FILE, or
                                  in standard input for -
    submit_session.py --plugin claude-code
                                  the same as a plugin of claude-code or codex, with a skill by which the agent can
                                  report what was sent. The plugin is written to ~/.gradingsite/plugins and installed
                                  by the harness
    submit_session.py --uninstall claude-code
                                  remove hook and plugin; the token and unsent sessions stay
    submit_session.py --check     check the site, the token, the hooks and the last receipt, one line each; exit status
                                  1 if one of them has a problem
    submit_session.py --backfill  send the logs of sessions that ended before the agent was connected, the oldest first,
                                  from the folders of claude-code, codex and gptme, or only of those named after it.
                                  Shows how many there are and what judging them would cost, and asks whether the judge
                                  should read them. --judge none or --judge backlog: chosen already. --yes: don't ask.
                                  --list: print the result for each file. It records what it sent, and can be stopped
                                  and run again
    submit_session.py --flush     send the sessions in the spool now, and print the result of each
    submit_session.py --resend 2026-03-31T02:30:00Z
                                  send again everything sent since then, to a site that was restored from a backup;
                                  what it has already stays as it is
    submit_session.py --outcome ci=pass --session ID
                                  report an outcome of a session's work, from CI or a runner whose token may do so:
                                  KIND=pass, fail, unknown or a number from 0 to 1. Optional: --url URL and --detail
                                  TEXT. Exit status 1 if the site did not accept it

Environment, all optional but the token:
    GRADINGSITE_TOKEN       the agent's token; or in the file ~/.gradingsite/token
    GRADINGSITE_URL         another site than the one that served this file
    GRADINGSITE_SPOOL       the spool folder; default ~/.gradingsite/spool
    GRADINGSITE_KEEP_DAYS   how many days sent sessions are kept there for --resend; default 7, at most 1 GiB; 0: none
    GRADINGSITE_CATEGORY    what kind of work it was;  GRADINGSITE_SELECTION  the decision_id that chose it
    GRADINGSITE_LESSONS     the lessons it was given, separated by commas, with salience if known:
                            ask-first=0.4,read-twice
    GRADINGSITE_LESSONS_DRAWN                 the decision_id with which its lessons were drawn
    GRADINGSITE_TITLE, GRADINGSITE_MODEL, GRADINGSITE_EXIT_CODE, GRADINGSITE_COST_USD
    GRADINGSITE_PROJECT     the repository it worked in; default: the URL of its remote, or else its folder's name
    GRADINGSITE_TASK        your id of the piece of work, the same in every session about it
    GRADINGSITE_INSTRUCTIONS  what is sent of CLAUDE.md, AGENTS.md and rules: hashes (the default: name, length and
                            SHA-256 of each), text (also their content), or none
    GRADINGSITE_STARTED_AT                    when it began, for a session without a log
    GRADINGSITE_JOURNAL, GRADINGSITE_PATCH    paths of files to send as well
    GRADINGSITE_PULL_REQUEST                  URLs of pull requests that the caller knows of, separated by commas
"""

from __future__ import annotations

import collections
import contextlib
import difflib
import hashlib
import http.client
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import threading
import time
import urllib.parse
import uuid
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import IO, Any, Callable, Iterator, NamedTuple

try:
    import fcntl
except ImportError:  # Windows: without a lock a session may be sent twice, which changes nothing on the site
    fcntl = None  # type: ignore[assignment]

SITE = "http://127.0.0.1:8000"  # the site that served this file
HOME = Path.home() / ".gradingsite"
STDIN_SECONDS, STDIN_BYTES = 0.6, 1 << 20
GIT_SECONDS, GIT_SECONDS_LATER, GIT_SECONDS_PAST, MOST_COMMITS = 0.9, 30, 5, 500
SEND_SECONDS, CHECK_SECONDS = 60, 10
MOST_BYTES = 256 << 20  # of one file
MOST_COPIED = 1 << 30  # of the transcripts in the spool, and likewise of those kept after sending
KEEP_DAYS, MOST_SENT = 7, 5000
RESEND_SLACK = 600  # seconds by which this clock and the site's may differ
MOST_REFUSED, MOST_LOGGED = 200, 200_000
MOST_ANSWERED, MOST_SHOWN = 1 << 20, 20_000  # of an answer: a receipt may name each of hundreds of commits
OK, CREATED, UNAUTHORIZED, UNPROCESSABLE, SERVER_ERROR = 200, 201, 401, 422, 500
MOST_USD = 1_000_000
# Fields that an older site does not know or a newer one no longer accepts: a refused session is resent without them.
OPTIONAL = {"project", "task", "ran_with"}
MOST_METADATA = 60_000
MAX_LIST_BYTES = 4 << 20  # bytes of the list of instruction files that a session loaded
INSTRUCTION_SECONDS, MOST_INSTRUCTIONS, MOST_INSTRUCTION_BYTES, MOST_TEXT = 0.3, 200, 1 << 20, 20_000
# The command that prints each harness's version, if its log does not state it.
PROGRAMS = {"claude-code": "claude", "codex": "codex", "gptme": "gptme"}
VERSION_SECONDS = 10
# Marks a session that the site may have had before, so that it refuses sessions erased since.
RESENT = "X-Gradingsite-Resent"
# A failure may be due to the site or to this one session: others are tried before the site is considered down.
IN_TROUBLE, MOST_FAILURES = "kept for later, since the site failed with", 3
# The exceptions that an invalid spooled session can raise when it is read.
NOT_OURS = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
# Statuses after which the same session may be sent again: the token, the address or the site is at fault.
TRY_AGAIN = {301, 302, 303, 307, 308, 401, 403, 404, 405, 408, 425, 429}


# A session as JSON: metadata, facts, files (part to path) and cwd. Also, while it is in the spool: `tries` (failed
# attempts to send it), `names` (the files' original names), `unobserved` and `unversioned` (git or the harness's
# version have yet to be read), and `resent` (the site may have had it before).
Session = dict[str, Any]


def main(arguments: list[str]) -> int:
    if "-h" in arguments or "--help" in arguments:
        print(__doc__)
    elif "--send" in arguments:
        send_all(say=write_log)
    elif "--flush" in arguments:
        return send_all(say=print_line)
    elif "--resend" in arguments:
        return resend(arguments[arguments.index("--resend") + 1 :], say=print_line)
    elif {"--install", "--plugin", "--uninstall"} & {*arguments}:
        return set_up(arguments)
    elif "--check" in arguments:
        return check()
    elif "--backfill" in arguments:
        return backfill(arguments)
    elif "--outcome" in arguments:
        return report_outcome(arguments)
    else:
        hook(arguments)
    return 0


def hook(arguments: list[str]) -> None:
    """Spool the session that just ended and start the sender. Never raises, so that it cannot disturb the agent."""
    try:
        payload = find_payload(arguments)
        if payload.get("hook_event_name") == LOADED:
            with contextlib.suppress(OSError):  # at the session's end the files are searched for anyway
                record_loaded(payload)
            return
        session = find_session(arguments, payload)
        entry = spool(session)
        start_sender()
        print_line(f"{describe(session)}; {sending_status(entry)}")
    except SetupError as problem:
        print_line(str(problem))
    except Exception as error:  # noqa: BLE001 - one line in the agent's log
        print_line(f"this session was not saved: {type(error).__name__}: {error}")


class SetupError(Exception):
    """A problem that the person who set up the hook can fix. The message says how."""


class BadEntry(Exception):
    """Something in the spool that can never be sent."""


# --- the session that ended


def find_payload(arguments: list[str]) -> dict[str, Any]:
    """The event that called this hook, as the harness describes it; empty for gptme, which uses its environment."""
    argument = next((json_object(text) for text in arguments if text.startswith("{")), None)
    if argument is not None:
        return argument
    return {} if os.environ.get("GPTME_LOGDIR") else read_stdin()


def find_session(arguments: list[str], payload: dict[str, Any] | None = None) -> Session:
    """The session that just ended. Raises SetupError if there is no session id.

    `payload` is the harness's description of the event. If it is None, it is read from the arguments or standard input.
    """
    payload = find_payload(arguments) if payload is None else payload
    if not payload and os.environ.get("GPTME_LOGDIR"):
        return gptme_session(Path(os.environ["GPTME_LOGDIR"]))
    session_id = text_of(payload, "session_id", "thread-id", "thread_id") or os.environ.get("CLAUDE_CODE_SESSION_ID")
    if not session_id:
        raise SetupError("nothing to submit: expected a hook's JSON with a session_id on standard input")
    is_codex = "--codex" in arguments or "turn_id" in payload or "thread-id" in payload
    path = text_of(payload, "transcript_path")
    transcript: Path | None = Path(path).expanduser() if path else None
    if transcript is None and is_codex:
        transcript = codex_log(session_id)
    harness = "codex" if is_codex else "claude-code"
    session = session_of(session_id, harness, transcript, text_of(payload, "cwd") or os.getcwd())
    effort = payload.get("effort")
    settings = {
        "permission_mode": text_of(payload, "permission_mode"),
        "reasoning_effort": text_of(effort, "level") if isinstance(effort, dict) else text_of(payload, "effort"),
    }
    session["metadata"]["ran_with"].update({name: one_line(value, 40) for name, value in settings.items() if value})
    cost = stated_cost(payload)
    if cost is not None:
        session["metadata"].setdefault("cost_usd", cost)
    return session


def stated_cost(payload: dict[str, Any]) -> float | None:
    """The session's cost in dollars according to the harness: `total_cost_usd` of the payload or of its `cost`."""
    for part in (payload.get("cost"), payload):
        cost = part.get("total_cost_usd") if isinstance(part, dict) else None
        if isinstance(cost, (int, float)) and 0 <= cost <= MOST_USD:
            return cost
    return None


def gptme_session(folder: Path) -> Session:
    session = session_of(folder.name, "gptme", folder / "conversation.jsonl", os.environ.get("GPTME_WORKSPACE"))
    session["metadata"].setdefault("model", variable("GPTME_MODEL", 120))
    return session


def session_of(session_id: str, harness: str, transcript: Path | None, cwd: str | None) -> Session:
    """Everything known about a session. Its `facts` are what this program observed, never claims of the transcript."""
    end = datetime.now(timezone.utc)
    start = first_timestamp(transcript) or parse_time(os.environ.get("GRADINGSITE_STARTED_AT"))
    if start and start > end:
        start = None
    metadata = {
        "session_id": session_id,
        "harness": harness,
        "started_at": start and start.isoformat(),
        "ended_at": end.isoformat(),
        "category": variable("GRADINGSITE_CATEGORY", 100),
        "selection_id": variable("GRADINGSITE_SELECTION", 200),
        "title": variable("GRADINGSITE_TITLE", 300),
        "model": variable("GRADINGSITE_MODEL", 120),
        "exit_code": parse_exit_code(os.environ.get("GRADINGSITE_EXIT_CODE")),
        "cost_usd": parse_cost(os.environ.get("GRADINGSITE_COST_USD")),
        "project": variable("GRADINGSITE_PROJECT", 300),
        "task": variable("GRADINGSITE_TASK", 200),
        "lessons": parse_lessons(os.environ.get("GRADINGSITE_LESSONS")),
        "lessons_decision_id": variable("GRADINGSITE_LESSONS_DRAWN", 200),
    }
    files = {
        "transcript": transcript,
        "journal": os.environ.get("GRADINGSITE_JOURNAL"),
        "patch": os.environ.get("GRADINGSITE_PATCH"),
    }
    ran_with: dict[str, Any] = {"source": "hook"}
    version = logged_version(transcript)
    if version:
        ran_with["harness_version"] = version
    session: Session = {
        "metadata": {name: value for name, value in metadata.items() if value not in (None, "", [])},
        "files": {part: os.path.abspath(path) for part, path in files.items() if path},
        "cwd": cwd,
    }
    if not version:
        session["unversioned"] = True
    session["metadata"]["ran_with"] = ran_with
    with contextlib.suppress(OSError, ValueError):
        files_found = loaded_instructions(session_id) or find_instructions(cwd)
        if files_found:
            ran_with["instruction_files"] = fit_instructions(session["metadata"], files_found)
    return observe(session, GIT_SECONDS)


def read_stdin() -> dict[str, Any]:
    """The JSON object on standard input. Waits only for a moment, because a hook must not block."""
    if sys.stdin is None or sys.stdin.isatty():
        return {}
    chunks: list[bytes] = []
    is_complete = threading.Event()

    def read() -> None:
        with contextlib.suppress(OSError):
            while sum(map(len, chunks)) < STDIN_BYTES:
                chunk = os.read(0, 65536)
                chunks.append(chunk)
                if not chunk or json_object(b"".join(chunks)):
                    break
        is_complete.set()

    threading.Thread(target=read, daemon=True).start()
    is_complete.wait(STDIN_SECONDS)
    return json_object(b"".join(chunks)) or {}


def json_object(text: str | bytes) -> dict[str, Any] | None:
    """The JSON object in `text`, or None."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def text_of(payload: dict[str, Any], *names: str) -> str | None:
    """The first of these fields that is text and not empty."""
    values = (payload.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value.strip()), None)


def parse_exit_code(text: str | None) -> int | None:
    """A signed number of 32 bits; None for anything else."""
    try:
        number = int(text or "")
    except ValueError:
        return None
    return number if -(2**31) <= number < 2**31 else None


def parse_cost(text: str | None) -> float | None:
    """A cost in dollars, below a million; None for anything else."""
    return float(text) if text and re.fullmatch(r"\d{1,6}(\.\d{1,9})?", text.strip()) else None


def one_line(text: str, limit: int) -> str:
    """Text as the site accepts it: on one line, printable, at most `limit` characters."""
    return "".join(character if character.isprintable() else "?" for character in text.strip()[:limit]).strip()


def variable(name: str, limit: int) -> str:
    """An environment variable as the site accepts it; "" if it is not set."""
    return one_line(os.environ.get(name, ""), limit)


def codex_log(session_id: str) -> Path | None:
    """The log that names this session. It is never simply the newest log, which may belong to another session."""
    home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
    if not re.fullmatch(r"[\w-]+", session_id):
        return None
    return next(iter((home / "sessions").glob(f"*/*/*/rollout-*{session_id}.jsonl")), None)


def open_regular(path: str | Path) -> IO[bytes]:
    """Open a regular file for reading. Raises OSError for anything else, such as a pipe that nobody writes to."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))

    file = open(path, "rb", opener=opener)  # noqa: SIM115 - the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise shutil.SpecialFileError(f"not a regular file: {path}")
    return file


def beginning_of(path: Path | None) -> str:
    """The beginning of a log; empty if there is none."""
    try:
        with open_regular(path or "") as file:
            return file.read(262_144).decode(errors="replace")
    except OSError:
        return ""


def first_timestamp(path: Path | None) -> datetime | None:
    """The first timestamp in a log, or None."""
    match = re.search(r'"timestamp"\s*:\s*"([^"]{10,40})"', beginning_of(path))
    return parse_time(match.group(1)) if match else None


def logged_version(path: Path | None) -> str:
    """The harness's version from its log; "" if the log has none."""
    match = re.search(r'"(?:version|cli_version|claude_code_version)"\s*:\s*"(\d+\.[\w.+-]{1,50})"', beginning_of(path))
    return match.group(1) if match else ""


def add_version(session: Session) -> None:
    """Add the version that the harness itself prints, unless it takes too long."""
    session.pop("unversioned", None)
    program = shutil.which(PROGRAMS.get(str(session["metadata"].get("harness")), ""))
    version = printed_version(program) if program else ""
    if version:
        session["metadata"].setdefault("ran_with", {"source": "hook"})["harness_version"] = version


def printed_version(program: str) -> str:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_SECONDS,
            check=False,
        )
        match = re.search(r"\d+\.\d[\w.+-]{0,50}", done.stdout.decode(errors="replace"))
        return match.group() if match else ""
    return ""


def parse_time(text: str | None) -> datetime | None:
    """An ISO 8601 time, in UTC; a time without a zone is taken as local. None for any other text."""
    try:
        return datetime.fromisoformat((text or "").replace("Z", "+00:00")).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None


# --- instruction files

# The event at which Claude Code calls its hooks when it loads such a file, and the first version that has the event.
LOADED = "InstructionsLoaded"
LOADED_SINCE = (2, 1, 69)
INSTRUCTION_NAMES = ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENTS.override.md", ".claude/CLAUDE.md")
HOME_NAMES = (".claude/CLAUDE.md", ".codex/AGENTS.md", ".config/gptme/AGENTS.md", "AGENTS.md")
RULES = ".claude/rules"


def instruction_detail() -> str:
    """How much to send of instruction files: "hashes", "text" or "none"."""
    return os.environ.get("GRADINGSITE_INSTRUCTIONS", "").strip() or "hashes"


def record_loaded(payload: dict[str, Any]) -> None:
    """Record a file that the harness loaded, with its current hash, for the end of the session."""
    session_id, path = text_of(payload, "session_id"), text_of(payload, "file_path")
    if not session_id or not path or instruction_detail() == "none":
        return
    cwd = text_of(payload, "cwd") or os.getcwd()
    file = instruction_file(Path(path), repository_root(cwd) or cwd)
    list_path = loaded_list(session_id)
    if file is None or (list_path.exists() and list_path.stat().st_size > MAX_LIST_BYTES):
        return
    list_path.parent.mkdir(mode=0o700, exist_ok=True)
    with open(os.open(list_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a") as loaded_files:
        loaded_files.write(json.dumps(file) + "\n")


def loaded_list(session_id: str) -> Path:
    """The file that lists the instruction files which this session loaded."""
    name = hashlib.sha256(session_id.encode(errors="replace")).hexdigest()[:32]
    return spool_folder() / "instructions" / f"{name}.jsonl"


def loaded_instructions(session_id: str) -> list[dict[str, Any]]:
    """The files that the harness reported as loaded, the latest version of each name. Deletes old sessions' lists."""
    list_path = loaded_list(session_id)
    if list_path.parent.is_dir():
        for other_list in list_path.parent.iterdir():
            if other_list.stat().st_mtime < time.time() - KEEP_DAYS * 86_400:
                other_list.unlink()
    if not list_path.exists() or instruction_detail() == "none":
        return []
    files = [json_object(line) for line in list_path.read_text().splitlines()]
    return list({file["name"]: file for file in files if file and "name" in file}.values())[:MOST_INSTRUCTIONS]


def find_instructions(cwd: str | None) -> list[dict[str, Any]]:
    """The instruction files in `cwd`, in its parents up to the repository's root, and in the home folder.

    Only those that are found within INSTRUCTION_SECONDS, and at most MOST_INSTRUCTIONS.
    """
    if not cwd or not os.path.isdir(cwd) or instruction_detail() == "none":
        return []
    deadline = time.monotonic() + INSTRUCTION_SECONDS
    root = repository_root(cwd) or os.path.realpath(cwd)
    places, folder = [], Path(os.path.realpath(cwd))
    while True:
        places += [folder / name for name in INSTRUCTION_NAMES] + rules_in(folder / RULES, deadline)
        if str(folder) == root or folder == folder.parent:
            break
        folder = folder.parent
    home = Path.home()
    places += [home / name for name in HOME_NAMES] + rules_in(home / RULES, deadline)
    files: dict[str, dict[str, Any]] = {}
    for place in places:
        if len(files) >= MOST_INSTRUCTIONS or time.monotonic() > deadline:
            break
        file = instruction_file(place, root)
        if file is not None:
            files.setdefault(file["name"], file)
    return list(files.values())


def rules_in(folder: Path, deadline: float) -> list[Path]:
    """The rule files below a folder that are found before the deadline, at most MOST_INSTRUCTIONS."""
    rules: list[Path] = []
    for path, folders, names in os.walk(folder):
        folders.sort()
        rules += [Path(path) / name for name in sorted(names) if name.endswith(".md")]
        if len(rules) >= MOST_INSTRUCTIONS or time.monotonic() > deadline:
            break
    return rules[:MOST_INSTRUCTIONS]


def repository_root(cwd: str) -> str:
    """The folder with .git at or above this one; "" if there is none."""
    folder = Path(os.path.realpath(cwd))
    roots = (each for each in [folder, *folder.parents] if (each / ".git").exists())
    return str(next(roots, ""))


def instruction_file(path: Path, root: str) -> dict[str, Any] | None:
    """Name, length and SHA-256 of a file; None if it is not a regular file of acceptable size."""
    try:
        with open_regular(path) as file:
            data = file.read(MOST_INSTRUCTION_BYTES + 1)
    except OSError:
        return None
    if not data or len(data) > MOST_INSTRUCTION_BYTES:
        return None
    name = one_line(shown_path(path, root), 200)
    file_facts: dict[str, Any] = {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    if instruction_detail() == "text":
        file_facts["text"] = data.decode(errors="replace").replace("\0", "?")[:MOST_TEXT]
    return file_facts


def shown_path(path: Path, root: str) -> str:
    """A path relative to the repository, or else to home."""
    for folder, prefix in ((root, ""), (str(Path.home()), "~/")):
        for each in (str(path), os.path.realpath(path)):
            if folder and each.startswith(folder.rstrip(os.sep) + os.sep):
                return prefix + each[len(folder.rstrip(os.sep)) + 1 :].replace(os.sep, "/")
    return str(path)


def fit_instructions(metadata: dict[str, Any], files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The files that fit into the site's limit together with these metadata. Texts are dropped before files."""
    room = MOST_METADATA - len(json.dumps(metadata))
    if len(json.dumps(files)) > room:
        files = [{name: value for name, value in file.items() if name != "text"} for file in files]
    while files and len(json.dumps(files)) > room:
        files = files[:-1]
    return files


# --- facts from git


def observe(session: Session, seconds: float) -> Session:
    """Add the session's project, commits and pull requests. `unobserved` is set if git takes longer than `seconds`."""
    facts: dict[str, Any] = {"pull_requests": split_list(os.environ.get("GRADINGSITE_PULL_REQUEST"))}
    deadline = time.monotonic() + seconds
    try:
        add_project(session, deadline)
        facts["commits"] = commits(session, deadline)
        session.pop("unobserved", None)
    except subprocess.TimeoutExpired:
        session["unobserved"] = "git did not answer in time"
    except (OSError, subprocess.SubprocessError, ValueError):
        facts["commits"] = []  # no git, or no repository
    session["facts"] = {**session.get("facts", {}), **{name: value for name, value in facts.items() if value}}
    return session


def add_project(session: Session, deadline: float) -> None:
    """Add the repository's remote, or else its folder's name, unless the caller named the project."""
    cwd = session.get("cwd")
    if not cwd or not os.path.isdir(cwd) or session["metadata"].get("project"):
        return
    rows = git(cwd, deadline, "config", "--get-regexp", r"^remote\..*\.url$", check=False).splitlines()
    remotes = dict(row.split(" ", 1) for row in rows if " " in row)
    remote = remotes.get("remote.origin.url") or next(iter(remotes.values()), "")
    name = one_line(without_user(remote) or os.path.basename(repository_root(cwd)), 300)
    if name:
        session["metadata"]["project"] = name


def without_user(remote: str) -> str:
    """The address of a remote without user, password and query."""
    return re.sub(r"^([a-z+.-]+://)?[^/]*@", r"\1", remote.strip().partition("?")[0], flags=re.IGNORECASE)


def parse_lessons(text: str | None) -> list[dict[str, Any]]:
    """Lessons written as "name=salience, name", in the form that the site accepts; at most 200.

    A salience that is not a number from 0 to 1 is left out.
    """
    lessons = []
    for part in split_list(text):
        name, _, salience = (half.strip() for half in part.partition("="))
        if not name:
            continue
        lesson: dict[str, Any] = {"name": one_line(name, 100)}
        if re.fullmatch(r"0?\.\d+|[01](\.0*)?", salience):
            lesson["salience"] = float(salience)
        lessons.append(lesson)
    return lessons[:200]


def split_list(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def add_past_commits(session: Session) -> None:
    """Add the project and the commits of a session that ended long ago, as far as git still shows them.

    They are added as claims, since nobody observed them. Nothing is added if the folder is gone or git takes too long.
    """
    with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
        add_project(session, time.monotonic() + GIT_SECONDS_PAST)
        past_commits = commits(session, time.monotonic() + GIT_SECONDS_PAST, is_past=True)
        if past_commits:
            session["facts"] = {"commits": past_commits}
            session["metadata"]["facts_witness"] = "claimed"


def commits(session: Session, deadline: float, *, is_past: bool = False) -> list[dict[str, str]]:
    """The session's commits. `by` says how they were found.

    They are the commits with the session's id in a Session-Id trailer. If there are none, they are the commits without
    such a trailer that were made in the session's own worktree between its start and end. `is_past`: leave out commits
    after the session's end without reading them, because there may be many.
    """
    cwd, metadata = session["cwd"], session["metadata"]
    if not cwd or not os.path.isdir(cwd):
        return []
    start, end = parse_time(metadata.get("started_at")), datetime.fromisoformat(metadata["ended_at"])
    since = (start or end - timedelta(days=1)) - timedelta(minutes=1)
    until = [f"--until={(end + timedelta(minutes=1)).isoformat()}"] if is_past else []
    recent = [f"--since={since.isoformat()}", *until, f"-n{MOST_COMMITS}", "--no-show-signature"]
    columns = "--format=%H%x1f%cI%x1f%(trailers:key=Session-Id,valueonly,separator=%x2c)%x1f%s"
    records = git(cwd, deadline, "log", "-z", "--all", "HEAD", *recent, columns).split("\0")[:-1]
    rows = [record.split("\x1f", 3) for record in records]
    matching = [(sha, at, subject) for sha, at, ids, subject in rows if metadata["session_id"] in split_list(ids)]
    by = "trailer"
    if not matching and start:
        columns = "--format=%H%x1f%gd%x1f%gs"
        options = ("-z", "-g", *until, f"-n{MOST_COMMITS}", "--date=unix")
        reflog = git(cwd, deadline, "log", *options, columns).split("\0")[:-1]
        first, last = start.timestamp() - 1, end.timestamp() + 1
        hashes = {sha for sha, at in worktree_commits(reflog) if first <= at <= last}
        matching = [(sha, at, subject) for sha, at, ids, subject in rows if sha in hashes and not ids.strip()]
        by = "own worktree, between start and end"
    if not matching:
        return []
    repo = without_user(git(cwd, deadline, "config", "--get", "remote.origin.url", check=False).strip())[:300]
    return [{"sha": sha, "at": at, "subject": subject[:200], "repo": repo, "by": by} for sha, at, subject in matching]


def worktree_commits(reflog: list[str]) -> Iterator[tuple[str, int]]:
    """(hash, Unix time) of the commits made in this worktree, without pulled or rebased commits.

    `reflog` are the records of its reflog: hash, selector and action.
    """
    for record in reflog:
        sha, selector, action = record.split("\x1f", 2)
        match = re.search(r"@\{(\d+)", selector)
        if match and action.startswith("commit"):
            yield sha, int(match.group(1))


def git(cwd: str, deadline: float, *arguments: str, check: bool = True) -> str:
    """The output of a git command.

    Raises TimeoutExpired at the deadline, and CalledProcessError if the command fails and `check` is set.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # Never fetch, whatever the repository's settings say: a remote's URL may run a command.
    environment.update(
        GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0", GIT_NO_LAZY_FETCH="1", GIT_ALLOW_PROTOCOL="none"
    )
    done = subprocess.run(
        ["git", "-C", cwd, "-c", "core.fsmonitor=false", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=max(0.05, deadline - time.monotonic()),
        env=environment,
        check=check,
    )
    return done.stdout.decode(errors="replace")


# --- the spool


def spool_folder() -> Path:
    folder = Path(os.environ.get("GRADINGSITE_SPOOL") or HOME / "spool")
    if folder == HOME / "spool":
        HOME.mkdir(mode=0o700, parents=True, exist_ok=True)  # `parents` below would give HOME the default mode
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def spool(session: Session) -> Path:
    """Write the session to the spool. Returns its folder, whose name sorts by time."""
    folder = spool_folder()
    draft = folder / f".{uuid.uuid4().hex}"
    draft.mkdir(mode=0o700)
    write(draft, session)
    entry = folder / f"{time.time_ns()}-{draft.name[1:9]}"
    draft.rename(entry)
    return entry


def write(entry: Path, session: Session) -> None:
    text = json.dumps(session, indent=1)
    part = entry / "session.json.new"
    part.write_text(text)
    part.replace(entry / "session.json")


def queued_entries(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if entry.name[0].isdigit() and entry.is_dir())


def copy_files(entry: Path, session: Session) -> None:
    """Copy the session's files into the spool if there is room, because the harness may delete or change its logs."""
    used = sum(file.stat().st_size for file in entry.parent.glob("[0-9]*/*"))
    for part, path in session["files"].items():
        copy = entry / part
        try:
            size = os.path.getsize(path)
            if os.path.isfile(path) and Path(path) != copy and size <= MOST_BYTES and used + size <= MOST_COPIED:
                shutil.copyfile(path, copy)
                session.setdefault("names", {})[part] = os.path.basename(path)
                session["files"][part] = str(copy)
                used += size
        except OSError:  # no room: it is sent from its original place
            if Path(path) != copy and copy.exists():
                copy.unlink()
    with contextlib.suppress(OSError):
        write(entry, session)


def archive_sent(entry: Path, session: Session) -> None:
    """Move a sent session to the folder `sent`, for --resend.

    It is deleted instead if a file of it was not copied into the spool, or if nothing is to be kept.
    """
    folder = entry.parent / "sent"
    is_complete = all(Path(path).parent == entry or not os.path.exists(path) for path in session["files"].values())
    if keep_days() and is_complete:
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            parts = [part for part in session["files"] if (entry / part).exists()]
            write(entry, {**session, "tries": 0, "files": {part: str(folder / entry.name / part) for part in parts}})
            entry.rename(folder / entry.name)
            return
    shutil.rmtree(entry, ignore_errors=True)


def sent_entries(folder: Path) -> list[tuple[float, Path]]:
    """(time sent, entry) of the kept sessions, the oldest first."""
    entries = []
    for file in folder.glob("sent/[0-9]*/session.json"):
        with contextlib.suppress(OSError):
            entries.append((file.stat().st_mtime, file.parent))
    return sorted(entries)


def delete_old_sent(folder: Path) -> None:
    """Delete sent sessions that are too old, too many or take too much room, the oldest first."""
    room = MOST_COPIED
    keep_since = time.time() - keep_days() * 86_400
    for number, (sent_at, entry) in enumerate(reversed(sent_entries(folder)), 1):
        with contextlib.suppress(OSError):
            room -= sum(file.stat().st_size for file in entry.iterdir())
        if sent_at < keep_since or room < 0 or number > MOST_SENT:
            shutil.rmtree(entry, ignore_errors=True)


def keep_days() -> float:
    text = os.environ.get("GRADINGSITE_KEEP_DAYS", "").strip()
    return float(text) if re.fullmatch(r"\d{1,4}(\.\d+)?", text) else KEEP_DAYS


def refuse(entry: Path, answer: str) -> None:
    """Move an entry that the site refused out of the queue, with the site's answer."""
    folder = entry.parent / "refused"
    folder.mkdir(mode=0o700, exist_ok=True)
    (entry / "answer.txt").write_text(answer)
    entry.rename(folder / entry.name)
    for old in sorted(folder.iterdir())[:-MOST_REFUSED]:
        shutil.rmtree(old, ignore_errors=True)


# --- sending


def start_sender() -> None:
    """Start the sender as a process that outlives the hook and inherits none of its pipes."""
    subprocess.Popen(
        [sys.executable, os.path.abspath(__file__), "--send"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=str(spool_folder()),
    )


@contextlib.contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    with open(folder / ".lock", "w") as lock:
        if fcntl:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def send_all(say: Callable[[str], None]) -> int:
    """Send the queued sessions until the queue is empty or the site is down. Returns 0 if the queue is empty.

    Sessions with few failed tries come first; of these, the oldest. A session that fails or is refused does not block
    the others.
    """
    folder = spool_folder()
    with one_at_a_time(folder):
        entries = []
        failures = 0
        for entry in queued_entries(folder):
            try:
                entries.append((entry, read_entry(entry)))
            except BadEntry as problem:
                say(f"{entry.name}: {problem}; moved to {folder / 'refused'}")
                refuse(entry, str(problem))
        for entry, session in sorted(entries, key=lambda queued: (queued[1]["tries"], queued[0])):
            try:
                prepare(entry, session)
                is_accepted, result = send(session)
            except BadEntry as problem:
                is_accepted, result = False, f"cannot be sent: {problem}"
            say(f"{session['metadata']['session_id']}: {result}")
            if is_accepted:
                archive_sent(entry, session)
                continue
            if is_accepted is False:
                refuse(entry, result)
                continue
            if not result.startswith(IN_TROUBLE):
                break  # the site is unreachable, or refuses the token
            session["tries"] += 1
            with contextlib.suppress(OSError):
                write(entry, session)
            failures += 1
            if failures == MOST_FAILURES:
                break
        delete_old_sent(folder)
    remaining = len(queued_entries(folder))
    say(f"{remaining} unsent in {folder}" if remaining else "everything is sent")
    return 1 if remaining else 0


def resend(arguments: list[str], say: Callable[[str], None]) -> int:
    """Queue everything again that was sent since the given time, and send the queue."""
    since = parse_time(arguments[0] if arguments else None)
    if since is None:
        say("expected a time after --resend, such as 2026-03-31T02:30:00Z: when the backup was made")
        return 2
    folder, count = spool_folder(), 0
    with one_at_a_time(folder):
        for sent_at, entry in sent_entries(folder):
            if sent_at < since.timestamp() - RESEND_SLACK:
                continue
            queued_entry = folder / entry.name
            try:
                session = read_entry(entry)
            except BadEntry as problem:
                say(f"{entry.name}: {problem}; not sent")
                continue
            session["files"] = {part: str(queued_entry / part) for part in session["files"]}
            session["resent"] = True
            write(entry, session)
            entry.rename(queued_entry)
            count += 1
    say(f"to be sent again: {count}, since {since:%Y-%m-%d %H:%M:%S} UTC; kept for {keep_days():g} days")
    return send_all(say)


def prepare(entry: Path, session: Session) -> None:
    """Copy the session's files, and add facts from git that there was no time for when it ended. Raises BadEntry."""
    try:
        if "unobserved" in session:
            observe(session, GIT_SECONDS_LATER)
        if "unversioned" in session:
            add_version(session)
        copy_files(entry, session)
    except NOT_OURS as problem:
        raise BadEntry(f"{type(problem).__name__}: {problem}") from problem


def read_entry(entry: Path) -> Session:
    """The session of a spool entry. Raises BadEntry if this program did not write it."""
    try:
        session = json_object((entry / "session.json").read_bytes())
    except OSError as problem:
        raise BadEntry(f"its session.json cannot be read ({type(problem).__name__})") from problem
    metadata, files = (session or {}).get("metadata"), (session or {}).get("files")
    if session is None or not isinstance(metadata, dict) or not isinstance(files, dict) or "session_id" not in metadata:
        raise BadEntry("its session.json is not what this program writes")
    session["tries"] = session["tries"] if isinstance(session.get("tries"), int) else 0
    return session


def send(session: Session) -> tuple[bool | None, str]:
    """Send a session. Returns (True, result) if it was accepted, (False, result) if it was refused for good, and
    (None, result) if it is to be sent later. The result is a text.
    """
    try:
        status, answer, _headers = post(session)
    except SetupError as problem:
        return None, str(problem)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return None, f"{site()} is unreachable ({type(error).__name__}: {error}); kept for later"
    answer = answer[:MOST_SHOWN]
    if status in (200, 201):
        return True, f"accepted, {answer}"
    if status >= SERVER_ERROR:
        return None, f"{IN_TROUBLE} {status}: {answer}"
    if status in TRY_AGAIN:
        return None, f"kept for later, since the site answered {status}: {answer}"
    return False, f"refused with {status}: {answer}"


def post(session: Session) -> tuple[int, str, Any]:
    """Send a session. If the site refuses OPTIONAL fields, send it again without them.

    Returns the status, the beginning of the answer, and its headers.
    """
    status, answer, headers = request(session)
    problems = (json_object(answer) or {}).get("problems") if status == UNPROCESSABLE else None
    parts = [str(problem.get("part")) for problem in problems or [] if isinstance(problem, dict)]
    refused = OPTIONAL & {part.split(".")[1] for part in parts if part.startswith("metadata.")}
    refused &= session["metadata"].keys()
    if not refused:
        return status, answer, headers
    metadata = {name: value for name, value in session["metadata"].items() if name not in refused}
    return request({**session, "metadata": metadata})


def request(session: Session) -> tuple[int, str, Any]:
    """POST a session, with its files streamed from disk. Returns as `post`; raises BadEntry for an invalid session."""
    address, make = parse_address()
    headers = {"Authorization": f"Bearer {token()}", **({RESENT: "yes"} if session.get("resent") else {})}
    with contextlib.ExitStack() as files:
        try:
            size, kind, body = multipart(session, files)
        except NOT_OURS as problem:
            raise BadEntry(f"{type(problem).__name__}: {problem}") from problem
        connection = files.enter_context(contextlib.closing(make(address.netloc, timeout=SEND_SECONDS)))
        # The site may answer and close the connection before it has read the whole body.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(
                "POST",
                f"{address.path.rstrip('/')}/api/v1/sessions",
                body=body,
                headers={**headers, "Content-Type": kind, "Content-Length": str(size)},
            )
        response = connection.getresponse()
        return response.status, response.read(MOST_ANSWERED).decode(errors="replace"), response.headers


def multipart(session: Session, files: contextlib.ExitStack) -> tuple[int, str, Iterator[bytes]]:
    """(length, content type, chunks) of the body. Missing and too large files are listed in the facts instead."""
    boundary = uuid.uuid4().hex
    opened: dict[str, tuple[IO[bytes], int]] = {}
    missing: dict[str, str] = {}
    for part, path in session["files"].items():
        try:
            file = files.enter_context(open_regular(path))
            size = os.fstat(file.fileno()).st_size
        except OSError as error:
            missing[part] = f"{type(error).__name__}: {path}"
            continue
        if size <= MOST_BYTES:
            opened[part] = (file, size)
        else:
            missing[part] = f"{size:,} bytes, too large to send: {path}"
    facts = {**session.get("facts", {}), **({"missing": missing} if missing else {})}
    texts = {"metadata": json.dumps(session["metadata"]).encode()}
    if facts:
        texts["facts"] = json.dumps(facts).encode()
    heads = {part: part_header(boundary, part, f"{part}.json") for part in texts}
    names = {**{part: os.path.basename(path) for part, path in session["files"].items()}, **session.get("names", {})}
    heads.update({part: part_header(boundary, part, names[part]) for part in opened})
    tail = f"--{boundary}--\r\n".encode()
    size = sum(len(line) + 2 for line in heads.values()) + sum(map(len, texts.values())) + len(tail)
    size += sum(length for _, length in opened.values())

    def body() -> Iterator[bytes]:
        for part, text in texts.items():
            yield heads[part] + text + b"\r\n"
        for part, (file, length) in opened.items():
            yield heads[part]
            yield from read_exactly(file, length)
            yield b"\r\n"
        yield tail

    return size, f"multipart/form-data; boundary={boundary}", body()


def part_header(boundary: str, part: str, filename: str) -> bytes:
    name = re.sub(r'["\\\r\n]', "_", filename)
    return (
        f'--{boundary}\r\nContent-Disposition: form-data; name="{part}"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode(errors="replace")


def read_exactly(file: IO[bytes], length: int) -> Iterator[bytes]:
    """The first `length` bytes of a file that may still grow. Raises OSError if it became shorter."""
    while length:
        chunk = file.read(min(length, 1 << 20))
        if not chunk:
            raise OSError("the file became shorter while it was sent")
        length -= len(chunk)
        yield chunk


def parse_address() -> tuple[urllib.parse.SplitResult, type[http.client.HTTPConnection]]:
    """The parsed address of the site, and the connection class for its scheme."""
    address = urllib.parse.urlsplit(site())
    make = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}.get(address.scheme)
    if make is None or not address.hostname:
        raise SetupError(f"cannot send to {site()!r}: expected http://… or https://…; correct GRADINGSITE_URL")
    return address, make


def site() -> str:
    return (os.environ.get("GRADINGSITE_URL") or SITE).rstrip("/")


def token() -> str:
    text = os.environ.get("GRADINGSITE_TOKEN", "").strip()
    if not text:
        with contextlib.suppress(OSError):
            text = (HOME / "token").read_text().strip()
    if not re.fullmatch(r"[!-~]+", text):
        raise SetupError(
            f"no token: set GRADINGSITE_TOKEN, or write it to {HOME / 'token'}; {site()} makes one for you"
        )
    return text


# --- setting up


class HookSettings(NamedTuple):
    """The variable and the default of a harness's settings folder, the file in it, and the event that calls hooks."""

    variable: str
    folder: str
    file: str
    event: str


HOOK_SETTINGS = {
    "claude-code": HookSettings("CLAUDE_CONFIG_DIR", "~/.claude", "settings.json", "SessionEnd"),
    "codex": HookSettings("CODEX_HOME", "~/.codex", "hooks.json", "Stop"),
    "gptme": HookSettings("", "~/.config/gptme", "config.toml", "session.end"),
}
HOOK_SECONDS = 10  # that a harness waits for the hook
BEGIN, END = "# >>> gradingsite", "# <<< gradingsite"


def set_up(arguments: list[str]) -> int:
    """Install or uninstall, after showing the change and asking.

    Returns 0 if it is done or was done before, 1 if it was not done, 2 for wrong arguments.
    """
    verb = next(option for option in ("--plugin", "--install", "--uninstall") if option in arguments)
    harness = next(iter(arguments[arguments.index(verb) + 1 :]), "")
    choices = PLUGIN_FILES if verb == "--plugin" else HOOK_SETTINGS
    if harness not in choices:
        print_line(f"expected {', '.join(choices)} after {verb}, not {harness!r}")
        return 2
    try:
        changes = changed_files(verb, harness, arguments)
        calls = plugin_calls(verb, harness)
    except (SetupError, OSError) as problem:
        print_line(str(problem))
        return 1
    for path, text in changes:
        show_change(path, text)
    for call in calls:
        print_line(f"would run {' '.join(call)}")
    if not changes and not calls:
        print_line(f"nothing to do: {harness} is set up already")
    elif not ("--yes" in arguments or confirm()):
        print_line("nothing was changed")
        return 1
    for path, text in changes:
        replace(path, text)
    # Adding a list of plugins fails if the harness already has it; only the last command counts.
    succeeded = [run_program(call) for call in calls]
    if succeeded and not succeeded[-1] and verb == "--plugin":
        print_line(f"{harness} did not accept the plugin; --install {harness} puts the hook into its settings instead")
        return 1
    return finish_set_up(verb, harness)


def changed_files(verb: str, harness: str, arguments: list[str]) -> list[tuple[Path, str]]:
    """The files that installing or uninstalling changes, with their new contents."""
    if verb == "--uninstall":
        changes = [(settings_path(harness), settings_without_hook(harness))]
    elif verb == "--install":
        changes = [*own_files(arguments), (settings_path(harness), settings_with_hook(harness))]
    else:
        changes = [*own_files(arguments), *plugin_files(harness)]
    return [(path, text) for path, text in changes if text != read_text(path)]


def finish_set_up(verb: str, harness: str) -> int:
    """Finish installing or uninstalling and run the check. Returns the exit status."""
    if verb == "--uninstall":
        shutil.rmtree(plugin_folder(harness), ignore_errors=True)
        return 0
    if verb == "--plugin" and settings_without_hook(harness) != read_text(settings_path(harness)):
        replace(settings_path(harness), settings_without_hook(harness))  # the hook would send each session twice
    if harness == "codex":
        print_line("Codex asks you to trust the hook: type /hooks there")
    return check()


def own_files(arguments: list[str]) -> list[tuple[Path, str]]:
    """The files of this program that an installation writes, with their contents: the token, and the program."""
    changes = []
    if "--token-file" in arguments:
        name = next(iter(arguments[arguments.index("--token-file") + 1 :]), "")
        text = (sys.stdin.read() if name == "-" else Path(name).expanduser().read_text()).strip()
        if not re.fullmatch(r"gs_[!-~]+", text):
            raise SetupError(
                f"expected a token, gs_…, in {'standard input' if name == '-' else name}; nothing was changed"
            )
        changes.append((HOME / "token", text))
    return [*changes, (installed_program(), Path(__file__).read_text())]


def installed_program() -> Path:
    return HOME / "submit_session.py"


def settings_path(harness: str) -> Path:
    """The harness's settings file, with a link resolved."""
    variable, folder, name, _event = HOOK_SETTINGS[harness]
    return Path(os.path.realpath(Path(os.environ.get(variable) or folder).expanduser() / name))


def command() -> str:
    """The command by which a harness calls this program.

    It uses the system's Python, because a virtual environment may be deleted.
    """
    folder = Path(sys.base_prefix) / "bin"
    names = (f"python{sys.version_info[0]}.{sys.version_info[1]}", "python3")
    python = next((str(folder / name) for name in names if (folder / name).exists()), sys.executable)
    return " ".join(map(shlex.quote, [python, str(installed_program())]))


def calls_this_program(line: object) -> bool:
    return isinstance(line, str) and ".gradingsite/submit_session.py" in line


def is_our_hook(hook: object) -> bool:
    return isinstance(hook, dict) and calls_this_program(hook.get("command"))


def settings_with_hook(harness: str) -> str:
    """The harness's settings with the hook added once; everything else is unchanged."""
    text = settings_without_hook(harness)
    if harness == "gptme":
        event = HOOK_SETTINGS[harness].event
        lines = [
            BEGIN,
            "[[hooks.scripts]]",
            f'event = "{event}"',
            f"command = {json.dumps(command())}",
            f"timeout = {HOOK_SECONDS}",
            END,
        ]
        return text + ("\n" if text and not text.endswith("\n\n") else "") + "\n".join(lines) + "\n"
    settings = parse_settings(settings_path(harness), text)
    entry = {"hooks": [{"type": "command", "command": command(), "timeout": HOOK_SECONDS}]}
    for event in (HOOK_SETTINGS[harness].event, *extra_events(harness)):
        settings.setdefault("hooks", {}).setdefault(event, []).append(entry)
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def extra_events(harness: str) -> tuple[str, ...]:
    """The other events for which this version of the harness can call the hook.

    Earlier versions may refuse settings that name them.
    """
    program = shutil.which(PROGRAMS[harness]) if harness == "claude-code" else None
    numbers = re.findall(r"\d+", printed_version(program))[:3] if program else []
    return (LOADED,) if tuple(map(int, numbers)) >= LOADED_SINCE else ()


def settings_without_hook(harness: str) -> str:
    """The harness's settings without the hook; unchanged if it is not in them."""
    path = settings_path(harness)
    text = read_text(path)
    if harness == "gptme":
        return re.sub(rf"\n?{re.escape(BEGIN)}\n.*?{re.escape(END)}\n", "", text, flags=re.DOTALL)
    settings = parse_settings(path, text)
    hooks = settings.get("hooks", {})
    hooks_before = json.dumps(hooks)
    for event in {HOOK_SETTINGS[harness].event, LOADED} & hooks.keys():
        remaining_groups = []
        for group in hooks[event]:
            others = [hook for hook in group["hooks"] if not is_our_hook(hook)]
            if len(others) == len(group["hooks"]):
                remaining_groups.append(group)
            elif others:
                remaining_groups.append({**group, "hooks": others})
        if remaining_groups:
            hooks[event] = remaining_groups
        elif hooks[event]:  # an event that had no hooks stays as it was
            del hooks[event]
    if json.dumps(hooks) == hooks_before:
        return text
    if not hooks:
        del settings["hooks"]
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n" if settings else ""


def parse_settings(path: Path, text: str) -> dict[str, Any]:
    """The settings as a JSON object.

    Raises SetupError if they are not a JSON object, or if their hooks don't have the expected form, so that nothing is
    overwritten.
    """
    settings = json_object(text) if text.strip() else {}
    if settings is None:
        raise SetupError(f"{path} is not a JSON object; correct it first, nothing was changed")
    hooks = settings.get("hooks", {})
    groups_by_event = list(hooks.values()) if isinstance(hooks, dict) else [None]
    is_expected = all(
        isinstance(groups, list)
        and all(isinstance(group, dict) and isinstance(group.get("hooks"), list) for group in groups)
        for groups in groups_by_event
    )
    if not is_expected:
        raise SetupError(f'"hooks" in {path} is not what was expected, lists of {{"hooks": […]}}; nothing was changed')
    return settings


def read_text(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def replace(path: Path, text: str) -> None:
    """Write a file atomically, with its earlier permissions; a new file is private to its owner."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
            file.write(text)
        os.chmod(draft, mode)
        os.replace(draft, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()


def show_change(path: Path, text: str) -> None:
    """Print what would be written: a diff, and for this program a checksum. The token itself is never printed."""
    old = read_text(path)
    if path == HOME / "token":
        print_line(f"would write the token to {path}, readable by you alone")
        return
    if path == installed_program():
        print_line(f"would write {path}, sha256 {hashlib.sha256(text.encode()).hexdigest()}")
        if not old:
            return
    lines = difflib.unified_diff(old.splitlines(), text.splitlines(), str(path), str(path), "now", "then", lineterm="")
    print("\n".join(lines))


def confirm(question: str = "Change that?") -> bool:
    """Whether the person at the terminal confirms; False without a terminal."""
    try:
        with open("/dev/tty") as terminal:
            print(f"gradingsite: {question} [y/N] ", end="", flush=True)
            return terminal.readline().strip().lower() in ("y", "yes")
    except OSError:
        print_line("no terminal to ask on; use --yes to proceed without asking")
        return False


# --- the plugin

# By harness: the folder of a plugin's manifest, the file that lists plugins, and the subcommands that install and
# remove one.
PLUGIN_FILES = {
    "claude-code": (".claude-plugin", ".claude-plugin/marketplace.json", "install", "uninstall"),
    "codex": (".codex-plugin", ".agents/plugins/marketplace.json", "add", "remove"),
}
PLUGIN, PLUGIN_VERSION, PLUGIN_SECONDS = "gradingsite", "1.0.0", 120
ABOUT = "Sends each finished session to gradingsite, which grades it."
SKILL = """\
---
name: gradingsite
description: Reports whether this machine's sessions reach gradingsite, and sends unsent ones. Use when somebody asks
  whether a session was recorded, why one is missing, or how to label the work for gradingsite.
---

# gradingsite

A hook sends each session of this harness to {site} when it ends. You need not do anything for that, and must not submit
or grade your own session.

- Is everything working? Run `{command} --check` and repeat its output, one line per check.
- Sessions are unsent because the site was unreachable: `{command} --flush` sends them.
- The kind of work, the task and the title come from the environment in which the harness was started:
  `GRADINGSITE_CATEGORY`, `GRADINGSITE_TASK`, `GRADINGSITE_TITLE`. Tell the person which to set; they take effect when
  the harness is started again.
"""


def plugin_folder(harness: str) -> Path:
    return HOME / "plugins" / harness


def plugin_files(harness: str) -> list[tuple[Path, str]]:
    """The files of the plugin and of the list that it is installed from, with their contents.

    Raises SetupError if the harness's program, which installs it, is not found.
    """
    if not shutil.which(PROGRAMS[harness]):
        raise SetupError(
            f"{PROGRAMS[harness]} is not on the PATH, so that it cannot install a plugin; --install {harness} puts the "
            "hook into its settings instead"
        )
    manifest, listing, _add, _remove = PLUGIN_FILES[harness]
    root = plugin_folder(harness)
    folder = root / PLUGIN
    about: dict[str, Any] = {"name": PLUGIN, "version": PLUGIN_VERSION, "description": ABOUT}
    listed_plugin: dict[str, Any] = {"name": PLUGIN, "source": f"./{PLUGIN}", "description": ABOUT}
    if harness == "codex":
        about.update(skills="./skills/", hooks="./hooks/hooks.json")
        policy = {"installation": "AVAILABLE", "authentication": "ON_INSTALL"}
        listed_plugin.update(source={"source": "local", "path": f"./{PLUGIN}"}, policy=policy, category="Productivity")
    entry = {"hooks": [{"type": "command", "command": command(), "timeout": HOOK_SECONDS}]}
    hooks = {event: [entry] for event in (HOOK_SETTINGS[harness].event, *extra_events(harness))}
    contents = {
        root / listing: {"name": PLUGIN, "owner": {"name": PLUGIN}, "plugins": [listed_plugin]},
        folder / manifest / "plugin.json": about,
        folder / "hooks" / "hooks.json": {"hooks": hooks},
    }
    skill = SKILL.format(site=site(), command=command())
    texts = [(path, json.dumps(content, indent=2) + "\n") for path, content in contents.items()]
    return [*texts, (folder / "skills" / PLUGIN / "SKILL.md", skill)]


def plugin_calls(verb: str, harness: str) -> list[list[str]]:
    """The commands of the harness that install or remove the plugin, as far as they are needed."""
    program = shutil.which(PROGRAMS[harness])
    if harness not in PLUGIN_FILES or not program:
        return []
    _manifest, _listing, add, remove = PLUGIN_FILES[harness]
    name = f"{PLUGIN}@{PLUGIN}"
    if verb == "--plugin" and not has_plugin(harness):
        listing = [program, "plugin", "marketplace", "add", str(plugin_folder(harness))]
        return [listing, [program, "plugin", add, name]]
    if verb == "--uninstall" and has_plugin(harness):
        return [[program, "plugin", remove, name], [program, "plugin", "marketplace", "remove", PLUGIN]]
    return []


def run_program(call: list[str]) -> bool:
    """Whether the program succeeded. Prints its output if not."""
    try:
        done = subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, timeout=PLUGIN_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as problem:
        print_line(f"{' '.join(call)}: {type(problem).__name__}: {problem}")
        return False
    if done.returncode:
        print_line(f"{' '.join(call)}: {printable((done.stdout + done.stderr).decode(errors='replace').strip())}")
    return done.returncode == 0


def has_plugin(harness: str) -> bool:
    """Whether the harness's settings name the plugin."""
    if harness not in PLUGIN_FILES:
        return False
    name = "config.toml" if harness == "codex" else HOOK_SETTINGS[harness].file
    try:
        return f"{PLUGIN}@{PLUGIN}" in read_text(settings_path(harness).with_name(name))
    except (OSError, ValueError):
        return False


# --- backfilling earlier sessions


# By harness: the folders in which it keeps its logs.
LOG_FOLDERS: dict[str, Callable[[], list[Path]]] = {
    "claude-code": lambda: [folder_of("CLAUDE_CONFIG_DIR", "~/.claude") / "projects"],
    "codex": lambda: [folder_of("CODEX_HOME", "~/.codex") / name for name in ("sessions", "archived_sessions")],
    "gptme": lambda: [folder_of("GPTME_LOGS_HOME", "") if set_in("GPTME_LOGS_HOME") else gptme_data() / "logs"],
}
NEVER_LOGS = {".git", "node_modules"}
SNIFFED = 65_536  # bytes at each end of a file from which it is recognised
ZSTD = b"\x28\xb5\x2f\xfd"
# The types of lines in Claude Code's logs.
CLAUDE_TYPES = {"user", "assistant", "system", "summary", "file-history-snapshot", "queue-operation", "attachment"}
# A log written this recently belongs to a running session, which its hook will send.
QUIET_SECONDS = 600
# Seconds between attempts to reach a site that is down, before giving up. A quota is waited for.
PAUSES = (1, 3, 10, 30, 60)
PROGRESS_SECONDS = 10  # between two lines of progress, if the output is not a terminal
NONE, BACKLOG = "none", "backlog"
TOO_MANY = 429
# Statuses that every other log would get too, so that sending stops.
FATAL_STATUSES = {301, 302, 303, 307, 308, 401, 403, 404, 405}

# The results for a file, in the order of the table.
NEW, ADDED, KNOWN, EARLIER, REFUSED, UNSENT, RUNNING, OTHER, SKIPPED = RESULTS = (
    "sent, a new session each",
    "added to an existing session",
    "already on the site",
    "sent earlier from here",
    "refused",
    "not sent yet",
    "may still be running; its hook sends it",
    "not a session log",
    "skipped: a link, or not a regular file",
)


class Log:
    """A file in a harness's folder, with its session and when that started and ended.

    `result` is what became of the file, one of RESULTS; empty until it is known. `why` explains it.
    """

    def __init__(self, path: str, harness: str) -> None:
        self.path = path
        self.harness = harness
        self.result = ""
        self.why = ""
        self.session_id = ""
        self.folder = ""
        self.size = 0
        self.changed = 0
        self.start: datetime | None = None
        self.end = datetime.fromtimestamp(0, timezone.utc)

    @property
    def key(self) -> str:
        """A key for the file's current content; it changes when the file grows."""
        return f"{self.path}\n{self.size}\n{self.changed}"


def log_folders(harness: str) -> str:
    """The folders in which a harness keeps its logs, as text."""
    return " and ".join(map(str, LOG_FOLDERS[harness]()))


def set_in(variable: str) -> str:
    """The value of an environment variable; "" if it is not set."""
    return os.environ.get(variable, "").strip()


def folder_of(variable: str, default: str) -> Path:
    return Path(set_in(variable) or default).expanduser()


def gptme_data() -> Path:
    return folder_of("XDG_DATA_HOME", "~/.local/share") / "gptme"


def backfill(arguments: list[str]) -> int:
    """Send the logs of sessions that ended before the agent was connected.

    Returns 0 if the site has all of them, 1 if not, 2 for wrong arguments.
    """
    harnesses = [argument for argument in arguments if argument in LOG_FOLDERS] or [*LOG_FOLDERS]
    chosen = next(iter(arguments[arguments.index("--judge") + 1 :]), "") if "--judge" in arguments else ""
    if "--judge" in arguments and chosen not in (NONE, BACKLOG):
        print_line(f"expected {NONE} or {BACKLOG} after --judge, not {chosen!r}")
        return 2
    try:
        judging = fetch_json("/api/v1/judging")
        agent = fetch_json("/api/v1/token")["agent"]
    except SetupError as problem:
        print_line(str(problem))
        return 1
    before, until = parse_time(judging.get("history_before")), parse_time(judging.get("history_until"))
    with contextlib.suppress(OSError):
        HOME.mkdir(mode=0o700, parents=True, exist_ok=True)
    memory = HOME / "backfilled.jsonl"
    with open(HOME / ".backfill.lock", "w") as lock:
        if not try_lock(lock):
            print_line("another --backfill is running here")
            return 1
        known_logs = load_memory(memory, agent)
        logs = [log for harness in harnesses for log in find_logs(harness, known_logs)]
        to_send = sorted((log for log in logs if not log.result), key=lambda log: (log.end, log.path))
        if not to_send:
            return print_summary(logs, arguments)
        old = [log for log in to_send if before and log.end < before]
        if not until or (old and datetime.now(timezone.utc) > until):
            why = f"it could until {until:%Y-%m-%d %H:%M} UTC" if until else "it is the agent’s own"
            print_line(f"nothing was sent: this token cannot send earlier sessions; {why}")
            print_line(f"make a new one, for a hook, on {site()}/connect/: it can for a week")
            return 1
        describe_history(to_send, len(old), judging)
        if "--yes" in arguments:
            chosen = chosen or NONE
        elif old and not chosen:
            chosen = choose_judging(len(old), judging)
        else:
            chosen = (chosen or NONE) if confirm("Send them?") else ""
        if not chosen:
            print_line("nothing was sent")
            return 1
        try:
            send_history(to_send, set(old), chosen, agent, memory)
        except KeyboardInterrupt:
            clear_line()
            print_line("stopped; run it again to continue")
        return print_summary(logs, arguments)


def fetch_json(path: str) -> dict[str, Any]:
    """The site's answer to a GET. Raises SetupError with what to do if it is not usable."""
    try:
        status, answer = get(path)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SetupError(f"{site()} does not answer ({type(error).__name__}: {error}); nothing was sent") from error
    reply = json_object(answer)
    if status == OK and reply is not None:
        return reply
    if status == UNAUTHORIZED:
        raise SetupError(f"{site()} does not know the token; make a new one on its page Connect. Nothing was sent")
    raise SetupError(f"{site()} answered {status} to {path}: {answer[:200]}; nothing was sent")


def try_lock(lock: IO[str]) -> bool:
    try:
        if fcntl:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def load_memory(memory: Path, agent: str) -> dict[str, str]:
    """The site's earlier answer for each file of this agent, by the file's key: "" if accepted, else the refusal."""
    known_logs = {}
    with contextlib.suppress(OSError), open(memory, errors="replace") as file:
        for line in file:
            row = json_object(line) or {}
            if row.get("site") == site() and row.get("agent") == agent and isinstance(row.get("file"), str):
                known_logs[row["file"]] = str(row.get("refused") or "")
    return known_logs


def remember(memory: Path, agent: str, log: Log) -> None:
    row = {"site": site(), "agent": agent, "file": log.key, "refused": log.why if log.result == REFUSED else ""}
    with open(os.open(memory, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a") as file:
        file.write(json.dumps(row) + "\n")


def find_logs(harness: str, known_logs: dict[str, str]) -> Iterator[Log]:
    """Every file in the harness's folders with what it is. Links are not followed."""
    for folder in LOG_FOLDERS[harness]():
        for path, is_regular in walk_files(str(folder)):
            log = Log(path, harness)
            if not is_regular:
                log.result = SKIPPED
            else:
                try:
                    inspect_log(log, known_logs)
                except OSError as error:
                    log.result, log.why = REFUSED, f"cannot be read: {error.strerror}"
            yield log


def walk_files(folder: str) -> Iterator[tuple[str, bool]]:
    """(path, whether it is a regular file) of each file below the folder. Folders in NEVER_LOGS are left out."""
    unread_folders = [folder]
    while unread_folders:
        current = unread_folders.pop()
        try:
            entries = sorted(os.scandir(current), key=lambda entry: entry.name)
        except OSError:
            if current != folder or os.path.exists(folder):
                print_line(f"cannot be read: {printable(current)}")
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in NEVER_LOGS:
                    unread_folders.append(entry.path)
            else:
                yield entry.path, entry.is_file(follow_symlinks=False)


def inspect_log(log: Log, known_logs: dict[str, str]) -> None:
    """Read the beginning and end of a file, and set its session, start and end, or its result."""
    with open(log.path, "rb") as file:
        about = os.fstat(file.fileno())
        log.size, log.changed = about.st_size, about.st_mtime_ns
        head = file.read(SNIFFED)
        file.seek(max(0, about.st_size - SNIFFED))
        tail = file.read(SNIFFED)
    if log.key in known_logs:
        log.why = known_logs[log.key]
        log.result = REFUSED if log.why else EARLIER
        return
    log.session_id = session_id_of(log, head, tail)
    if not log.session_id:
        log.result = OTHER
        return
    log.folder = working_folder(head)
    now = datetime.now(timezone.utc)
    log.start = next(timestamps(head), None)
    log.end = max(
        (at for at in timestamps(tail) if at <= now), default=datetime.fromtimestamp(about.st_mtime, timezone.utc)
    )
    if log.start and log.start > log.end:
        log.start = None
    if about.st_mtime > time.time() - QUIET_SECONDS:
        log.result = RUNNING
    elif log.size > MOST_BYTES:
        log.result, log.why = REFUSED, f"{log.size:,} bytes, too large to send"


def timestamps(text: bytes) -> Iterator[datetime]:
    """The timestamps in the lines of a log, in order."""
    for match in re.finditer(rb'"timestamp"\s*:\s*"([^"]{10,40})"', text):
        moment = parse_time(match.group(1).decode(errors="replace"))
        if moment:
            yield moment


def working_folder(head: bytes) -> str:
    """The working folder, from the beginning of a Claude Code or Codex log; "" if it is not stated."""
    rows = [row for row in map(json_object, head.splitlines()) if row]
    objects = [value for row in rows for value in (row, row.get("payload")) if isinstance(value, dict)]
    return next(filter(None, (text_of(value, "cwd") for value in objects)), "")


def session_id_of(log: Log, head: bytes, tail: bytes) -> str:
    """The id of the session whose log this is, read as the site reads it; "" if this is no log of the harness."""
    path = Path(log.path)
    rows = [row for row in map(json_object, head.removeprefix(b"\xef\xbb\xbf").splitlines()) if row]
    # The first line is longer than the part that was read: use the file's name.
    is_cut = not rows and len(head) == SNIFFED and head.lstrip().startswith(b"{") and b"\n" not in head
    if log.harness == "gptme":
        is_log = is_cut or (bool(rows) and "role" in rows[0])
        return path.parent.name if is_log and path.name == "conversation.jsonl" else ""
    if log.harness == "codex":
        metas = [row.get("payload") for row in rows if row.get("type") == "session_meta"]
        ids = [text_of(meta, "id") for meta in [*metas, *rows[:1]] if isinstance(meta, dict)]
        named = re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=$|\.jsonl$)", path.stem)
        if head.startswith(ZSTD):  # Codex compresses old logs; the site expands them
            return named.group() if named and path.name.startswith("rollout-") else ""
        is_log = is_cut or any(isinstance(row.get("payload"), dict) for row in rows) or bool(ids and ids[0])
        if not is_log:
            return ""
        return next(filter(None, ids), named.group() if named else path.stem)
    if not is_cut and not any(row.get("type") in CLAUDE_TYPES or "sessionId" in row for row in rows):
        return ""
    rows += [row for row in map(json_object, tail.splitlines()) if row]
    messages = [row for row in rows if row.get("type") in ("user", "assistant", "attachment")] or rows
    if {row.get("isSidechain") for row in messages} == {True}:
        return next(filter(None, (text_of(row, "agentId") for row in messages)), path.stem)
    # If a log was copied into a new session, its end belongs to the new one.
    return next(filter(None, (text_of(row, "sessionId", "session_id") for row in reversed(messages))), path.stem)


def describe_history(to_send: list[Log], old_count: int, judging: dict[str, Any]) -> None:
    """Print what will be sent: the number, size and dates of the logs, by harness.

    `old_count` of their sessions ended before the agent was connected.
    """
    size = sum(log.size for log in to_send)
    print_line(
        f"{len(to_send):,} logs to send to {site()}, {size / 1e6:,.0f} MB, of sessions that ended from "
        f"{to_send[0].end:%Y-%m-%d} to {to_send[-1].end:%Y-%m-%d}"
    )
    for harness in LOG_FOLDERS:
        count = sum(log.harness == harness for log in to_send)
        if count:
            print_line(f"  {count:,} of {harness}, from {printable(log_folders(harness))}")
    if len(to_send) > old_count:
        more = len(to_send) - old_count
        print_line(
            f"{more:,} of them ended after this agent was connected, on {judging['history_before'][:16]} UTC: "
            f"they are judged like any session{price_note(more, judging)}"
        )


def price_note(count: int, judging: dict[str, Any]) -> str:
    """What judging `count` sessions costs, as the end of a sentence."""
    usd = judging.get("verdict_usd")
    if not isinstance(usd, (int, float)):
        return "; the site has no judge yet, so nothing is spent until it has one"
    by = f"by the last {judging['measured']}" if judging.get("measured") else "at most, since none was measured yet"
    return f", for about ${count * usd:,.2f} (${usd:,.4f} each, {by})"


def choose_judging(count: int, judging: dict[str, Any]) -> str:
    """Ask the person at the terminal whether the judge should read the history.

    Returns NONE, BACKLOG, or "" to send nothing. Without a terminal, nothing is sent.
    """
    budget = judging.get("budget_usd")
    limit = f" The site spends ${budget:,.2f} a day at most." if isinstance(budget, (int, float)) else ""
    print_line(f"Should the judge read the {count:,} earlier sessions{price_note(count, judging)}?{limit}")
    print_line(f"  {NONE}: only when a person asks, on the site;  {BACKLOG}: after all new sessions;  q: send nothing")
    try:
        with open("/dev/tty") as terminal:
            while True:
                print(f"gradingsite: {NONE}, {BACKLOG} or q? [{NONE}] ", end="", flush=True)
                line = terminal.readline()
                answer = line.strip().lower() or NONE
                if not line or answer == "q":
                    return ""
                if answer in (NONE, BACKLOG):
                    return answer
    except OSError:
        print_line(f"no terminal to ask on: --yes sends them without asking, with --judge {NONE} or --judge {BACKLOG}")
        return ""


def send_history(to_send: list[Log], old: set[Log], chosen: str, agent: str, memory: Path) -> None:
    """Send each log, the oldest first, and record it. Stops early if the site is down for long or refuses everything.

    `chosen` is how the logs in `old` are judged.
    """
    for log in to_send:
        log.result = UNSENT
    began = shown_at = time.monotonic()
    for number, log in enumerate(to_send, 1):
        if not send_one(log, chosen if log in old else ""):
            return
        if log.result != RUNNING:
            remember(memory, agent, log)
        now = time.monotonic()
        if sys.stdout.isatty() or now - shown_at > PROGRESS_SECONDS or number == len(to_send):
            seconds_left = (now - began) / number * (len(to_send) - number)
            progress(f"{number:,} of {len(to_send):,} sent, about {seconds_left / 60:,.0f} min to go")
            shown_at = now
    clear_line()


def send_one(log: Log, judge: str) -> bool:
    """Send a log and set its result. Waits while the site is down or accepts no more. `judge` is NONE, BACKLOG or "".

    Returns False if there is no use in sending other logs.
    """
    metadata = {
        "session_id": log.session_id[:200],
        "harness": log.harness,
        "started_at": log.start.isoformat() if log.start else None,
        "ended_at": log.end.isoformat(),
        "category": variable("GRADINGSITE_CATEGORY", 100),
        "judge": judge or None,
    }
    session = {
        "metadata": {name: value for name, value in metadata.items() if value},
        "files": {"transcript": log.path},
        "cwd": log.folder,
    }
    add_past_commits(session)
    pauses = iter(PAUSES)
    while True:
        if has_changed(log):
            return True
        try:
            status, answer, headers = post(session)
        except (OSError, http.client.HTTPException) as error:
            status, headers = 0, {}
            problem = f"{site()} is unreachable ({type(error).__name__}: {error})"
        except (SetupError, BadEntry, ValueError) as error:
            log.result, log.why = REFUSED, str(error)[:300]
            return True
        else:
            problem = f"the site failed with {status}: {error_reason(answer)}"
        if status in (OK, CREATED):
            set_accepted(log, json_object(answer) or {})
            return True
        if status == TOO_MANY:
            wait = retry_after(headers.get("Retry-After"))
            clear_line()
            print_line(
                f"the site accepts no more for now: {error_reason(answer)}; continuing in {wait / 60:,.0f} min, Ctrl-C "
                "ends it"
            )
        elif status in FATAL_STATUSES:
            clear_line()
            print_line(f"the site answered {status}: {error_reason(answer)}; run it again when that is fixed")
            return False
        elif status == 0 or status >= SERVER_ERROR or status in TRY_AGAIN:
            clear_line()
            print_line(problem)
            pause = next(pauses, None)
            if pause is None:
                print_line("stopped; run it again to continue")
                return False
            wait = max(pause, retry_after(headers.get("Retry-After"), 0))
        else:
            log.result, log.why = REFUSED, f"{status}: {error_reason(answer)}"
            return True
        time.sleep(min(wait, 86_400))


def has_changed(log: Log) -> bool:
    """Whether the file has changed since it was inspected, or is gone. If so, sets its result."""
    try:
        about = os.stat(log.path, follow_symlinks=False)
    except OSError:
        log.result, log.why = REFUSED, "it no longer exists"
        return True
    if (about.st_size, about.st_mtime_ns) == (log.size, log.changed):
        return False
    log.result = RUNNING
    return True


def set_accepted(log: Log, reply: dict[str, Any]) -> None:
    """Set the result of a log that the site accepted with this reply."""
    if reply.get("created"):
        log.result = NEW
    else:
        log.result = ADDED if reply.get("added") else KNOWN
    log.why = "; ".join(warnings_in(reply))


def retry_after(text: str | None, default: float = 60) -> float:
    """The seconds to wait by a Retry-After header, at least 1; `default` without a valid one."""
    return max(1.0, float(text)) if text and re.fullmatch(r"\d{1,6}", text.strip()) else default


def error_reason(answer: str) -> str:
    """The reason in an error answer, on one line."""
    reply = json_object(answer) or {}
    parts = [str(reply.get(name)) for name in ("error", "got", "todo") if reply.get(name)]
    return printable("; ".join(parts) or answer[:200])


def warnings_in(reply: dict[str, Any]) -> Iterator[str]:
    """The problems that the site found in a session that it accepted, except for those of the log's content."""
    for problem in reply.get("problems") or []:
        if isinstance(problem, dict) and problem.get("part") != "transcript":
            yield printable(f"{problem.get('code')}: expected {problem.get('expected')}")


def print_summary(logs: list[Log], arguments: list[str]) -> int:
    """Print the table of results; with --list a row for each file."""
    if not logs:
        folders = ", ".join(printable(log_folders(harness)) for harness in LOG_FOLDERS)
        print_line(f"no log found in {folders}")
        return 0
    for result in RESULTS:
        matching = [log for log in logs if log.result == result]
        if matching:
            print(f"{len(matching):8,}  {result}")
        reasons = collections.Counter(log.why for log in matching)
        for why, count in reasons.most_common(5):
            if why:
                print(f"          {count:,}: {printable(why)}")
    print(f"{len(logs):8,}  files in all")
    if "--list" in arguments:
        for log in sorted(logs, key=lambda each: each.path):
            why = f": {printable(log.why)}" if log.why else ""
            print(f"{log.result:<36}  {printable(log.path)}{why}")
    return 1 if any(log.result in (REFUSED, UNSENT) for log in logs) else 0


def printable(text: str) -> str:
    """Text from a file, safe to print on a terminal."""
    clean = re.sub(
        r"[^\S ]|[^\x20-\U0010ffff]|[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff]", "?", text
    )
    return clean[:500]


def progress(line: str) -> None:
    """Print the progress: on a terminal over the line before, otherwise as a line of its own."""
    if sys.stdout.isatty():
        print(f"\rgradingsite: {line}   ", end="", flush=True)
    else:
        print(f"gradingsite: {line}", flush=True)


def clear_line() -> None:
    """End the line of progress on a terminal, so that the next text gets a line of its own."""
    if sys.stdout.isatty():
        print()


# --- checking


def check() -> int:
    """Print a line for each check. Returns 1 if one fails."""
    hooks = [finding for harness in HOOK_SETTINGS if (finding := check_hook(harness))]
    if not hooks:
        hooks = [(False, f"hook: not installed; --install adds it, for {', '.join(HOOK_SETTINGS)}")]
    findings = [*check_site(), *hooks, check_receipt()]
    for is_good, line in findings:
        print_line(f"{'ok ' if is_good else 'BAD'} {line}")
    return 0 if all(is_good for is_good, _ in findings) else 1


def check_site() -> Iterator[tuple[bool, str]]:
    try:
        status, answer = get("/api/v1/token")
    except SetupError as problem:
        yield False, f"token: {problem}"
        return
    except (OSError, http.client.HTTPException, ValueError) as error:
        yield False, f"site: {site()} does not answer ({type(error).__name__}: {error})"
        return
    reply = json_object(answer) or {}
    if status == UNAUTHORIZED:
        yield True, f"site: {site()} answers"
        yield False, "token: the site does not know it; make a new one on its page Connect"
    elif status != OK or "agent" not in reply:
        yield False, f"site: {site()} answered {status}, and is not a gradingsite; correct GRADINGSITE_URL"
    else:
        yield True, f"site: {site()} answers"
        yield reply.get("may_submit") is True, f"token: of agent {reply['agent']}, scope: {reply.get('held_by')}"
        own_hash = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
        is_new = reply.get("hook_sha256") in (own_hash, None)
        yield True, f"program: {'as the site serves it' if is_new else 'the site serves another version'}"


def check_hook(harness: str) -> tuple[bool, str] | None:
    """Whether the harness's hook works, and a line about it; None if its settings do not call this program."""
    path = settings_path(harness)
    if has_plugin(harness):
        return True, f"hook: {harness}, as the plugin {PLUGIN}"
    try:
        line = hook_line(path, path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, SetupError) as problem:
        return False, f"hook: {problem}"
    if line is None:
        return None
    for needed in shlex.split(line)[:2]:
        if not shutil.which(os.path.expanduser(needed)) and not os.path.exists(os.path.expanduser(needed)):
            return False, f"hook: {path} calls {needed}, which does not exist"
    return True, f"hook: {harness}, in {path}"


def hook_line(path: Path, text: str) -> str | None:
    """The command in these settings that calls this program."""
    if path.suffix == ".toml":
        quoted = re.findall(r'^command = (".*")$', text, re.MULTILINE)
        lines = [(json_object(f'{{"command": {string}}}') or {}).get("command") for string in quoted]
    else:
        groups_by_event = parse_settings(path, text).get("hooks", {})
        groups = [group for event_groups in groups_by_event.values() for group in event_groups]
        lines = [hook.get("command") for group in groups for hook in group["hooks"] if isinstance(hook, dict)]
    return next((str(line) for line in lines if calls_this_program(line)), None)


def check_receipt() -> tuple[bool, str]:
    folder = spool_folder()
    sent, unsent = sent_entries(folder), len(queued_entries(folder))
    refused = sorted(folder.glob("refused/*/answer.txt"), key=lambda file: file.stat().st_mtime)
    at = sent[-1][0] if sent else 0.0
    last = f"the last {datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M} UTC" if sent else "none so far"
    if unsent:
        return False, f"receipts: {last}; {unsent} unsent in {folder}: --flush sends them and prints any problem"
    if refused and refused[-1].stat().st_mtime > at:
        return False, f"receipts: {last}; the site refused the latest session: {refused[-1].read_text()[:300]}"
    return True, f"receipts: {last}; everything is sent"


def get(path: str) -> tuple[int, str]:
    """Send a GET to the site. Returns the status and the beginning of the answer."""
    address, make = parse_address()
    with contextlib.closing(make(address.netloc, timeout=CHECK_SECONDS)) as connection:
        headers = {"Authorization": f"Bearer {token()}"}
        connection.request("GET", f"{address.path.rstrip('/')}{path}", headers=headers)
        response = connection.getresponse()
        return response.status, response.read(20_000).decode(errors="replace")


# --- output


def print_line(line: str) -> None:
    print(f"gradingsite: {line}")


def describe(session: Session) -> str:
    """A session's files and commits, in a few words."""
    path = session["files"].get("transcript")
    size = os.path.getsize(path) if path and os.path.isfile(path) else None
    commits_made = session.get("facts", {}).get("commits", [])
    parts = [f"session {session['metadata']['session_id'][-8:]}"]
    parts.append("without a transcript" if size is None else f"transcript of {size / 1000:,.0f} kB")
    if commits_made:
        noun = "commit" if len(commits_made) == 1 else "commits"
        parts.append(f"{len(commits_made)} {noun} by {commits_made[0]['by']}")
    if "unobserved" in session:  # git was too slow; see `observe`
        parts.append("commits are read in the background")
    return ", ".join(parts)


def sending_status(entry: Path) -> str:
    try:
        token()
    except SetupError as problem:
        return f"kept in {entry.parent}: {problem}"
    more = len(queued_entries(entry.parent)) - 1
    return f"being sent to {site()}" + (f" with {more} unsent before" if more > 0 else "")


def write_log(line: str) -> None:
    """Append to the background sender's log file, which is kept short."""
    path = spool_folder() / "sender.log"
    with contextlib.suppress(OSError):
        if path.exists() and path.stat().st_size > MOST_LOGGED:
            path.unlink()
        with open(path, "a") as file:
            file.write(f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S} {line}\n")


# --- outcomes


def report_outcome(arguments: list[str]) -> int:
    """Send one outcome of a session. Returns the exit status."""
    try:
        path, outcome = parse_outcome(arguments)
        status, answer = post_json(path, outcome)
    except SetupError as problem:
        print_line(str(problem))
        return 1
    except (OSError, http.client.HTTPException, ValueError) as error:
        print_line(f"{site()} does not answer ({type(error).__name__}: {error}); nothing was reported")
        return 1
    reply = json_object(answer) or {}
    if status not in (OK, CREATED):
        reason = "; ".join(str(reply[name]) for name in ("expected", "got", "todo") if reply.get(name)) or answer[:300]
        print_line(f"not accepted, {status}: {reason}")
        return 1
    print_line(f"{outcome['kind']} {outcome['value']} {'reported' if status == CREATED else 'was known already'}")
    return 0


def parse_outcome(arguments: list[str]) -> tuple[str, dict[str, Any]]:
    """The path and the body of the request. Raises SetupError."""
    options = dict(zip(arguments[::2], arguments[1::2]))  # noqa: B905 - new in Python 3.10
    unknown = options.keys() - {"--outcome", "--session", "--url", "--detail"}
    kind, separator, value = options.get("--outcome", "").partition("=")
    session = options.get("--session", "")
    if unknown or len(arguments) % 2 or not (kind and separator and value and session):
        raise SetupError("expected --outcome KIND=VALUE --session ID, optionally with --url URL and --detail TEXT")
    outcome: dict[str, Any] = {"kind": kind, "value": value}
    with contextlib.suppress(ValueError):
        outcome["value"] = float(value)
    outcome.update({name: options[f"--{name}"] for name in ("url", "detail") if f"--{name}" in options})
    return f"/api/v1/sessions/{urllib.parse.quote(session, safe='')}/outcomes", outcome


def post_json(path: str, body: dict[str, Any]) -> tuple[int, str]:
    """Send JSON to the site. Returns the status and the beginning of the answer."""
    address, make = parse_address()
    headers = {"Authorization": f"Bearer {token()}", "Content-Type": "application/json"}
    with contextlib.closing(make(address.netloc, timeout=SEND_SECONDS)) as connection:
        connection.request("POST", f"{address.path.rstrip('/')}{path}", json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read(20_000).decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
