"""What a session did, as the rows of a table: what was seen, in which events, and where."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from grading.evidence import material, ownership, store, transcripts
from grading.evidence.transcripts import TranscriptLine, TranscriptPage
from grading.models import Artifact, Evidence, Session
from grading.models.evidence import ArtifactKind, EvidenceKind, Origin
from grading.redaction import redact
from grading.reward import sources, trajectory
from grading.reward.production import FACTS, NAMES, PATCH, TRANSCRIPT, Thing, by_kind, collect
from grading.screens import forge
from grading.signals import Signals
from grading.signals.patch import parse as parse_patch

SHOWN, LONGEST, SAID = 4, 160, 240
RUNS = 8
PLACES = {TRANSCRIPT: "log", FACTS: "caller’s facts", PATCH: "patch"}
LEFT_BEHIND = (ArtifactKind.IDEA, ArtifactKind.TASK, ArtifactKind.ENGAGEMENT, ArtifactKind.KNOWLEDGE)
KEYS_ARE_WORDS = frozenset({"tests_fixed", "ci_fixed"})
OWN_PULL_REQUESTS = ("pr_opened", "pr_merged", "pr_closed")
NONE_OF = {
    "commits": {"commit", "bookkeeping_commit"},
    "pull requests": {"pr_opened", "pr_merged", "pr_closed", "pr_reviewed"},
    "changed files": {"file", "bookkeeping_file"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityItem:
    """One thing of a row: `code` in the font of code, then `text`; `url` is the page of it on the site where the code
    is kept, where it is known; and the event that shows it.
    """

    text: str = ""
    code: str = ""
    url: str = ""
    event: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityRow:
    """`kind` of thing, the first few of them, `more` that are not shown, what it means, and where it was `seen`."""

    kind: str
    said: tuple[ActivityItem, ...]
    more: int = 0
    note: str = ""
    seen: str = ""

    @property
    def redacted(self) -> "ActivityRow":
        """The same with secrets hidden, also of what is kept as it came because it names things."""
        said = tuple(replace(each, text=redact(each.text), code=redact(each.code)) for each in self.said)
        return replace(self, said=said, note=redact(self.note))

    @property
    def events(self) -> list[int]:
        """The events that show it, each once."""
        return list(dict.fromkeys(each.event for each in self.said if each.event is not None))


@dataclass(slots=True)
class TranscriptEvents:
    """The transcript that counts: single events of it, from pages that are read once. Nothing where there is none."""

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
        """The first event of a kind, where it is on the first page."""
        return next((line for line in self.page(1).lines if line.kind == kind), None)

    def last_error(self) -> TranscriptLine | None:
        """The last API error, where it is on the last page."""
        lines = self.page(self.last).lines if self.last else self.page(1).lines
        return next((line for line in reversed(lines) if line.kind.startswith("API error")), None)


def rows(
    session: Session, signals: Signals | None, artifacts: Sequence[Artifact], log: TranscriptEvents
) -> list[ActivityRow]:
    """Everything that was seen of a session, one row a kind; what there is none of is one row at the end."""
    row = store.usable(session, EvidenceKind.PATCH)
    try:
        patch = None if row is None else parse_patch(store.text_of(row))
    except (OSError, ValueError):
        patch = None
    foreign = ownership.foreign(session)
    # What counts in the sum of evidence.
    production = collect(
        signals,
        facts=material.load_material(session).facts,
        patch=patch,
        foreign=foreign,
        root=str(log.row.report.get("cwd", "")) if log.row else "",
        artifacts=sources.artifact_rules().globs,
    )
    things = by_kind(production.things)
    found: list[ActivityRow] = []
    if signals is not None and signals.task:
        asked = log.first_of("Task")
        said = ActivityItem(text=signals.task[:SAID], event=asked.number if asked else None)
        found.append(ActivityRow(kind="Task", said=(said,), seen="log"))
    if signals is not None and signals.is_blind:
        said = ActivityItem(text=trajectory.blindness(signals))
        found.append(
            ActivityRow(kind="Log", said=(said,), note="Too little of it for a grade, good or bad", seen="log")
        )
    base = forge.repository(each.key for kind in OWN_PULL_REQUESTS for each in things.get(kind, ()))
    found += [_thing(kind, same, signals, base) for kind, same in things.items()]
    found += _artifacts(artifacts)
    if signals is not None:
        found += _what_ran(signals, log)
    if session.exit_code is not None:
        found.append(
            ActivityRow(kind="Run", said=(ActivityItem(text=f"Exit status {session.exit_code}"),), seen="caller")
        )
    if signals is not None and signals.final_message:
        message = log.event(signals.final_message)
        text = " ".join(message.stored_text[: 4 * SAID].split()) if message else ""
        shown = f"“{text[:SAID]}{'…' * (len(text) > SAID)}”" if text else "In the transcript"
        said = ActivityItem(text=shown, event=signals.final_message)
        found.append(ActivityRow(kind="Last message", said=(said,), seen="log"))
    there = things.keys() | {"file" for each in artifacts if each.kind in LEFT_BEHIND}
    # What belongs to another session was seen all the same: the page lists it as not this session's own.
    there |= {"commit"} if foreign.commits else set()
    there |= {"pr_opened"} if foreign.pull_requests else set()
    missing = [words for words, any_of in NONE_OF.items() if not there & any_of]
    if signals is not None:
        missing += ["test runs"] * (not signals.test_runs) + ["tool calls"] * (signals.calls == 0)
        missing += ["a last message"] * (not signals.final_message)
    if missing:
        found.append(ActivityRow(kind="Not seen", said=(ActivityItem(text=", ".join(missing).capitalize()),)))
    return [each.redacted for each in found]


def _thing(kind: str, things: Sequence[Thing], signals: Signals | None, base: str) -> ActivityRow:
    """`base` is the start of the address of the session's commits, where it is known."""
    subjects = {commit.hash: commit.subject for commit in signals.commits} if signals else {}
    seen = sorted({place for thing in things for place in thing.seen_in}, key=list(PLACES).index)
    said = []
    for thing in things[:SHOWN]:
        key = thing.key.removeprefix("https://")[:LONGEST]
        if thing.kind in {"commit", "bookkeeping_commit"}:
            subject, url = subjects.get(thing.key, "")[:LONGEST], forge.commit(base, thing.key)
            said.append(ActivityItem(code=key[:8], text=subject, url=url, event=thing.at))
        elif thing.kind in KEYS_ARE_WORDS:
            said.append(ActivityItem(text=key, event=thing.at))
        else:
            said.append(ActivityItem(code=key, url=forge.pull_request(thing.key), event=thing.at))
    return ActivityRow(
        kind=NAMES[kind][len(things) != 1].capitalize(),
        said=tuple(said),
        more=max(len(things) - SHOWN, 0),
        seen=" and ".join(PLACES[place] for place in seen),
    )


