"""What a session did, as the rows of a table: what was seen, in which events, where, and who vouches for it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from grading.evidence import material, ownership, store, transcripts
from grading.evidence.owner_rule import PREFIX
from grading.evidence.transcripts import TranscriptLine, TranscriptPage
from grading.models import Artifact, Evidence, Session
from grading.models.evidence import ArtifactKind, EvidenceKind, Origin
from grading.plain import counted
from grading.redaction import redact
from grading.reward import sources, trajectory
from grading.reward.production import FACTS, NAMES, PATCH, TRANSCRIPT, Thing, by_kind, collect
from grading.screens import forge
from grading.screens.session import outcomes
from grading.signals import Signals
from grading.signals.patch import parse as parse_patch
from grading.witness import Witness

MAX_ITEMS = 4  # of a row
LONGEST, LONGEST_TEXT = 160, 240  # characters of a name, and of a text
MAX_RUNS = 8
SHORT_HASH = 8
PLACES = {TRANSCRIPT: "log", FACTS: "caller’s facts", PATCH: "patch"}
EVIDENCE_KINDS = {TRANSCRIPT: EvidenceKind.TRANSCRIPT, FACTS: EvidenceKind.FACTS, PATCH: EvidenceKind.PATCH}
LEFT_BEHIND = (ArtifactKind.IDEA, ArtifactKind.TASK, ArtifactKind.ENGAGEMENT, ArtifactKind.KNOWLEDGE)
KEYS_ARE_WORDS = frozenset({"tests_fixed", "ci_fixed"})
COMMITS = frozenset({"commit", "bookkeeping_commit"})
OWN_PULL_REQUESTS = ("pr_opened", "pr_merged", "pr_closed")
NONE_OF = {
    "commits": COMMITS,
    "pull requests": {"pr_opened", "pr_merged", "pr_closed", "pr_reviewed"},
    "changed files": {"file", "bookkeeping_file"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityItem:
    """One item of a row: `code` in monospace, then `text`; `url` is its page on the forge, if known; `event` is the
    number of the event that shows it.
    """

    text: str = ""
    code: str = ""
    url: str = ""
    event: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityRow:
    """One kind of activity: its first items, how many `more` there are, a note on what they mean, where they were
    seen, and the witness (a value of Witness, "" if nobody vouches for it).
    """

    kind: str
    items: tuple[ActivityItem, ...]
    more: int = 0
    note: str = ""
    places: tuple[str, ...] = ()
    witness: str = ""

    @property
    def seen_in(self) -> str:
        """Where it was seen, in words."""
        return " and ".join(self.places)

    @property
    def redacted(self) -> "ActivityRow":
        """The same row with secrets hidden, in its names of things too."""
        items = tuple(replace(each, text=redact(each.text), code=redact(each.code)) for each in self.items)
        return replace(self, items=items, note=redact(self.note))

    @property
    def events(self) -> list[int]:
        """The events that show it, each once."""
        return list(dict.fromkeys(each.event for each in self.items if each.event is not None))


@dataclass(slots=True)
class TranscriptEvents:
    """Single events of the session's transcript. Each page is read once. Without a transcript there are no events."""

    row: Evidence | None
    pages: dict[int, TranscriptPage] = field(default_factory=dict)

    def page(self, number: int) -> TranscriptPage:
        key = transcripts.page_number(number)
        if key not in self.pages:
            self.pages[key] = transcripts.page(self.row, number) if self.row else TranscriptPage()
        return self.pages[key]

    @property
    def last(self) -> int | None:
        return self.page(1).last

    def event(self, number: int | None) -> TranscriptLine | None:
        lines = self.page(number).lines if number else ()
        return next((line for line in lines if line.number == number), None)

    def first_of(self, kind: str) -> TranscriptLine | None:
        """The first event of a kind, if it is on the first page."""
        return next((line for line in self.page(1).lines if line.kind == kind), None)

    def last_error(self) -> TranscriptLine | None:
        """The last API error, if it is on the last page."""
        lines = self.page(self.last).lines if self.last else self.page(1).lines
        return next((line for line in reversed(lines) if line.kind.startswith("API error")), None)


