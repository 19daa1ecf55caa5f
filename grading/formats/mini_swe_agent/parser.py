"""mini-SWE-agent: a trajectory (`*.traj.json`) has `{info, messages}`; early versions saved the list of messages.

A call is the only fenced block or element of a response, or in version 2 a tool call; its output is the message after
it. Version 2 also keeps the output as it was before it was formatted for the model. Messages of a model with OpenAI's
Responses API have no role: the response is one object, and outputs have a type.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from grading.formats.blocks import BlockParser
from grading.formats.events import Boundary, Event, Role, TranscriptHeader
from grading.formats.lines import Problems
from grading.formats.mini_swe_agent.outputs import read_output
from grading.formats.reader import NO, SURE, Form, Record
from grading.formats.tools import ToolTable
from grading.formats.usage import ReportedTokens
from grading.formats.values import (
    content_text,
    exit_code_or_none,
    kind_by_name,
    mapping,
    mappings,
    parse_time,
    text,
    text_or_none,
    usd_or_none,
)

ACTION: Final = re.compile(
    r"```(?:mswea_bash_command|bash)[ \t]*\n(?P<block>.{0,200000}?)\n?```"
    r"|<mswea_bash_command>(?P<element>.{0,200000}?)</mswea_bash_command>",
    re.DOTALL,
)
OUTPUT: Final = "function_call_output"
PROMPT: Final = re.compile(r"mswea_bash_command|exactly ONE bash code block")


class MiniSweAgent(BlockParser):
    format = "mini-swe-agent"
    title = "mini-SWE-agent"
    logs = "*.traj.json, the file given to mini --output"
    samples, sources = 1, 1
    forms = frozenset({Form.DOCUMENT})
    paths = frozenset({"item", "messages.item", "info"})
    has_common_digests = True
    tools = ToolTable(kinds=kind_by_name({"shell": "bash"}))

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._info: Record = {}
        self._call_ids: list[str] = []
        """The ids of the last response's calls that have no output yet."""
        self._has_task = False

    @staticmethod
    def score_document(document: Any) -> float:
        fields = mapping(document)
        is_named = text(fields.get("trajectory_format")).startswith("mini-swe-agent")
        if is_named or "mini_version" in mapping(fields.get("info")):
            return SURE
        messages = document if isinstance(document, list) else fields.get("messages")
        first = next(iter(mappings(messages)), {})
        is_prompt = first.get("role") == "system" and PROMPT.search(content_text(first.get("content"))[:4000])
        return SURE if is_prompt else NO

    def feed(self, record: Record) -> list[Event] | None:
        value = mapping(record.get("value"))
        if record.get("path") == "info":
            self._info = value
            self.note_setting("model", mapping(mapping(mapping(value.get("config")).get("model"))).get("model_name"))
            self.note_setting("harness_version", value.get("mini_version"))
            return []
        return list(self._message(value))

    def shared_identity(self, record: Record) -> str:
        return self.chain_identity(record.get("value"))

    def finish(self) -> list[Event]:
        """The cost of the session and its end, from the trajectory's info."""
        if not self._info:
            return []
        events: list[Event] = []
        if cost := usd_or_none(mapping(self._info.get("model_stats")).get("instance_cost")):
            events.append(self.build_usage(ReportedTokens(), model=self._model, at=None, cost=cost))
        detail = text(self._info.get("exit_status"))[:200]
        return [*events, Boundary(number=self.next_number(), kind="end", detail=detail)]

    def header(self) -> TranscriptHeader:
        return TranscriptHeader(
            model=self._model or None,
            harness_version=text_or_none(self._info.get("mini_version")),
        )

    @property
    def _model(self) -> str:
        return text(mapping(mapping(self._info.get("config")).get("model")).get("model_name"))

    def _message(self, message: Record) -> Iterator[Event]:
        """Events of a message: the prompt, the task, a response with its call, or an output."""
        extra = mapping(message.get("extra"))
        is_response, is_output = message.get("object") == "response", message.get("type") == OUTPUT
        role = "assistant" if is_response else "tool" if is_output else text(message.get("role"))
        content = content_text(message.get("content")) or content_text(message.get("output") if is_output else None)
        at = self.note_time(parse_time(extra.get("timestamp")))
        if role == "assistant":
            for part in mappings(message.get("output")):
                content += content_text(part.get("content"))
            yield from self.build_messages(Role.ASSISTANT, ACTION.sub("", content), at)
            commands = [text(action.get("command")) for action in mappings(extra.get("actions"))]
            self._call_ids = []
            for command in commands or [match["block"] or match["element"] for match in ACTION.finditer(content)]:
                call_id = f"action-{self._last_number + 1}"
                self._call_ids.append(call_id)
                yield self.build_call(self.tools.read_call("bash", {"command": command}, call_id), at)
        elif self._call_ids and role in ("tool", "user"):
            yield self._output(content, extra, at)
        else:
            is_task = role == "user" and not self._has_task
            self._has_task = self._has_task or is_task
            yield from self.build_messages(Role.USER if is_task else Role.SCAFFOLD, content, at)

    def _output(self, content: str, extra: Record, at: datetime | None) -> Event:
        """The result of the first open call."""
        output, exit_code = read_output(content)
        if "raw_output" in extra:
            output = "\n".join(filter(None, (text(extra["raw_output"]), text(extra.get("exception_info")))))
            exit_code = exit_code_or_none(extra.get("returncode"))
        failed = None if exit_code is None else exit_code != 0
        return self.build_result(self._call_ids.pop(0), output, at, failed=failed, exit_code=exit_code)
