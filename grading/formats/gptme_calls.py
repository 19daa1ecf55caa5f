"""gptme's tool calls inside an assistant's text: fenced blocks, XML, and `@tool(id): {json}`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import unescape
from itertools import islice
from typing import Any, Final

from grading.formats.events import Clarity
from grading.formats.lines import json_or_none
from grading.formats.values import text, words

KINDS: Final = {
    name: kind
    for kind, names in {
        "shell": "bash sh shell tmux",
        "write": "append save",
        "edit": "morph patch patch_many",
        "read": "read view_image vision",
        "search": "chats rag",
        "web": "browser read_url search youtube",
        "agent": "subagent",
        "plan": "todo todoread todowrite",
        "other": "choice complete computer elicit form gh ipython lesson lsp mcp precommit restart screenshot",
    }.items()
    for name in names.split()
}
OPAQUE: Final = words("computer ipython mcp")
"""Tools of its own whose effect cannot be known from the call."""
FILE_TOOLS: Final = words("append morph patch save")
THOUGHT: Final = re.compile(r"</think(?:ing)?>")
AT_CALL: Final = re.compile(r"^@(\w{1,60})\(([\w\-:.]{1,200})\):[ \t]*\n?(?=[ \t]*\{)", re.MULTILINE)
XML_OPEN: Final = re.compile(r"<(tool-use|function_calls)>")
XML_TOOL: Final = re.compile(r"<([A-Za-z_][\w-]{0,60})((?:\s[^<>]{0,2000})?)>")
ATTRIBUTE: Final = re.compile(r"""([\w-]{1,40})=(?:"([^"]{0,2000})"|'([^']{0,2000})')""")
PARAMETER: Final = re.compile(r'<parameter name="([^"]{1,60})">')
# What a call looks like in a syntax that is not read, outside of code that is only shown.
CALL_LIKE: Final = re.compile(
    r"^@(?:" + "|".join(sorted(KINDS)) + r")\([^\n)]{0,200}\)[^\n{]{0,20}\{"
    r"|^[ \t]{0,20}<(?:[a-z]{2,10}:)?(?:tool|function|invoke|execute|call)(?:[-_:=]\w{1,60}|s)?"
    r"(?:[ \t][^<>\n]{0,300})?>"
    r"|^[ \t]{0,20}<(?:append|bash|ipython|patch|save|sh|shell|tmux)(?:[ \t][^<>\n]{0,300})?>"
    r"|<[|\uff5c][ \t]?(?:tool|python|function)"
    r"|^\[TOOL_(?:CALLS?|REQUEST)\]"
    r"|^(?:to=)?functions\.\w{1,60}[:({ ]"
    r"|^Action:[^\n]{1,200}\n{1,3}Action Input:"
    r"|^[ \t]{0,20}[\[{][\s\[{]{0,20}\"(?:action|function|name|recipient_name|tool|tool_name)\"\s{0,5}:\s{0,5}"
    r"\"[\w.:/-]{1,80}\""
    r"\s{0,20},\s{0,20}\"(?:action_input|args|arguments|input|kwargs|parameters|params|tool_input)\"\s{0,5}:",
    re.MULTILINE,
)
CALL_TAG: Final = re.compile(r"(?:tool|function)(?:[-_: ]?(?:call|code|use)s?|:[\w.-]{1,60})?")
LANGUAGES: Final = words(
    "asciidoc asm awk batch c clojure cmake code console cpp cs csharp css csv dart diff dockerfile dot elixir elm env "
    "erlang fish fortran go gradle graphql groovy haskell html http ini java javascript jinja js json json5 jsonc "
    "jsonl jsx julia kotlin latex less log lua make makefile markdown math md mermaid nginx nim nix objc ocaml output "
    "patch perl php plain plaintext powershell prisma properties proto protobuf ps1 py pycon python python3 r rb regex "
    "result rst ruby rs rust sass scala scss shellsession sql stderr stdout svelte svg swift system terraform "
    "tex text toml traceback ts tsx txt typescript vim vue xml yaml yml zig zsh"
)
MAX_UNREAD: Final = 50
MAX_UNCLOSED: Final = 20
"""Openings without an end that are followed to the end of the text, so that a hostile text costs no more than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GptmeCall:
    """A call and where it stands in the text: `start` to `end`."""

    start: int
    end: int
    name: str
    call_id: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    is_loose: bool = False
    """Nothing but its place says that this is a call."""

    @property
    def clarity(self) -> Clarity:
        if (self.kind == "shell" and not self.command.strip()) or (self.is_loose and self.name not in KINDS):
            return Clarity.UNREADABLE
        return Clarity.UNDERSTOOD if self.name in KINDS and self.name not in OPAQUE else Clarity.OPAQUE

    @property
    def kind(self) -> str:
        return KINDS.get(self.name, "other")

    @property
    def command(self) -> str:
        return text(self.arguments.get("command")) if self.kind == "shell" else ""

    @property
    def path(self) -> str:
        return text(self.arguments.get("path"))


def split_thought(content: str) -> tuple[str, str]:
    """(thinking, the rest): gptme runs nothing that stands before the last closing tag of its thinking."""
    end = max((match.end() for match in THOUGHT.finditer(content)), default=0)
    return content[:end], content[end:]


def find_calls(content: str) -> list[GptmeCall]:
    """All tool calls in an assistant's text without its thinking, in order, none inside another."""
    found: list[GptmeCall] = []
    end = unclosed = 0
    for match in AT_CALL.finditer(content):
        if match.start() < end or unclosed > MAX_UNCLOSED:
            continue
        closing = _object_end(content, match.end())
        unclosed += not closing
        arguments = json_or_none(content[match.end() : closing]) if closing else None
        if isinstance(arguments, dict):
            end = closing
            call = GptmeCall(start=match.start(), end=end, name=match[1], call_id=match[2], arguments=arguments)
            found.append(call)
    found += [*_xml_calls(content), *_fenced(content, nests=True)]
    calls: list[GptmeCall] = []
    for call in sorted(found, key=lambda call: call.start):
        if not calls or call.start >= calls[-1].end:
            calls.append(call)
    return calls


