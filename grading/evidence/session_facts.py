"""A session's facts: what its log, the hook and the caller state about what it ran with, and its vitals.

In: signals that were just extracted, and what was submitted. Out: one row of `SessionFacts`, and the session's project
if nobody submitted one. Nothing here is graded.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from typing import Any, Final

from grading import formats
from grading.models import Evidence, InstructionKey, Project, Session, SessionFacts, SessionLog
from grading.models.facts import MAX_INSTRUCTION_FILES, MAX_NAMES, FactSource
from grading.plain import plain_text
from grading.redaction import redact, redact_line
from grading.signals import Signals, vitals
from grading.signals.remotes import project_key
from grading.signals.vitals import Vitals

SETTINGS: Final = {"harness_version": 60, "reasoning_effort": 40, "permission_mode": 40}  # with their maximal lengths
LISTS: Final = ("mcp_servers", "skills", "subagents")
VITALS: Final = (
    *("minutes", "active_minutes", "user_turns", "interruptions", "refusals", "tool_calls", "known_calls"),
    *("failed_calls", "failed_share", "reads_before_edit", "unread_edits", "test_runs", "suites", "retries"),
    *("compactions", "claimed_without_green"),
)
MAX_NAME, MAX_FILE_NAME, MAX_TEXT, MAX_COUNT = 120, 200, 20_000, 2**31 - 1
# The version of the facts of a log whose bytes are gone.
EXPIRED: Final = "expired"
WORKTREE: Final = re.compile(r"/\.(?:claude/)?worktrees/.*$")
TEMPORARY: Final = re.compile(r"(?:[A-Za-z]:)?/(?:private/)?(?:tmp|var/tmp|var/folders)/|.*/AppData/Local/Temp/")
HOME: Final = re.compile(r"^(?:[A-Za-z]:)?/(?:(?:home|Users)/[^/]{1,100}|root)/")


def version_of(transcript: Evidence, log: SessionLog | None) -> str:
    """All that the facts of a log depend on: the versions of the code, the file, and which of its records count."""
    version = f"{vitals.VERSION} p{formats.PARSER_VERSION} {transcript.sha256[:16]}"
    return f"{version} {log.digest[:8]}" if log is not None and log.digest else version


def store_log(session: Session, signals: Signals | None, version: str, *, is_own: bool = True) -> None:
    """Store the facts that the session's log shows; and the session's project, if it has none.

    `signals` were just extracted, so that they have vitals; None if there is no usable log (any more). `is_own`:
    something in the log is the session's own work.
    """
    row: SessionFacts | None = getattr(session, "facts", None)
    if signals is None or signals.vitals is None:
        if row is not None:
            _save(row, {"version": "", **_ran_with(session, {}, row.stated), **dict.fromkeys(VITALS)})
        return
    log_vitals = signals.vitals
    row = row or SessionFacts(session=session)
    columns = _vitals(signals, log_vitals) if is_own else dict.fromkeys(VITALS)
    _save(row, {"version": version, **_ran_with(session, _shown_by_log(log_vitals), row.stated), **columns})
    key = project_key(log_vitals.repository or repository_folder(log_vitals.folder))
    if key and session.project_id is None:
        session.project = Project.objects.for_key(key)
        session.save(update_fields=["project"])


def store_expired(session: Session, signals: Signals | None, header: Mapping[str, Any]) -> None:
    """Store what is left of a log whose bytes are gone: its stored `signals` and the `header` in its row's report."""
    row: SessionFacts = getattr(session, "facts", None) or SessionFacts(session=session)
    log = {"harness_version": header.get("harness_version"), "model_calls": {header.get("model"): None}}
    columns = dict.fromkeys(VITALS) if signals is None else _vitals(signals, None)
    _save(row, {"version": EXPIRED, **_ran_with(session, _clean(log), row.stated), **columns})


def store_statement(session: Session, source: FactSource, statement: Mapping[str, Any]) -> bool:
    """Store what the hook or the caller states about what the session ran with. Returns whether a fact changed.

    A later statement of the same source replaces the values that it names. `statement` has columns of `SessionFacts`;
    each of its `instruction_files` has `name`, `bytes` and `sha256`, which isn't stored, and perhaps `text`.
    """
    row: SessionFacts = getattr(session, "facts", None) or SessionFacts(session=session)
    log = {name: getattr(row, name) for name, given_by in row.sources.items() if given_by == FactSource.LOG}
    files = [file for file in row.instruction_files or [] if file["source"] == FactSource.LOG]
    stated = {**row.stated, source.value: {**row.stated.get(source.value, {}), **_clean(statement)}}
    return _save(row, {"stated": stated, **_ran_with(session, {**log, "instruction_files": files}, stated)})


def _save(row: SessionFacts, values: Mapping[str, Any]) -> bool:
    """Save the row with these values of its columns, unless it has them already. Returns whether it was saved."""
    is_new = row._state.adding  # noqa: SLF001 - Django's documented API
    if not is_new and all(getattr(row, name) == value for name, value in values.items()):
        return False
    for name, value in values.items():
        setattr(row, name, value)
    row.save(force_insert=is_new)
    row.session.facts = row
    return True