def _artifacts(artifacts: Sequence[Artifact]) -> Iterator[ActivityRow]:
    """What the consumption grade counts, one row a kind; what it leaves out, each with the reason; failed checks."""
    for kind in LEFT_BEHIND:
        same = [each for each in artifacts if each.kind == kind and not each.left_out]
        if same:
            name = "Knowledge" if kind is ArtifactKind.KNOWLEDGE else f"{kind.capitalize()}{'s' * (len(same) != 1)}"
            yield _artifact_row(name, same, [ActivityItem(code=each.key[:LONGEST]) for each in same])
    out = [each for each in artifacts if each.left_out]
    if out:
        yield _artifact_row(
            "Not counted", out, [ActivityItem(code=each.key[:LONGEST], text=each.left_out) for each in out]
        )
    failed = [each for each in artifacts if each.kind == ArtifactKind.CHECK_FAILED]
    if failed:
        said = tuple(
            ActivityItem(code=each.key[:LONGEST], text=f"failed {each.seen_at}"[:LONGEST]) for each in failed[:SHOWN]
        )
        more = max(len(failed) - SHOWN, 0)
        yield ActivityRow(kind=f"Check{'s' * (len(failed) != 1)}", said=said, more=more, seen="caller’s facts")


def _artifact_row(kind: str, rows: Sequence[Artifact], said: Sequence[ActivityItem]) -> ActivityRow:
    places = {PLACES[TRANSCRIPT] if each.origin == Origin.TRANSCRIPT else each.origin for each in rows}
    more = max(len(rows) - SHOWN, 0)
    return ActivityRow(kind=kind, said=tuple(said[:SHOWN]), more=more, seen=" and ".join(sorted(places)))


def _what_ran(signals: Signals, log: TranscriptEvents) -> Iterator[ActivityRow]:
    """Test runs, tool calls and what the API refused, as the log shows them."""
    if runs := signals.test_runs:
        last = {run.runner: run for run in runs}
        ends = ", ".join(f"{run.runner} {_result(passed=run.passed)}" for run in last.values())
        shown = runs[-RUNS:]
        order = ", ".join(_result(passed=run.passed) for run in shown)
        before = f"{_count(len(runs) - RUNS, 'earlier run')}, then " if len(runs) > RUNS else ""
        said = [ActivityItem(text=f"Last run: {ends}"[:SAID]), *(ActivityItem(event=run.at) for run in shown[-SHOWN:])]
        note = f"{_count(len(runs), 'run')} in order: {before}{order}" if len(runs) > 1 else ""
        yield ActivityRow(kind="Tests", said=tuple(said), note=note, seen="log")
    if signals.calls:
        kinds = sorted(signals.tool_calls.items(), key=lambda each: (each[0] == "other", -each[1], each[0]))
        used = ", ".join(f"{count} × {kind}" for kind, count in kinds)
        answered = "all" if signals.results >= signals.calls else f"{signals.results:,}"
        text = f"{signals.calls:,}, {answered} answered: {used}"
        notes = []
        if signals.opaque_calls:
            whose = "of a tool" if signals.opaque_calls == 1 else "of tools"
            notes.append(
                f"{_count(signals.opaque_calls, 'call')} {whose} the site does not know: their effects are unknown, "
                "which isn’t a failure"
            )
        if signals.failed_calls:
            notes.append(f"{signals.failed_calls} of the {signals.known_results} with a known result failed")
        if signals.unreadable_calls and not signals.is_blind:
            notes.append(f"{signals.unreadable_calls} could not be read")
        yield ActivityRow(kind="Tool calls", said=(ActivityItem(text=text[:SAID]),), note=". ".join(notes), seen="log")
    if signals.api_errors or signals.cut:
        end, errors = log.last_error(), sorted(signals.api_errors.items())
        counts = ", ".join(f"{count} × {reason.replace('_', ' ')}" for reason, count in errors)
        item = ActivityItem(text=counts)
        if end and end.stored_text:
            item = ActivityItem(code=end.stored_text[:SAID], event=end.number)
        goes_on = f"{counts}; the session went on" if signals.has_model_turn else ""
        yield ActivityRow(
            kind="API error", said=(item,), note="The log ends in it" if signals.cut else goes_on, seen="log"
        )


def _result(*, passed: bool) -> str:
    return "passed" if passed else "failed"


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"
