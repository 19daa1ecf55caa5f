"""Finds gptme's tool calls in an assistant's text: fenced blocks, XML, and `@tool(id): {json}`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import unescape
from itertools import islice
from typing import Any, Final

from grading.formats.events import Clarity
from grading.formats.lines import json_or_none
from grading.formats.values import kind_by_name, text, word_set

KINDS: Final = kind_by_name(
    {
        "shell": "bash sh shell tmux",
        "write": "append save",
        "edit": "morph patch patch_many",
        "read": "read view_image vision",
        "search": "chats rag",
        "web": "browser read_url search youtube",
        "agent": "subagent",
        "plan": "todo todoread todowrite",
        "other": "choice complete computer elicit form gh ipython lesson lsp mcp precommit restart screenshot",
    }
)
OPAQUE_TOOLS: Final = word_set("computer ipython mcp")
"""Built-in tools whose effect can't be determined from the call."""
FILE_TOOLS: Final = word_set("append morph patch save")
THINKING_END: Final = re.compile(r"</think(?:ing)?>")
AT_CALL: Final = re.compile(r"^@(\w{1,60})\(([\w\-:.]{1,200})\):[ \t]*\n?(?=[ \t]*\{)", re.MULTILINE)
XML_OPEN: Final = re.compile(r"<(tool-use|function_calls)>")
XML_TOOL: Final = re.compile(r"<([A-Za-z_][\w-]{0,60})((?:\s[^<>]{0,2000})?)>")
ATTRIBUTE: Final = re.compile(r"""([\w-]{1,40})=(?:"([^"]{0,2000})"|'([^']{0,2000})')""")
PARAMETER: Final = re.compile(r'<parameter name="([^"]{1,60})">')
# Calls in syntaxes that we don't parse; not searched for in code blocks.
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
LANGUAGES: Final = word_set(
    "asciidoc asm awk batch c clojure cmake code console cpp cs csharp css csv dart diff dockerfile dot elixir elm env "
    "erlang fish fortran go gradle graphql groovy haskell html http ini java javascript jinja js json json5 jsonc "
    "jsonl jsx julia kotlin latex less log lua make makefile markdown math md mermaid nginx nim nix objc ocaml output "
    "patch perl php plain plaintext powershell prisma properties proto protobuf ps1 py pycon python python3 r rb regex "
    "result rst ruby rs rust sass scala scss shellsession sql stderr stdout svelte svg swift system terraform "
    "tex text toml traceback ts tsx txt typescript vim vue xml yaml yml zig zsh"
)
# The command that an output is of, as gptme names it: whole, or its first characters.
RAN: Final = re.compile(
    r"Ran (?:allowlisted )?command:(?: `(?P<short>[^`]{1,2000})`|\n```bash\n(?P<block>.{1,20000}?)\n```)", re.DOTALL
)
SHORTENED: Final = re.compile(r"\.\.\.\n\(\d{1,6} lines?\)$")
COMPARED: Final = 60
"""Letters and digits by which two command lines are compared: a terminal wraps lines and takes brackets for markup."""
MAX_UNREADABLE: Final = 50
MAX_UNCLOSED: Final = 20
"""Searches for a missing end per text. Each goes to the end of the text, so this bounds the cost of a hostile one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GptmeCall:
    """A call and its span in the text, `start` to `end`."""

    start: int
    end: int
    name: str
    call_id: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    is_loose: bool = False
    """An XML element in a call's place that isn't explicitly an invocation."""

    @property
    def clarity(self) -> Clarity:
        if (self.kind == "shell" and not self.command.strip()) or (self.is_loose and self.name not in KINDS):
            return Clarity.UNREADABLE
        return Clarity.UNDERSTOOD if self.name in KINDS and self.name not in OPAQUE_TOOLS else Clarity.OPAQUE

    @property
    def kind(self) -> str:
        return KINDS.get(self.name, "other")

    @property
    def command(self) -> str:
        return text(self.arguments.get("command")) if self.kind == "shell" else ""

    @property
    def path(self) -> str:
        return text(self.arguments.get("path"))


def split_thinking(content: str) -> tuple[str, str]:
    """(thinking, answer), split after the last closing tag of thinking: gptme runs no calls before it."""
    end = max((match.end() for match in THINKING_END.finditer(content)), default=0)
    return content[:end], content[end:]


def find_calls(content: str) -> list[GptmeCall]:
    """All tool calls in an assistant's text without its thinking, in order. Of calls that overlap, the first counts."""
    candidates = [*_at_calls(content), *_xml_calls(content), *_fenced_calls(content, nests=True)]
    calls: list[GptmeCall] = []
    for call in sorted(candidates, key=lambda call: call.start):
        if not calls or call.start >= calls[-1].end:
            calls.append(call)
    return calls