def find_plain_calls(content: str) -> list[GptmeCall]:
    """The fenced calls as gptme read them in 2024, when a bare fence closed a block whatever followed it."""
    return list(_fenced(content, nests=False))


def visible(content: str, calls: list[GptmeCall]) -> str:
    """What the assistant said around its calls."""
    said, start = [], 0
    for call in calls:
        said.append(content[start : call.start])
        start = call.end
    said.append(content[start:])
    return "".join(said).strip()


def unread_calls(said: str) -> int:
    """How many calls in a syntax we do not know are left around those that were read; at most MAX_UNREAD."""
    outside, fences = _fences(said)
    tagged = sum(
        CALL_TAG.fullmatch(tag) is not None or (tag == "json" and CALL_LIKE.match(body) is not None)
        for tag, body in fences
    )
    found = sum(1 for _ in islice(CALL_LIKE.finditer(outside), MAX_UNREAD))
    return min(MAX_UNREAD, tagged + found)


def may_call(said: str) -> bool:
    """Whether a fenced block is tagged with what is no language and no file: it is a call where an output follows."""
    _, fences = _fences(said)
    names = (tag.split(" ")[0].lower() for tag, _ in fences)
    return any(name and name not in LANGUAGES and name not in KINDS and not {".", "/"} & set(name) for name in names)


def _fences(said: str) -> tuple[str, list[tuple[str, str]]]:
    """(the text outside of fenced blocks, each block's tag and body). An unclosed fence is text."""
    lines = said.split("\n")
    outside: list[str] = []
    blocks: list[tuple[str, str]] = []
    at = unclosed = 0
    while at < len(lines):
        closing = 0
        if lines[at].startswith("```") and unclosed <= MAX_UNCLOSED:
            closing = _closing_fence(lines, at, nests=True)
            unclosed += not closing
        if closing:
            blocks.append((lines[at].strip("`").strip(), "\n".join(lines[at + 1 : closing])))
            at = closing
        else:
            outside.append(lines[at])
        at += 1
    return "\n".join(outside), blocks


STRUCTURE: Final = re.compile(r'[{}"]|\\.', re.DOTALL)


