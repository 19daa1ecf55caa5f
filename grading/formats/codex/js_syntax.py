"""Parses JavaScript with tree-sitter, in bounded time and memory, and reads the nodes of its syntax tree."""

import re
from dataclasses import dataclass
from typing import Final

import tree_sitter_javascript
from tree_sitter import Language, Node, Parser

from grading.formats.codex.js_values import StepBudget, UnreadableScriptError, UnsupportedScriptError

JAVASCRIPT: Final = Language(tree_sitter_javascript.language())
MAX_SOURCE: Final = 400_000
CHUNK_BYTES: Final = 1_024
STEPS_PER_PARSER_CALLBACK: Final = 8
"""tree-sitter asks whether to stop after every hundred operations or so of its parser."""
CHILDREN_PER_STEP: Final = 10
LITERAL_CHARS_PER_STEP: Final = 100
MAX_NUMBER_LENGTH: Final = 40
ESCAPE: Final = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|[\s\S]))", re.ASCII)
PLAIN_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}


@dataclass(frozen=True, slots=True)
class SyntaxTree:
    """A script's syntax tree. Access to a node's children costs steps in proportion to their number."""

    root: Node
    source: bytes
    step_budget: StepBudget

    def text(self, node: Node) -> str:
        # Not `node.text`, which is slow: it reads the source byte by byte, by the function that the parser was given.
        return self.source[node.start_byte : node.end_byte].decode()

    def raw_literal(self, start: int, end: int) -> str:
        """The text between two offsets of a string or template literal, as it is written."""
        self.step_budget.spend((end - start) // LITERAL_CHARS_PER_STEP)
        return self.source[start:end].decode()

    def literal(self, start: int, end: int) -> str:
        """The text that a part of a string or template literal means, without escape sequences."""
        return unescape(self.raw_literal(start, end))

    def children(self, node: Node) -> list[Node]:
        """All children of the node, with punctuation and comments."""
        self.step_budget.spend(node.child_count // CHILDREN_PER_STEP)
        return node.children

    def parts(self, node: Node) -> list[Node]:
        """The node's named children without comments."""
        self.step_budget.spend(node.named_child_count // CHILDREN_PER_STEP)
        return [child for child in node.named_children if child.type != "comment"]

    def only_part(self, node: Node) -> Node:
        """The node's only named child. Raises UnsupportedScriptError if it has none, or several."""
        parts = self.parts(node)
        if len(parts) != 1:
            raise UnsupportedScriptError(f"{node.type} with {len(parts)} parts")
        return parts[0]

    def find_field(self, node: Node, name: str) -> Node | None:
        """The child in a field of the grammar, if the node has one."""
        self.step_budget.spend(node.named_child_count // CHILDREN_PER_STEP)
        return node.child_by_field_name(name)

    def field(self, node: Node, name: str) -> Node:
        """The child in a field of the grammar. Raises UnsupportedScriptError if there is none."""
        child = self.find_field(node, name)
        if child is None:
            raise UnsupportedScriptError(f"{node.type} without {name}")
        return child


def parse(source: str, step_budget: StepBudget) -> SyntaxTree:
    """Parse a script. Raises UnreadableScriptError for a syntax error or too much to parse."""
    if len(source) > MAX_SOURCE:
        raise UnreadableScriptError(f"expected at most {MAX_SOURCE} characters, got {len(source)}")
    encoded = source.encode(errors="replace")

    def read_chunk(offset: int, _point: object) -> bytes:
        # A token that the lexer tries to read again and again, to the end of the source, costs steps as well.
        return encoded[offset : offset + CHUNK_BYTES] if step_budget.try_spend(1) else b""

    def should_stop(_offset: int, has_error: bool) -> bool:  # noqa: FBT001 - tree-sitter's signature
        return has_error or not step_budget.try_spend(STEPS_PER_PARSER_CALLBACK)

    try:
        # From bytes instead of `read_chunk`, tree-sitter would parse without asking whether to stop.
        tree = Parser(JAVASCRIPT).parse(read_chunk, progress_callback=should_stop)
    except ValueError as error:
        raise UnreadableScriptError("a syntax error, or too much to parse") from error
    step_budget.spend(0)  # raises if `read_chunk` withheld the rest of the source
    if tree.root_node.has_error:
        raise UnreadableScriptError("a syntax error")
    return SyntaxTree(tree.root_node, encoded, step_budget)


def read_number(literal: str) -> int | float:
    """The value of a decimal or hexadecimal number literal. Raises UnsupportedScriptError for other forms."""
    if len(literal) > MAX_NUMBER_LENGTH:
        raise UnsupportedScriptError("a number that cannot be read")
    try:
        number = float(int(literal, 16)) if literal[:2] in ("0x", "0X") else float(literal)
    except (ValueError, OverflowError) as error:
        raise UnsupportedScriptError("a number that cannot be read") from error
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def unescape(raw: str) -> str:
    """The text of a string or template literal. Lone surrogates, which no database can store, become U+FFFD."""
    if "\\" not in raw:
        return raw
    unescaped = ESCAPE.sub(_unescape_match, raw)
    return unescaped.encode("utf-16", errors="surrogatepass").decode("utf-16", errors="replace")


def _unescape_match(match: re.Match[str]) -> str:
    """The text that a match of ESCAPE stands for: "" for an escaped line end, U+FFFD for NUL or an invalid number."""
    digits = match[1] or match[2] or match[3]
    if digits:
        number = int(digits, 16)
        return chr(number) if 0 < number < 0x110000 else "\ufffd"  # noqa: PLR2004 - the end of Unicode
    char = match[4]
    if char in ("\n", "\r\n", "\u2028", "\u2029"):
        return ""
    return "\ufffd" if char == "0" else PLAIN_ESCAPES.get(char, char)