def find_plain_calls(content: str) -> list[GptmeCall]:
    """The fenced calls by gptme's rules of 2024, when a bare fence closed a block whatever followed it."""
    return list(_fenced_calls(content, nests=False))


def find_ran_command(output: str) -> str:
    """The command whose output this is, perhaps only its beginning; "" if the output names none."""
    match = RAN.match(output.lstrip())
    return (match["short"] or match["block"]) if match else ""


def is_shortened(ran: str) -> bool:
    """Whether a command from `find_ran_command` is only the beginning of the one that ran."""
    return SHORTENED.search(ran) is not None


def is_same_command(command: str, ran: str) -> bool:
    """Whether a call's command is the one that an output names, by the first letters and digits of both."""
    own = re.sub(r"\W+", "", command[: 10 * COMPARED])
    other = re.sub(r"\W+", "", SHORTENED.sub("", ran)[: 10 * COMPARED])
    size = min(len(other), COMPARED) if is_shortened(ran) else COMPARED
    return own[:size] == other[:size]


def remove_calls(content: str, calls: list[GptmeCall]) -> str:
    """The assistant's text without its calls."""
    pieces, start = [], 0
    for call in calls:
        pieces.append(content[start : call.start])
        start = call.end
    pieces.append(content[start:])
    return "".join(pieces).strip()


def count_unreadable_calls(visible_text: str) -> int:
    """How many calls a text seems to have in syntaxes that we don't parse; at most MAX_UNREADABLE.

    `visible_text` is an assistant's text from which the parsed calls were removed. Counted are what looks like a call
    outside of fenced blocks, and blocks whose tag names a call or whose JSON begins with one.
    """
    outside, blocks = _split_fences(visible_text)
    outside_calls = islice(CALL_LIKE.finditer(outside), MAX_UNREADABLE)
    call_blocks = [tag for tag, body in blocks if CALL_TAG.fullmatch(tag) or (tag == "json" and CALL_LIKE.match(body))]
    return min(sum(1 for _ in outside_calls) + len(call_blocks), MAX_UNREADABLE)


def may_have_calls(visible_text: str) -> bool:
    """Whether a fenced block's tag is no language, file or known tool; if an output follows, the block was a call."""
    _, blocks = _split_fences(visible_text)
    for tag, _ in blocks:
        name = tag.split(" ")[0].lower()
        is_path = "." in name or "/" in name
        if name and name not in LANGUAGES and name not in KINDS and not is_path:
            return True
    return False


def _split_fences(visible_text: str) -> tuple[str, list[tuple[str, str]]]:
    """(text outside of fenced blocks, (tag, body) of each block). An unclosed fence counts as text."""
    lines = visible_text.split("\n")
    outside: list[str] = []
    blocks: list[tuple[str, str]] = []
    index = unclosed = 0
    while index < len(lines):
        closing = 0
        if lines[index].startswith("```") and unclosed <= MAX_UNCLOSED:
            closing = _closing_fence(lines, index, nests=True)
            if not closing:
                unclosed += 1
        if closing:
            blocks.append((lines[index].strip("`").strip(), "\n".join(lines[index + 1 : closing])))
            index = closing
        else:
            outside.append(lines[index])
        index += 1
    return "\n".join(outside), blocks


def _at_calls(content: str) -> Iterator[GptmeCall]:
    """Calls such as `@shell(call-1): {"command": "ls"}`; none within another's arguments."""
    end = unclosed = 0
    for match in AT_CALL.finditer(content):
        if match.start() < end or unclosed > MAX_UNCLOSED:
            continue
        closing = _object_end(content, match.end())
        if not closing:
            unclosed += 1
            continue
        arguments = json_or_none(content[match.end() : closing])
        if isinstance(arguments, dict):
            end = closing
            yield GptmeCall(start=match.start(), end=end, name=match[1], call_id=match[2], arguments=arguments)


STRUCTURE: Final = re.compile(r'[{}"]|\\.', re.DOTALL)


