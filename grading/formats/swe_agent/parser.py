"""SWE-agent: a trajectory (`*.traj`) is one JSON document `{trajectory, history, info}`.

The steps are in `trajectory`; the system's and the user's message only in `history`, which comes after it and repeats
the steps. A demonstration has a `history` alone. No step has a time, a shell's exit code or the session's id.
"""

from collections.abc import Iterator
from itertools import chain, takewhile
from typing import Any, BinaryIO, Final

from msgspec.structs import replace

from grading.formats.events import Boundary, Event, Role, ToolCall, TranscriptHeader
from grading.formats.lines import LineTally, Problems, json_or_none
from grading.formats.reader import LIKELY, NO, SURE, Form, FormatTier, Parser, Record
from grading.formats.swe_agent.actions import has_failed, read_action
from grading.formats.usage import select_tokens
from grading.formats.values import content_text, mapping, mappings, text, text_or_none, usd_or_none

STEP, TURN, INFO, CONFIG = "trajectory.item", "history.item", "info", "replay_config"
MAX_STEPS: Final = 20_000


class SweAgent(Parser):
    format = "swe-agent"
    title = "SWE-agent"
    tier = FormatTier.FULL
    logs = "trajectories/**/*.traj"
    samples, sources = 9, 1
    forms = frozenset({Form.DOCUMENT})
    paths = frozenset({STEP, TURN, INFO, CONFIG})
    has_common_digests = True

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._model: str | None = None
        self._call: ToolCall | None = None
        """The last call, while it awaits its observation."""

    @staticmethod
    def score_document(document: Any) -> float:
        fields = mapping(document)
        step = next(iter(mappings(fields.get("trajectory"))), {})
        if {"action", "observation"} <= step.keys():
            return SURE
        turn = next(iter(mappings(fields.get("history"))), {})
        return LIKELY if {"role", "content", "agent"} <= turn.keys() else NO

    @classmethod
    def read_records(
        cls, stream: BinaryIO, form: Form, tally: LineTally, *, max_line: int
    ) -> Iterator[tuple[bytes, dict[str, Any]]]:
        """The records in the order of the session: the turns before the first step, the steps, the session's info."""
        records: dict[str, list[tuple[bytes, dict[str, Any]]]] = {path: [] for path in (CONFIG, TURN, STEP, INFO)}
        for source, record in super().read_records(stream, form, tally, max_line=max_line):
            if len(records[record["path"]]) < MAX_STEPS:
                records[record["path"]].append((source, record))
        if records[STEP]:
            turns = list(takewhile(lambda item: not _is_step(mapping(item[1]["value"])), records[TURN]))
            tally.lines -= len(records[TURN]) - len(turns)
            records[TURN] = turns
        yield from chain.from_iterable(records.values())

    def feed(self, record: Record) -> list[Event] | None:
        path, value = text(record.get("path")), record.get("value")
        if path == CONFIG:
            config = mapping(json_or_none(value) if isinstance(value, str) else value)
            self._model = text_or_none(mapping(mapping(config.get("agent")).get("model")).get("name"))
            self.note_setting("model", self._model)
            return []
        if path == INFO:
            return list(self._info(mapping(value)))
        return list(self._step(mapping(value)) if path == STEP else self._turn(mapping(value)))

    def shared_identity(self, record: Record) -> str:
        return self.chain_identity(record.get("value"))

    def header(self) -> TranscriptHeader:
        return TranscriptHeader(model=self._model)

    def _step(self, step: Record) -> Iterator[Event]:
        """A response with its action, and the observation."""
        thought = text(step.get("thought"))
        yield from self.build_messages(Role.ASSISTANT, thought, None)
        if text(step.get("action")).strip():
            yield from self._action(text(step.get("action")), _open_file(step.get("state")))
            yield from self._observation(content_text(step.get("observation")))

    def _action(self, action: str, open_file: str) -> Iterator[Event]:
        call = self.build_call(read_action(action, open_file), None)
        self._call = replace(call, call_id=f"step-{call.number}")
        yield self._call

    def _observation(self, output: str) -> Iterator[Event]:
        call, self._call = self._call, None
        if call is not None:
            yield self.build_result(call.call_id, output, None, failed=has_failed(call, output))

    def _turn(self, turn: Record) -> Iterator[Event]:
        """A message of the history: the system's or user's before the steps, or a step of a demonstration."""
        role, content = text(turn.get("role")), content_text(turn.get("content"))
        if role == "assistant":
            yield from self.build_messages(Role.ASSISTANT, text(turn.get("thought")) or content, None)
            if action := text(turn.get("action")).strip():
                yield from self._action(action, "")
        elif self._call is not None:
            yield from self._observation(content)
        else:
            is_demonstration = turn.get("is_demo") is True
            is_user = role == "user" and not is_demonstration
            yield from self.build_messages(Role.USER if is_user else Role.SCAFFOLD, content, None)

    def _info(self, info: Record) -> Iterator[Event]:
        """The usage of the whole session, and how it ended."""
        stats = mapping(info.get("model_stats"))
        tokens = select_tokens(stats, "tokens_sent", "tokens_received")
        cost = usd_or_none(stats.get("instance_cost"))
        if not tokens.is_empty or cost:
            yield self.build_usage(tokens, model=self._model or "", at=None, cost=cost)
        yield Boundary(number=self.next_number(), kind="end", detail=text(info.get("exit_status"))[:200])


def _is_step(turn: Record) -> bool:
    """Whether a turn of the history repeats a step, or the observation after one."""
    return turn.get("role") == "assistant" and turn.get("is_demo") is not True


def _open_file(state: object) -> str:
    """The file that SWE-agent's editor shows; "" if none. Early versions stored the state as JSON text."""
    fields = mapping(json_or_none(state) if isinstance(state, str) else state)
    name = text(fields.get("open_file"))
    return "" if name == "n/a" else name