def rows(
    session: Session, signals: Signals | None, artifacts: Sequence[Artifact], log: TranscriptEvents
) -> list[ActivityRow]:
    """The activity of a session, one row per kind, with secrets hidden. The last row names what was not seen at all."""
    patch_evidence = store.usable(session, EvidenceKind.PATCH)
    try:
        patch = None if patch_evidence is None else parse_patch(store.text_of(patch_evidence))
    except (OSError, ValueError):
        patch = None
    foreign = ownership.foreign(session)
    # The same evidence that the sum of evidence counts.
    production = collect(
        signals,
        facts=material.load_material(session).facts,
        patch=patch,
        foreign=foreign,
        root=str(log.row.report.get("cwd", "")) if log.row else "",
        artifacts=sources.artifact_rules().globs,
    )
    things = by_kind(production.things)
    activity: list[ActivityRow] = []
    # The page's title may be the whole task.
    if signals is not None and signals.task and signals.task.strip() != session.title.strip():
        task_event = log.first_of("Task")
        item = ActivityItem(text=signals.task[:LONGEST_TEXT], event=task_event.number if task_event else None)
        activity.append(ActivityRow(kind="Task", items=(item,), places=("log",)))
    if signals is not None and signals.is_blind:
        item = ActivityItem(text=trajectory.blindness(signals))
        note = "Too little of the log can be read for a grade"
        activity.append(ActivityRow(kind="Log", items=(item,), note=note, places=("log",)))
    base = forge.repository(each.key for kind in OWN_PULL_REQUESTS for each in things.get(kind, ()))
    verified = outcomes.verified_hashes(session.commits.all())
    activity += [_thing(kind, same, signals, base, verified) for kind, same in things.items()]
    activity += _artifacts(artifacts)
    if signals is not None:
        activity += _what_ran(signals, log)
    if session.exit_code is not None:
        item = ActivityItem(text=f"Exit status {session.exit_code}")
        activity.append(ActivityRow(kind="Run", items=(item,), places=("caller",)))
    if signals is not None and signals.final_message:
        activity.append(_last_message(signals.final_message, log))

    seen_kinds = things.keys() | {"file" for each in artifacts if each.kind in LEFT_BEHIND}
    # Commits and pull requests of another session were seen too: the page lists them as not this session's own.
    if foreign.commits:
        seen_kinds.add("commit")
    if foreign.pull_requests:
        seen_kinds.add("pr_opened")
    missing = [name for name, kinds in NONE_OF.items() if not seen_kinds & kinds]
    if signals is not None and not signals.test_runs:
        missing.append("test runs")
    if signals is not None and signals.calls == 0:
        missing.append("tool calls")
    if signals is not None and not signals.final_message:
        missing.append("a last message")
    if missing:
        item = ActivityItem(text=", ".join(missing).capitalize())
        activity.append(ActivityRow(kind="Not seen", items=(item,)))
    witnesses = _witnesses(session)
    return [replace(each.redacted, witness=each.witness or _strongest(each, witnesses)) for each in activity]


def _witnesses(session: Session) -> dict[str, Witness]:
    """Who vouches for the session's evidence, by the name of the place where it is seen."""
    usable = {PLACES[place]: store.usable(session, kind) for place, kind in EVIDENCE_KINDS.items()}
    return {place: Witness(row.witness) for place, row in usable.items() if row is not None}


def _strongest(row: ActivityRow, witnesses: Mapping[str, Witness]) -> str:
    """The strongest witness of the places where the row was seen, "" without any."""
    of_places = [witnesses[place] for place in row.places if place in witnesses]
    return max(of_places, key=lambda witness: witness.strength, default="")


def _last_message(number: int, log: TranscriptEvents) -> ActivityRow:
    """The beginning of the last message, which is this event of the log."""
    message = log.event(number)
    text = " ".join(message.stored_text[: 4 * LONGEST_TEXT].split()) if message else ""
    ellipsis = "…" if len(text) > LONGEST_TEXT else ""
    quote = f"“{text[:LONGEST_TEXT]}{ellipsis}”" if text else "In the transcript"
    return ActivityRow(kind="Last message", items=(ActivityItem(text=quote, event=number),), places=("log",))


def _thing(
    kind: str, things: Sequence[Thing], signals: Signals | None, base: str, verified: Collection[str]
) -> ActivityRow:
    """The row of one kind of thing. `base` is the repository's URL on the forge, empty if it is unknown. `verified`:
    the first digits of the commits that the site has found.
    """
    subjects = {commit.hash: commit.subject for commit in signals.commits} if signals else {}
    places = sorted({place for thing in things for place in thing.seen_in}, key=list(PLACES).index)
    items = []
    for thing in things[:MAX_ITEMS]:
        key = thing.key.removeprefix("https://")[:LONGEST]
        if thing.kind in COMMITS:
            subject, url = subjects.get(thing.key, "")[:LONGEST], forge.commit(base, thing.key)
            items.append(ActivityItem(code=key[:SHORT_HASH], text=subject, url=url, event=thing.at))
        elif thing.kind in KEYS_ARE_WORDS:
            items.append(ActivityItem(text=key, event=thing.at))
        else:
            items.append(ActivityItem(code=key, url=forge.pull_request(thing.key), event=thing.at))
    is_verified = kind in COMMITS and all(thing.key[:PREFIX] in verified for thing in things)
    singular, plural = NAMES[kind]
    return ActivityRow(
        kind=(singular if len(things) == 1 else plural).capitalize(),
        items=tuple(items),
        more=max(len(things) - MAX_ITEMS, 0),
        places=tuple(PLACES[place] for place in places),
        witness=Witness.VERIFIED if is_verified else "",
    )


