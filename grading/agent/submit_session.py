#!/usr/bin/env python3
"""Hand a finished agent session to gradingsite. Needs Python 3.9 or newer and nothing else.

An agent's session-end hook runs this file. It writes what it knows to a spool folder, starts a sender in the background
and ends, well within two seconds; what the site cannot take now is sent with a later session, or by --flush.

    submit_session.py             a hook: its JSON on standard input (Claude Code, Codex), or gptme's environment
    submit_session.py --codex {}  Codex's older `notify`, which hands its JSON over as an argument
    submit_session.py --flush     send what waits in the spool now, and say what became of each
    submit_session.py --resend 2026-03-31T02:30:00Z
                                  send again what was sent since then, to a site that was restored from a backup; what
                                  it has already changes nothing

Environment, all optional but the token:
    GRADINGSITE_TOKEN       the agent's token; or in the file ~/.gradingsite/token
    GRADINGSITE_URL         another site than the one that served this file
    GRADINGSITE_SPOOL       where sessions wait; default ~/.gradingsite/spool
    GRADINGSITE_KEEP_DAYS   how long what was sent is kept there for --resend; default 7, at most 1 GiB of it; 0: not
    GRADINGSITE_CATEGORY    what kind of work it was;  GRADINGSITE_SELECTION  the decision_id that chose it
    GRADINGSITE_LESSONS     the lessons it was given, by commas, with salience where known: ask-first=0.4,read-twice
    GRADINGSITE_LESSONS_DRAWN                 the decision_id with which its lessons were drawn
    GRADINGSITE_TITLE, GRADINGSITE_MODEL, GRADINGSITE_EXIT_CODE
    GRADINGSITE_STARTED_AT                    when it began, for a session without a log
    GRADINGSITE_JOURNAL, GRADINGSITE_PATCH    paths of files to send along
    GRADINGSITE_PULL_REQUEST                  addresses of pull requests that the caller knows of, by commas
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.parse
import uuid
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import IO, Any, Callable, Iterator

try:
    import fcntl
except ImportError:  # Windows: without a lock a session may be sent twice, which changes nothing on the site
    fcntl = None  # type: ignore[assignment]

SITE = "http://127.0.0.1:8000"  # the site that served this file
HOME = Path.home() / ".gradingsite"
STDIN_SECONDS, STDIN_BYTES = 0.6, 1 << 20
GIT_SECONDS, GIT_SECONDS_LATER, MOST_COMMITS = 0.9, 30, 500
SEND_SECONDS = 60
MOST_BYTES = 256 << 20  # of one file
MOST_COPIED = 1 << 30  # of all transcripts that are kept for a site that is away; and of all that were sent
KEEP_DAYS, MOST_SENT = 7, 5000
RESEND_SLACK = 600  # seconds by which this clock and the site's may differ
MOST_REFUSED, MOST_LOGGED = 200, 200_000
SERVER_ERROR = 500
# Tells the site that it may have had this before: what was erased there since is not taken again.
RESENT = "X-Gradingsite-Resent"
# It may be the site, or this one session: others are tried before it is believed of the site.
IN_TROUBLE, MOST_FAILURES = "kept for later, since the site failed with", 3
# What a spooled session that is none comes to, wherever it is looked into.
NOT_OURS = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
# Answers after which sending the same again may work: the token, the address or the site must change, not the session.
TRY_AGAIN = {301, 302, 303, 307, 308, 401, 403, 404, 405, 408, 425, 429}


# What is known of a session, as JSON: metadata, facts, files (part to path), cwd.
Session = dict[str, Any]


def main(arguments: list[str]) -> int:
    if "-h" in arguments or "--help" in arguments:
        print(__doc__)
    elif "--send" in arguments:
        send_all(say=log)
    elif "--flush" in arguments:
        return send_all(say=tell)
    elif "--resend" in arguments:
        return resend(arguments[arguments.index("--resend") + 1 :], say=tell)
    else:
        hook(arguments)
    return 0


def hook(arguments: list[str]) -> None:
    """Spool the session that just ended and start the sender. Never raises: an agent must not fail because of us."""
    try:
        session = find_session(arguments)
        entry = spool(session)
        start_sender()
        print(f"gradingsite: {describe(session)}; {sending(entry)}")
    except SetupError as problem:
        print(f"gradingsite: {problem}")
    except Exception as error:  # noqa: BLE001 - the one line that the agent's log gets
        print(f"gradingsite: nothing was kept of this session: {type(error).__name__}: {error}")


class SetupError(Exception):
    """Something that the person who set up the hook can mend; the message says how."""


class BadEntry(Exception):
    """Something in the spool that can never be sent."""


# --- what ended


def find_session(arguments: list[str]) -> Session:
    """The session that a hook is about: metadata, facts, files to send, and the folder it worked in."""
    given = next((json_object(text) for text in arguments if text.startswith("{")), None)
    if given is None and os.environ.get("GPTME_LOGDIR"):
        return gptme_session(Path(os.environ["GPTME_LOGDIR"]))
    payload = given if given is not None else read_stdin()
    session_id = text_of(payload, "session_id", "thread-id", "thread_id") or os.environ.get("CLAUDE_CODE_SESSION_ID")
    if not session_id:
        raise SetupError("nothing to submit: expected a hook's JSON with a session_id on standard input")
    is_codex = "--codex" in arguments or "turn_id" in payload or "thread-id" in payload
    path = text_of(payload, "transcript_path")
    transcript = Path(path).expanduser() if path else codex_log(session_id) if is_codex else None
    harness = "codex" if is_codex else "claude-code"
    return session_of(session_id, harness, transcript, text_of(payload, "cwd") or os.getcwd())


def gptme_session(folder: Path) -> Session:
    session = session_of(folder.name, "gptme", folder / "conversation.jsonl", os.environ.get("GPTME_WORKSPACE"))
    session["metadata"].setdefault("model", os.environ.get("GPTME_MODEL", "")[:120])
    return session


def session_of(session_id: str, harness: str, transcript: Path | None, cwd: str | None) -> Session:
    """Everything known of a session; `facts` are what this program saw itself, never what the transcript claims."""
    start, end = (
        first_moment(transcript) or moment(os.environ.get("GRADINGSITE_STARTED_AT")),
        datetime.now(timezone.utc),
    )
    if start and start > end:
        start = None
    metadata = {
        "session_id": session_id,
        "harness": harness,
        "started_at": start and start.isoformat(),
        "ended_at": end.isoformat(),
        "category": os.environ.get("GRADINGSITE_CATEGORY"),
        "selection_id": os.environ.get("GRADINGSITE_SELECTION"),
        "title": os.environ.get("GRADINGSITE_TITLE", "")[:300],
        "model": os.environ.get("GRADINGSITE_MODEL"),
        "exit_code": whole_number(os.environ.get("GRADINGSITE_EXIT_CODE")),
        "lessons": lessons(os.environ.get("GRADINGSITE_LESSONS")),
        "lessons_decision_id": os.environ.get("GRADINGSITE_LESSONS_DRAWN"),
    }
    files = {
        "transcript": transcript,
        "journal": os.environ.get("GRADINGSITE_JOURNAL"),
        "patch": os.environ.get("GRADINGSITE_PATCH"),
    }
    session = {
        "metadata": {name: value for name, value in metadata.items() if value not in (None, "", [])},
        "files": {part: os.path.abspath(path) for part, path in files.items() if path},
        "cwd": cwd,
    }
    return observe(session, GIT_SECONDS)


def read_stdin() -> dict[str, Any]:
    """The JSON object on standard input, read for a moment at most: a hook must not wait for what never comes."""
    if sys.stdin is None or sys.stdin.isatty():
        return {}
    chunks: list[bytes] = []
    found = threading.Event()

    def read() -> None:
        with contextlib.suppress(OSError):
            while sum(map(len, chunks)) < STDIN_BYTES:
                chunk = os.read(0, 65536)
                chunks.append(chunk)
                if not chunk or json_object(b"".join(chunks)):
                    break
        found.set()

    threading.Thread(target=read, daemon=True).start()
    found.wait(STDIN_SECONDS)
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


def whole_number(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None


def codex_log(session_id: str) -> Path | None:
    """The log that names this session; never the newest one (that would be somebody else's one day)."""
    home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
    if not re.fullmatch(r"[\w-]+", session_id):
        return None
    return next(iter((home / "sessions").glob(f"*/*/*/rollout-*{session_id}.jsonl")), None)


def first_moment(path: Path | None) -> datetime | None:
    """The first timestamp in a log, or None."""
    try:
        with open(path or "", "rb") as file:
            head = file.read(262_144).decode(errors="replace")
    except OSError:
        return None
    found = re.search(r'"timestamp"\s*:\s*"([^"]{10,40})"', head)
    return moment(found.group(1)) if found else None


def moment(text: str | None) -> datetime | None:
    """An ISO 8601 time in UTC, a naive one taken as local; None for anything else."""
    try:
        return datetime.fromisoformat((text or "").replace("Z", "+00:00")).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None


# --- what this program sees itself


def observe(session: Session, seconds: float) -> Session:
    """Add the facts: commits by this session's trailer, else those made in its own worktree between start and end."""
    facts: dict[str, Any] = {"pull_requests": listed(os.environ.get("GRADINGSITE_PULL_REQUEST"))}
    try:
        facts["commits"] = commits(session, time.monotonic() + seconds)
        session.pop("unobserved", None)
    except subprocess.TimeoutExpired:
        session["unobserved"] = "git did not answer in time"
    except (OSError, subprocess.SubprocessError, ValueError):
        facts["commits"] = []  # no git, or no repository
    session["facts"] = {**session.get("facts", {}), **{name: value for name, value in facts.items() if value}}
    return session


def lessons(text: str | None) -> list[dict[str, Any]]:
    """Lessons as the site takes them. A salience that is no number from 0 to 1 is left out, its lesson is not."""
    pairs = [[half.strip() for half in part.partition("=")[::2]] for part in listed(text)]
    good = [(name, re.fullmatch(r"0?\.\d+|[01](\.0*)?", salience)) for name, salience in pairs if name]
    return [{"name": name[:100], **({"salience": float(found[0])} if found else {})} for name, found in good][:200]


def listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def commits(session: Session, deadline: float) -> list[dict[str, str]]:
    """Commits of this session, each with how that is known. Another session's trailer always excludes a commit."""
    cwd, metadata = session["cwd"], session["metadata"]
    if not cwd or not os.path.isdir(cwd):
        return []
    start, end = moment(metadata.get("started_at")), datetime.fromisoformat(metadata["ended_at"])
    since = (start or end - timedelta(days=1)) - timedelta(minutes=1)
    recent = [f"--since={since.isoformat()}", f"-n{MOST_COMMITS}", "--no-show-signature"]
    form = "--format=%H%x1f%cI%x1f%(trailers:key=Session-Id,valueonly,separator=%x2c)%x1f%s"
    rows = [line.split("\x1f", 3) for line in git(cwd, deadline, "log", "--all", "HEAD", *recent, form)]
    own, how = [row for row in rows if metadata["session_id"] in listed(row[2])], "trailer"
    if not own and start:
        lines = git(cwd, deadline, "log", "-g", f"-n{MOST_COMMITS}", "--format=%H%x1f%gd%x1f%gs", "--date=unix")
        here = {sha for sha, at in made_here(lines) if start.timestamp() - 1 <= at <= end.timestamp() + 1}
        own = [row for row in rows if row[0] in here and not row[2].strip()]
        how = "own worktree, between start and end"
    if not own:
        return []
    repo = without_password("".join(git(cwd, deadline, "config", "--get", "remote.origin.url", check=False)))
    return [{"sha": sha, "at": at, "subject": subject[:200], "repo": repo, "by": how} for sha, at, _, subject in own]


def made_here(lines: list[str]) -> Iterator[tuple[str, int]]:
    """(hash, seconds) of the commits made in this worktree, by its own reflog; not those pulled or rebased."""
    for line in lines:
        sha, selector, action = line.split("\x1f", 2)
        found = re.search(r"@\{(\d+)", selector)
        if found and action.startswith("commit"):
            yield sha, int(found.group(1))


def git(cwd: str, deadline: float, *arguments: str, check: bool = True) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment.update(GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0")
    done = subprocess.run(
        ["git", "-C", cwd, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=max(0.05, deadline - time.monotonic()),
        env=environment,
        check=check,
    )
    return done.stdout.decode(errors="replace").splitlines()


def without_password(url: str) -> str:
    return re.sub(r"://[^@/]*@", "://", url.strip())[:300]


# --- the spool


def spool_folder() -> Path:
    folder = Path(os.environ.get("GRADINGSITE_SPOOL") or HOME / "spool")
    if folder == HOME / "spool":
        HOME.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def spool(session: Session) -> Path:
    """Write the session down before anything else can go wrong; a folder whose name sorts by time."""
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


def waiting(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if entry.name[0].isdigit())


def keep_copies(entry: Path, session: Session) -> None:
    """Keep the files themselves, while there is room: the harness may tidy its logs, or write another session there."""
    kept = sum(file.stat().st_size for file in entry.parent.glob("[0-9]*/*"))
    for part, path in session["files"].items():
        copy = entry / part
        try:
            size = os.path.getsize(path)
            if Path(path) != copy and size <= MOST_BYTES and kept + size <= MOST_COPIED:
                shutil.copyfile(path, copy)
                session.setdefault("names", {})[part] = os.path.basename(path)
                session["files"][part] = str(copy)
                kept += size
        except OSError:  # no room: it is sent from where it is
            if Path(path) != copy and copy.exists():
                copy.unlink()
    with contextlib.suppress(OSError):
        write(entry, session)


def keep_sent(entry: Path, session: Session) -> None:
    """Keep what the site took, for a site that loses it; only as it was sent, so not where a file had no room."""
    folder = entry.parent / "sent"
    is_whole = all(Path(path).parent == entry or not os.path.exists(path) for path in session["files"].values())
    if keep_days() and is_whole:
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            parts = [part for part in session["files"] if (entry / part).exists()]
            write(entry, {**session, "tries": 0, "files": {part: str(folder / entry.name / part) for part in parts}})
            entry.rename(folder / entry.name)
            return
    shutil.rmtree(entry, ignore_errors=True)


def sent_entries(folder: Path) -> list[tuple[float, Path]]:
    """(when it was sent, entry) of what is kept, the oldest first."""
    found = []
    for file in folder.glob("sent/[0-9]*/session.json"):
        with contextlib.suppress(OSError):
            found.append((file.stat().st_mtime, file.parent))
    return sorted(found)


def tidy_sent(folder: Path) -> None:
    """Forget what was sent too long ago, and the oldest of what takes too much room."""
    room, oldest = MOST_COPIED, time.time() - keep_days() * 86_400
    for number, (at, entry) in enumerate(reversed(sent_entries(folder)), 1):
        with contextlib.suppress(OSError):
            room -= sum(file.stat().st_size for file in entry.iterdir())
        if at < oldest or room < 0 or number > MOST_SENT:
            shutil.rmtree(entry, ignore_errors=True)


def keep_days() -> float:
    text = os.environ.get("GRADINGSITE_KEEP_DAYS", "").strip()
    return float(text) if re.fullmatch(r"\d{1,4}(\.\d+)?", text) else KEEP_DAYS


def refuse(entry: Path, answer: str) -> None:
    """Take an entry out of the queue that the site does not want, with its answer beside it."""
    folder = entry.parent / "refused"
    folder.mkdir(mode=0o700, exist_ok=True)
    (entry / "answer.txt").write_text(answer)
    entry.rename(folder / entry.name)
    for old in sorted(folder.iterdir())[:-MOST_REFUSED]:
        shutil.rmtree(old, ignore_errors=True)


# --- sending


def start_sender() -> None:
    """A process of its own, which outlives the hook and holds none of its pipes."""
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
    """Send what waits until the site is away: what failed least often first, then the oldest. 0 where nothing is left.

    An entry that cannot be sent, or that the site does not take, holds up none of the others.
    """
    folder = spool_folder()
    with one_at_a_time(folder):
        entries, failures = [], 0
        for entry in waiting(folder):
            try:
                entries.append((entry, read_entry(entry)))
            except BadEntry as problem:
                say(f"{entry.name}: {problem}; set aside")
                refuse(entry, str(problem))
        for entry, session in sorted(entries, key=lambda each: (each[1]["tries"], each[0])):
            try:
                prepare(entry, session)
                went, answer = send(session)
            except BadEntry as problem:
                went, answer = False, f"cannot be sent: {problem}"
            say(f"{session['metadata']['session_id']}: {answer}")
            if went:
                keep_sent(entry, session)
            elif went is False:
                refuse(entry, answer)
            else:
                failures = failures + 1 if answer.startswith(IN_TROUBLE) else MOST_FAILURES
                session["tries"] += answer.startswith(IN_TROUBLE)
                with contextlib.suppress(OSError):
                    write(entry, session)
                if failures >= MOST_FAILURES:
                    break
        tidy_sent(folder)
    left = len(waiting(folder))
    say(f"{left} waiting in {folder}" if left else "nothing is waiting")
    return 1 if left else 0


def resend(arguments: list[str], say: Callable[[str], None]) -> int:
    """Put what was sent since a moment into the queue again, and send all that is there."""
    since = moment(arguments[0] if arguments else None)
    if since is None:
        say("expected a moment after --resend, such as 2026-03-31T02:30:00Z: when the backup was made")
        return 2
    folder, count = spool_folder(), 0
    with one_at_a_time(folder):
        for at, entry in sent_entries(folder):
            if at < since.timestamp() - RESEND_SLACK:
                continue
            back = folder / entry.name
            try:
                session = read_entry(entry)
            except BadEntry as problem:
                say(f"{entry.name}: {problem}; not sent")
                continue
            session["files"] = {part: str(back / part) for part in session["files"]}
            session["resent"] = True
            write(entry, session)
            entry.rename(back)
            count += 1
    say(f"to be sent again: {count}, since {since:%Y-%m-%d %H:%M:%S} UTC; kept for {keep_days():g} days")
    return send_all(say)


def prepare(entry: Path, session: Session) -> None:
    """Add what git says, where there was no time for that when it ended, and keep its files. Raises BadEntry."""
    try:
        if "unobserved" in session:
            observe(session, GIT_SECONDS_LATER)
        keep_copies(entry, session)
    except NOT_OURS as problem:
        raise BadEntry(f"{type(problem).__name__}: {problem}") from problem


def read_entry(entry: Path) -> Session:
    """What was written down. Raises BadEntry where that is not what this program writes."""
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
    """Send one session: (True, …) it was taken, (False, …) it was refused for good, (None, …) it may work later."""
    try:
        status, answer = post(session)
    except SetupError as problem:
        return None, str(problem)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return None, f"{site()} is away ({type(error).__name__}: {error}); kept for later"
    if status in (200, 201):
        return True, f"taken, {answer}"
    if status >= SERVER_ERROR:
        return None, f"{IN_TROUBLE} {status}: {answer}"
    if status in TRY_AGAIN:
        return None, f"kept for later, since the site said {status}: {answer}"
    return False, f"refused with {status}: {answer}"


def post(session: Session) -> tuple[int, str]:
    """The request itself, files streamed from disk. Returns the status and the beginning of the answer."""
    address = urllib.parse.urlsplit(site())
    make = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}.get(address.scheme)
    if make is None or not address.hostname:
        raise SetupError(f"cannot send to {site()!r}: expected http://… or https://…; mend GRADINGSITE_URL")
    headers = {"Authorization": f"Bearer {token()}", **({RESENT: "yes"} if session.get("resent") else {})}
    with contextlib.ExitStack() as files:
        try:
            size, kind, body = multipart(session, files)
        except NOT_OURS as problem:
            raise BadEntry(f"{type(problem).__name__}: {problem}") from problem
        connection = files.enter_context(contextlib.closing(make(address.netloc, timeout=SEND_SECONDS)))
        # A site that has made up its mind may answer, and hang up, before it has read everything.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(
                "POST",
                f"{address.path.rstrip('/')}/api/v1/sessions",
                body=body,
                headers={**headers, "Content-Type": kind, "Content-Length": str(size)},
            )
        response = connection.getresponse()
        return response.status, response.read(20_000).decode(errors="replace")


def multipart(session: Session, files: contextlib.ExitStack) -> tuple[int, str, Iterator[bytes]]:
    """(length, content type, chunks) of the body; of a file that is gone or too large, the facts say so instead."""
    boundary = uuid.uuid4().hex
    opened: dict[str, tuple[IO[bytes], int]] = {}
    missing: dict[str, str] = {}
    for part, path in session["files"].items():
        try:
            file = files.enter_context(open(path, "rb"))  # noqa: SIM115 - the stack closes it
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
    heads = {part: head(boundary, part, f"{part}.json") for part in texts}
    names = {**{part: os.path.basename(path) for part, path in session["files"].items()}, **session.get("names", {})}
    heads.update({part: head(boundary, part, names[part]) for part in opened})
    tail = f"--{boundary}--\r\n".encode()
    size = sum(len(line) + 2 for line in heads.values()) + sum(map(len, texts.values())) + len(tail)
    size += sum(length for _, length in opened.values())

    def body() -> Iterator[bytes]:
        for part, text in texts.items():
            yield heads[part] + text + b"\r\n"
        for part, (file, length) in opened.items():
            yield heads[part]
            yield from exactly(file, length)
            yield b"\r\n"
        yield tail

    return size, f"multipart/form-data; boundary={boundary}", body()


def head(boundary: str, part: str, filename: str) -> bytes:
    name = re.sub(r'["\\\r\n]', "_", filename)
    return (
        f'--{boundary}\r\nContent-Disposition: form-data; name="{part}"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode(errors="replace")


def exactly(file: IO[bytes], length: int) -> Iterator[bytes]:
    """The first `length` bytes of a file that may still grow. Raises OSError where it shrank."""
    while length:
        chunk = file.read(min(length, 1 << 20))
        if not chunk:
            raise OSError("the file became shorter while it was sent")
        length -= len(chunk)
        yield chunk


def site() -> str:
    return (os.environ.get("GRADINGSITE_URL") or SITE).rstrip("/")


def token() -> str:
    found = os.environ.get("GRADINGSITE_TOKEN", "").strip()
    if not found:
        with contextlib.suppress(OSError):
            found = (HOME / "token").read_text().strip()
    if not re.fullmatch(r"[!-~]+", found):
        raise SetupError(
            f"no token: set GRADINGSITE_TOKEN, or write it to {HOME / 'token'}; {site()} makes one for you"
        )
    return found


# --- words


def tell(line: str) -> None:
    print(f"gradingsite: {line}")


def describe(session: Session) -> str:
    """What was found, in half a line."""
    path = session["files"].get("transcript")
    size = os.path.getsize(path) if path and os.path.isfile(path) else None
    found = session.get("facts", {}).get("commits", [])
    words = [f"session {session['metadata']['session_id'][-8:]}"]
    words.append("without a transcript" if size is None else f"transcript of {size / 1000:,.0f} kB")
    if found:
        words.append(f"{len(found)} commit{'s' * (len(found) > 1)} by {found[0]['by']}")
    if "unobserved" in session:
        words.append("commits looked for in the background")
    return ", ".join(words)


def sending(entry: Path) -> str:
    try:
        token()
    except SetupError as problem:
        return f"kept in {entry.parent}: {problem}"
    more = len(waiting(entry.parent)) - 1
    return f"being sent to {site()}" + (f" with {more} that waited" if more > 0 else "")


def log(line: str) -> None:
    """The background sender's diary, kept short."""
    path = spool_folder() / "sender.log"
    with contextlib.suppress(OSError):
        if path.exists() and path.stat().st_size > MOST_LOGGED:
            path.unlink()
        with open(path, "a") as file:
            file.write(f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S} {line}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