def _object_end(content: str, start: int) -> int:
    """Where the JSON object that begins after `start` ends, braces in strings apart; 0 where it does not."""
    depth, quoted = 0, False
    for match in STRUCTURE.finditer(content, start):
        mark = match[0]
        if mark == '"':
            quoted = not quoted
        elif not quoted and mark in "{}":
            depth += 1 if mark == "{" else -1
            if depth <= 0:
                return match.end()
    return 0


def _xml_calls(content: str) -> Iterator[GptmeCall]:
    start = 0
    while match := XML_OPEN.search(content, start):
        closing_tag = f"</{match[1]}>"
        closing = content.find(closing_tag, match.end())
        if closing < 0:
            return
        start = closing + len(closing_tag)
        tools = list(_xml_tools(content, match.end(), closing))
        if tools:  # the wrapper is part of the calls in it
            tools[0] = replace(tools[0], start=match.start())
            tools[-1] = replace(tools[-1], end=start)
        yield from tools


def _xml_tools(content: str, start: int, end: int) -> Iterator[GptmeCall]:
    while (match := XML_TOOL.search(content, start, end)) is not None:
        closing_tag = f"</{match[1]}>"
        closing = content.find(closing_tag, match.end(), end)
        if closing < 0:
            return
        start = closing + len(closing_tag)
        attributes = {found[1]: unescape(found[2] or found[3] or "") for found in ATTRIBUTE.finditer(match[2])}
        name = attributes.get("name", "") if match[1] == "invoke" else match[1]
        body = content[match.end() : closing]
        arguments: dict[str, Any] = {}
        for piece in body.split("</parameter>")[:-1]:
            if parameter := PARAMETER.search(piece):
                arguments[parameter[1]] = unescape(piece[parameter.end() :])
        if not arguments:
            arguments = _positional(name, attributes.get("args", ""), unescape(body).strip("\n"))
        is_loose = match[1] != "invoke"
        yield GptmeCall(start=match.start(), end=start, name=name, arguments=arguments, is_loose=is_loose)


def _fenced(content: str, *, nests: bool) -> Iterator[GptmeCall]:
    """Fenced blocks whose tag names a tool, or a file (then the block is saved to it).

    As gptme reads them: a bare fence followed by text opens a nested block (if `nests`), any other bare fence closes
    one.
    """
    lines = content.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    at = unclosed = 0
    while at < len(lines) and unclosed <= MAX_UNCLOSED:
        is_fence = lines[at].startswith("```")
        closing = _closing_fence(lines, at, nests=nests) if is_fence else 0
        unclosed += is_fence and not closing
        if not closing:
            at += 1
            continue
        tag, body = lines[at].strip("`").strip(), "\n".join(lines[at + 1 : closing])
        name, _, args = tag.partition(" ")
        if name not in KINDS and ("." in tag or "/" in tag) and " " not in tag:
            name, args = "save", tag
        if name in KINDS:
            end = min(starts[closing + 1], len(content))
            yield GptmeCall(start=starts[at], end=end, name=name, arguments=_positional(name, args.strip(), body))
        at = closing + 1


def _closing_fence(lines: list[str], opening: int, *, nests: bool) -> int:
    fence = lines[opening][: len(lines[opening]) - len(lines[opening].lstrip("`"))]
    depth = 1
    for at in range(opening + 1, len(lines)):
        if not lines[at].startswith(fence):
            continue
        following = lines[at + 1].strip() if at + 1 < len(lines) else ""
        opens = lines[at].strip() != fence or (nests and bool(following) and not following.startswith("```"))
        depth += 1 if opens else -1
        if depth == 0:
            return at
    return 0


def _positional(name: str, args: str, body: str) -> dict[str, Any]:
    """The positional form of a call as the named arguments of its `@tool` form."""
    if name in FILE_TOOLS:
        return {"path": args, "patch" if name in ("patch", "morph") else "content": body}
    if KINDS.get(name) == "shell":
        return {"command": body}
    if KINDS.get(name) == "read":
        return {"path": args or body.strip()}
    return {"args": args, "code": body} if args else {"code": body}