def _ran_with(session: Session, log: Mapping[str, Any], stated: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The columns for what a session ran with, and their sources: each value is the log's, else the hook's, else the
    caller's. `log` and `stated`, by source, are clean. A model that no log names is the submitted one.
    """
    by_source = {source.value: stated.get(source.value, {}) for source in FactSource} | {FactSource.LOG.value: log}
    columns: dict[str, Any] = {
        **dict.fromkeys(SETTINGS, ""),
        "model_calls": {},
        **dict.fromkeys(LISTS),
        "instruction_files": None,
    }
    sources: dict[str, str] = {}
    for name in columns:
        for source, values in by_source.items():
            if values.get(name) not in (None, "", {}) and name != "instruction_files":
                columns[name], sources[name] = values[name], source
                break
    if not columns["model_calls"] and session.model:
        columns["model_calls"] = {_clean_line(session.model, MAX_NAME): None}
        sources["model_calls"] = FactSource.CALLER.value
    # A log may show only files that were loaded late, and the hook all others. Each name is of the first source.
    files: list[dict[str, Any]] = []
    for source, values in by_source.items():
        names = {file["name"] for file in files}
        files += [
            {**file, "source": source} for file in values.get("instruction_files") or [] if file["name"] not in names
        ]
    if files:
        columns["instruction_files"] = files[:MAX_INSTRUCTION_FILES]
        sources["instruction_files"] = files[0]["source"]
    return {**columns, "sources": sources}


def _shown_by_log(log_vitals: Vitals) -> dict[str, Any]:
    """What a log shows of what its session ran with, clean."""
    files = [
        {"name": instruction_name(file.name, log_vitals.folder), "bytes": file.size, "sha256": file.sha256}
        for file in log_vitals.instruction_files
    ]
    names = (*SETTINGS, "model_calls", *LISTS)
    return _clean({**{name: getattr(log_vitals, name) for name in names}, "instruction_files": files})


def _clean(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of columns that a session ran with as they are stored: without secrets and bounded; of instruction
    files the keyed hash. Left out are unknown ones.
    """
    clean: dict[str, Any] = {}
    for name, limit in SETTINGS.items():
        if text := _clean_line(values.get(name), limit):
            clean[name] = text
    calls = {_clean_line(model, MAX_NAME): count for model, count in (values.get("model_calls") or {}).items()}
    if models := {model: count for model, count in calls.items() if model}:
        clean["model_calls"] = dict(list(models.items())[:MAX_NAMES])
    for name in LISTS:
        if values.get(name) is not None:
            names = [_clean_line(each, MAX_NAME) for each in list(values[name])[:MAX_NAMES]]
            clean[name] = [*dict.fromkeys(filter(None, names))]
    files = values.get("instruction_files")
    if files is not None:
        clean["instruction_files"] = []
        # The site's key for the hashes of instruction files is made at their first use.
        new_key = {"secret": secrets.token_bytes(32)}
        key = bytes(InstructionKey.objects.get_or_create(pk=1, defaults=new_key)[0].secret) if files else b""
        for file in list(files)[:MAX_INSTRUCTION_FILES]:
            keyed = hmac.new(key, bytes.fromhex(file["sha256"]), hashlib.sha256).hexdigest()
            name, size = _clean_line(file["name"], MAX_FILE_NAME), min(file["bytes"], MAX_COUNT)
            sent = {"text": plain_text(redact(file["text"]), MAX_TEXT)} if file.get("text") else {}
            clean["instruction_files"].append({"name": name, "bytes": size, "hmac": keyed, **sent})
    return clean


def _clean_line(value: object, limit: int) -> str:
    return plain_text(redact_line(value), limit).strip() if isinstance(value, str) else ""


def instruction_name(path: str, folder: str) -> str:
    """The name of an instruction file relative to the session's repository, or to the home folder.

    >>> instruction_name("/w/x/docs/A.md", "/w/x/.claude/worktrees/fox"), instruction_name("/root/.x/A.md", "")
    ('docs/A.md', '~/.x/A.md')
    """
    name, root = path.replace("\\", "/"), WORKTREE.sub("", folder.replace("\\", "/").rstrip("/"))
    return name.removeprefix(f"{root}/") if root and name.startswith(f"{root}/") else HOME.sub("~/", name)


def repository_folder(folder: str) -> str:
    """The folder of the repository that a session in this folder worked in; "" for a home or a temporary folder.

    >>> repository_folder("/home/ada/engine/.claude/worktrees/quiet-fox"), repository_folder("/tmp/x")
    ('/home/ada/engine', '')
    """
    path = WORKTREE.sub("", folder.replace("\\", "/").rstrip("/"))
    return "" if HOME.fullmatch(f"{path}/") or TEMPORARY.match(f"{path}/") else path


def _vitals(signals: Signals, log_vitals: Vitals | None) -> dict[str, Any]:
    """The columns of the vitals. Those that only `log_vitals` has are None without it."""
    columns: dict[str, Any] = dict.fromkeys(VITALS)
    columns["minutes"] = None if signals.duration is None else round(signals.duration / 60, 3)
    if not signals.has_model_turn and not signals.user_turns:
        return columns  # nothing in the log was understood, or there is nothing in it
    columns |= {
        # Every session has one, so a log without any does not record them.
        "user_turns": signals.user_turns or None,
        "compactions": signals.compactions,
        "tool_calls": signals.calls,
    }
    if log_vitals is not None:
        active = log_vitals.active_seconds
        columns |= {
            "active_minutes": None if active is None else round(active / 60, 3),
            "interruptions": log_vitals.interruptions,
            "retries": log_vitals.retries,
        }
    if signals.is_blind:
        return columns
    columns |= {
        "refusals": signals.rejected,
        "known_calls": signals.known_results,
        "failed_calls": signals.failed_calls,
    }
    if signals.are_results_known:
        columns["failed_share"] = round(signals.error_rate, 6)
    if log_vitals is not None:
        columns |= {
            "reads_before_edit": log_vitals.reads_before_edit,
            "unread_edits": log_vitals.unread_edits,
            "test_runs": log_vitals.test_runs,
            "suites": [
                {"suite": _clean_line(name, MAX_NAME), "state": state.value} for name, state in log_vitals.suites
            ],
            "claimed_without_green": log_vitals.claimed_without_green,
        }
    return columns