def _artifacts(artifacts: Sequence[Artifact]) -> Iterator[ActivityRow]:
    """Artifacts that the consumption grade counts, one row per kind; those it leaves out, with the reason; failed
    checks.
    """
    for kind in LEFT_BEHIND:
        same = [each for each in artifacts if each.kind == kind and not each.left_out]
        if same:
            is_plural = len(same) != 1 and kind is not ArtifactKind.KNOWLEDGE
            name = kind.capitalize() + ("s" if is_plural else "")
            yield _artifact_row(name, same, [ActivityItem(code=_without_markup(each.key)[:LONGEST]) for each in same])
    left_out = [each for each in artifacts if each.left_out]
    if left_out:
        items = []
        for each in left_out:
            # A copy of another row of a table quotes that row, which looks the same.
            why = each.left_out.replace(f"a copy of {each.key[:200]} of", "the same as in", 1)
            items.append(ActivityItem(code=_without_markup(each.key)[:LONGEST], text=why))
        yield _artifact_row("Not counted", left_out, items)
    failed = [each for each in artifacts if each.kind == ArtifactKind.CHECK_FAILED]
    if failed:
        items = [
            ActivityItem(code=each.key[:LONGEST], text=f"failed {each.seen_at}"[:LONGEST])
            for each in failed[:MAX_ITEMS]
        ]
        more = max(len(failed) - MAX_ITEMS, 0)
        name = "Check" if len(failed) == 1 else "Checks"
        yield ActivityRow(kind=name, items=tuple(items), more=more, places=("caller’s facts",))


def _without_markup(key: str) -> str:
    """The cells of a Markdown table's row, separated by dots; any other key as it is."""
    return " · ".join(cell.strip() for cell in key.strip("| ").split("|")) if key.startswith("|") else key


def _artifact_row(kind: str, rows: Sequence[Artifact], items: Sequence[ActivityItem]) -> ActivityRow:
    places = {PLACES[TRANSCRIPT] if each.origin == Origin.TRANSCRIPT else each.origin for each in rows}
    more = max(len(rows) - MAX_ITEMS, 0)
    return ActivityRow(kind=kind, items=tuple(items[:MAX_ITEMS]), more=more, places=tuple(sorted(places)))


def _what_ran(signals: Signals, log: TranscriptEvents) -> Iterator[ActivityRow]:
    """Test runs, tool calls and API errors in the log."""
    runs = signals.test_runs
    if runs:
        last_by_runner = {run.runner: run for run in runs}
        ends = ", ".join(f"{run.runner} {_result(passed=run.passed)}" for run in last_by_runner.values())
        latest = runs[-MAX_RUNS:]
        order = ", ".join(_result(passed=run.passed) for run in latest)
        before = f"{counted(len(runs) - MAX_RUNS, 'earlier run')}, then " if len(runs) > MAX_RUNS else ""
        items = [
            ActivityItem(text=f"Last run: {ends}"[:LONGEST_TEXT]),
            *(ActivityItem(event=run.at) for run in latest[-MAX_ITEMS:]),
        ]
        note = f"{counted(len(runs), 'run')} in order: {before}{order}" if len(runs) > 1 else ""
        yield ActivityRow(kind="Tests", items=tuple(items), note=note, places=("log",))
    if signals.calls:
        kinds = sorted(signals.tool_calls.items(), key=lambda each: (each[0] == "other", -each[1], each[0]))
        used = ", ".join(f"{count} × {kind}" for kind, count in kinds)
        answered = "all" if signals.results >= signals.calls else f"{signals.results:,}"
        text = f"{signals.calls:,}, {answered} answered: {used}"
        notes = []
        if signals.opaque_calls:
            whose = "of a tool" if signals.opaque_calls == 1 else "of tools"
            notes.append(
                f"{counted(signals.opaque_calls, 'call')} {whose} the site does not know. Their effects are unknown, "
                "which doesn’t count as a failure"
            )
        if signals.failed_calls:
            notes.append(f"{signals.failed_calls} of the {signals.known_results} with a known result failed")
        if signals.unreadable_calls and not signals.is_blind:
            notes.append(f"{signals.unreadable_calls} could not be read")
        yield ActivityRow(
            kind="Tool calls", items=(ActivityItem(text=text[:LONGEST_TEXT]),), note=". ".join(notes), places=("log",)
        )
    if signals.api_errors or signals.cut:
        end, errors = log.last_error(), sorted(signals.api_errors.items())
        counts = ", ".join(f"{count} × {reason.replace('_', ' ')}" for reason, count in errors)
        item = ActivityItem(text=counts)
        if end and end.stored_text:
            item = ActivityItem(code=end.stored_text[:LONGEST_TEXT], event=end.number)
        goes_on = f"{counts}; the session went on" if signals.has_model_turn else ""
        yield ActivityRow(
            kind="API error",
            items=(item,),
            note="The log ends with this error" if signals.cut else goes_on,
            places=("log",),
        )


def _result(*, passed: bool) -> str:
    return "passed" if passed else "failed"