def _object_end(content: str, start: int) -> int:
    """The end offset of the JSON object that begins after `start`, ignoring braces in strings; 0 if it isn't closed."""
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
    """Calls in `<tool-use>` and `<function_calls>` elements."""
    start = 0
    while match := XML_OPEN.search(content, start):
        closing_tag = f"</{match[1]}>"
        closing = content.find(closing_tag, match.end())
        if closing < 0:
            return
        start = closing + len(closing_tag)
        tools = list(_xml_tools(content, match.end(), closing))
        if tools:  # let the first and last call's spans cover the wrapping element
            tools[0] = replace(tools[0], start=match.start())
            tools[-1] = replace(tools[-1], end=start)
        yield from tools


def _xml_tools(content: str, start: int, end: int) -> Iterator[GptmeCall]:
    """One call per child element: `<shell>…</shell>` or `<invoke name="shell">…</invoke>`."""
    while (match := XML_TOOL.search(content, start, end)) is not None:
        closing_tag = f"</{match[1]}>"
        closing = content.find(closing_tag, match.end(), end)
        if closing < 0:
            return
        start = closing + len(closing_tag)
        attributes = {}
        for attribute in ATTRIBUTE.finditer(match[2]):
            attributes[attribute[1]] = unescape(attribute[2] or attribute[3] or "")
        name = attributes.get("name", "") if match[1] == "invoke" else match[1]
        body = content[match.end() : closing]
        arguments: dict[str, Any] = {}
        for piece in body.split("</parameter>")[:-1]:
            if parameter := PARAMETER.search(piece):
                arguments[parameter[1]] = unescape(piece[parameter.end() :])
        if not arguments:
            arguments = _named_arguments(name, attributes.get("args", ""), unescape(body).strip("\n"))
        is_loose = match[1] != "invoke"  # the element's name may be no tool's
        yield GptmeCall(start=match.start(), end=start, name=name, arguments=arguments, is_loose=is_loose)


def _fenced_calls(content: str, *, nests: bool) -> Iterator[GptmeCall]:
    """Calls from fenced blocks whose tag names a tool, or a file, to which the block is saved.

    By gptme's rules: a bare fence followed by text opens a nested block (if `nests`); any other bare fence closes one.
    """
    lines = content.split("\n")
    starts = [0]  # the offset of each line, and of the end
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    index = unclosed = 0
    while index < len(lines) and unclosed <= MAX_UNCLOSED:
        if not lines[index].startswith("```"):
            index += 1
            continue
        closing = _closing_fence(lines, index, nests=nests)
        if not closing:
            unclosed += 1
            index += 1
            continue
        tag, body = lines[index].strip("`").strip(), "\n".join(lines[index + 1 : closing])
        name, _, args = tag.partition(" ")
        if name not in KINDS and ("." in tag or "/" in tag) and " " not in tag:
            name, args = "save", tag
        if name in KINDS:
            end = min(starts[closing + 1], len(content))
            yield GptmeCall(
                start=starts[index], end=end, name=name, arguments=_named_arguments(name, args.strip(), body)
            )
        index = closing + 1


def _closing_fence(lines: list[str], opening: int, *, nests: bool) -> int:
    """The index of the line that closes the fence on line `opening`; 0 if none does.

    A fence with a tag opens a nested block; so does a bare fence that text follows, if `nests`.
    """
    fence = "`" * (len(lines[opening]) - len(lines[opening].lstrip("`")))
    depth = 1
    for index in range(opening + 1, len(lines)):
        if not lines[index].startswith(fence):
            continue
        following = lines[index + 1].strip() if index + 1 < len(lines) else ""
        opens = lines[index].strip() != fence or (nests and bool(following) and not following.startswith("```"))
        depth += 1 if opens else -1
        if depth == 0:
            return index
    return 0


def _named_arguments(tool: str, args: str, body: str) -> dict[str, Any]:
    """The arguments of a call in a fenced block, by the names that they have in a call in JSON, `@tool(id): {…}`.

    `args` is what follows the tool's name on the fence, such as a path.
    """
    if tool in FILE_TOOLS:
        body_name = "patch" if tool in ("patch", "morph") else "content"
        return {"path": args, body_name: body}
    if KINDS.get(tool) == "shell":
        return {"command": body}
    if KINDS.get(tool) == "read":
        return {"path": args or body.strip()}
    return {"args": args, "code": body} if args else {"code": body}
