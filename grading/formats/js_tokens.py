"""Tokenizes a small JavaScript source. Its size, token count and nesting are limited; nothing is ever run."""

import re
from dataclasses import dataclass, field
from typing import Final

MAX_SOURCE: Final = 400_000
MAX_TOKENS: Final = 40_000
MAX_DEPTH: Final = 40
MAX_NUMBER_LENGTH: Final = 40

SPACE: Final = re.compile(r"(?:[\s\ufeff]|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")
NAME: Final = re.compile(r"[A-Za-z_$][\w$]*")
NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
STRING: Final = re.compile(r"\"(?:[^\"\\\n]|\\[\s\S])*\"|'(?:[^'\\\n]|\\[\s\S])*'")
TEMPLATE_TEXT: Final = re.compile(r"(?:[^`\\$]|\\[\s\S]|\$(?!\{))*")
REGEX: Final = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
PUNCTUATION: Final = re.compile(
    r"\.\.\.|=>|[=!]==|\*\*=|>>>=|<<=|>>=|&&=|\|\|=|\?\?=|\?\.(?!\d)|\?\?|&&|\|\||[=!]=|>>>|<<|>>|[<>]=|\*\*|\+\+|--"
    r"|[-+*/%&|^]=|[-+*/%=<>!&|^~?:;,.()\[\]{}]"
)
ESCAPE: Final = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|[\s\S]))", re.ASCII)
PLAIN_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": ""}
CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
# After a closing bracket a slash divides; after other punctuation it begins a regular expression.
CLOSING_BRACKETS: Final = frozenset(CLOSING.values())
WORDS_BEFORE_REGEX: Final = frozenset({"return", "typeof", "case", "in", "of", "await", "void", "throw"})


class UnreadableScriptError(ValueError):
    """The script uses unsupported syntax or exceeds a limit; the message says where or which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """`kind` is name, number, string, template, regex, punctuation or end; `value` is its text, of strings unescaped.

    A template's `chunks` are (unescaped, raw) texts; its `holes` are the code between them, one fewer. `number` is the
    value of a number. `after_newline`: there is a line break between the previous token and this one.
    """

    kind: str
    value: str = ""
    number: float = 0.0
    after_newline: bool = False
    chunks: tuple[tuple[str, str], ...] = ()
    holes: tuple["Code", ...] = ()


@dataclass(frozen=True, slots=True)
class Code:
    """Tokens, the last of kind `end`; `closing` maps each opening bracket's index to its closing bracket's."""

    tokens: tuple[Token, ...]
    closing: dict[int, int] = field(default_factory=dict)


def tokenize(source: str) -> Code:
    """Tokenize a whole source. Raises UnreadableScriptError."""
    if len(source) > MAX_SOURCE:
        raise UnreadableScriptError(f"expected at most {MAX_SOURCE} characters, got {len(source)}")
    code, _ = _Tokenizer(source).read(0, depth=0, nested=False)
    return code


class _Tokenizer:
    def __init__(self, source: str) -> None:
        self._source = source
        self._count = 0

    def read(self, at: int, *, depth: int, nested: bool) -> tuple[Code, int]:
        """(code, offset after it), from offset `at` to the end or, if `nested` in a template, to its closing brace."""
        if depth > MAX_DEPTH:
            raise UnreadableScriptError("templates nested too deeply")
        source = self._source
        tokens: list[Token] = []
        opened: list[int] = []
        closing: dict[int, int] = {}
        while True:
            skipped = SPACE.match(source, at)
            start = skipped.end() if skipped else at
            newline = "\n" in source[at:start]
            if source.startswith("/*", start):
                raise UnreadableScriptError("a comment that is not closed")
            if start >= len(source):
                if nested or opened:
                    raise UnreadableScriptError("a bracket that is not closed")
                return Code((*tokens, Token(kind="end", after_newline=True)), closing), start
            if nested and source[start] == "}" and not opened:
                return Code((*tokens, Token(kind="end")), closing), start + 1
            token, at = self._token(start, tokens[-1] if tokens else None, newline=newline, depth=depth)
            if token.kind == "punctuation" and token.value in CLOSING:
                opened.append(len(tokens))
                if len(opened) > MAX_DEPTH:
                    raise UnreadableScriptError("brackets nested too deeply")
            elif token.kind == "punctuation" and token.value in CLOSING_BRACKETS:
                if not opened or CLOSING[tokens[opened[-1]].value] != token.value:
                    raise UnreadableScriptError(f"an unexpected {token.value}")
                closing[opened.pop()] = len(tokens)
            tokens.append(token)
            self._count += 1
            if self._count > MAX_TOKENS:
                raise UnreadableScriptError(f"more than {MAX_TOKENS} tokens")

    def _token(self, start: int, before: Token | None, *, newline: bool, depth: int) -> tuple[Token, int]:
        """(the token at `start`, the offset after it); `before` is the previous token."""
        source, first = self._source, self._source[start]
        if first == "`":
            return self._template(start + 1, newline=newline, depth=depth)
        number = 0.0
        if match := NAME.match(source, start):
            kind, value = "name", match[0]
        elif first.isdigit() or (first == "." and source[start + 1 : start + 2].isdigit()):
            match = NUMBER.match(source, start)
            if match is None or len(match[0]) > MAX_NUMBER_LENGTH:
                raise UnreadableScriptError("a number that cannot be read")
            kind, value = "number", match[0].replace("_", "")
            try:
                number = float(int(value, 16)) if value[:2] in ("0x", "0X") else float(value)
            except (ValueError, OverflowError) as error:
                raise UnreadableScriptError("a number that cannot be read") from error
        elif first in "\"'":
            if not (match := STRING.match(source, start)):
                raise UnreadableScriptError("a string that is not closed")
            kind, value = "string", unescape_literal(match[0][1:-1])
        elif first == "/" and _may_begin_regex(before) and (match := REGEX.match(source, start)):
            kind, value = "regex", match[0]
        elif match := PUNCTUATION.match(source, start):
            kind, value = "punctuation", match[0]
        else:
            raise UnreadableScriptError(f"an unexpected character {first!r}")
        return Token(kind=kind, value=value, number=number, after_newline=newline), match.end()

    def _template(self, at: int, *, newline: bool, depth: int) -> tuple[Token, int]:
        """(the template whose text begins at `at`, the offset after it)."""
        chunks: list[tuple[str, str]] = []
        holes: list[Code] = []
        while True:
            match = TEMPLATE_TEXT.match(self._source, at)
            raw, at = (match[0], match.end()) if match else ("", at)
            chunks.append((unescape_literal(raw), raw))
            if at >= len(self._source):
                raise UnreadableScriptError("a template that is not closed")
            if self._source[at] == "`":
                token = Token(kind="template", chunks=tuple(chunks), holes=tuple(holes), after_newline=newline)
                return token, at + 1
            hole, at = self.read(at + 2, depth=depth + 1, nested=True)
            holes.append(hole)


def _may_begin_regex(before: Token | None) -> bool:
    if before is None:
        return True
    if before.kind == "name":
        return before.value in WORDS_BEFORE_REGEX
    return before.kind == "punctuation" and before.value not in CLOSING_BRACKETS


def unescape_literal(raw: str) -> str:
    """The text of a string or template literal. Lone surrogates, which no database can store, become U+FFFD."""
    if "\\" not in raw:
        return raw
    unescaped = ESCAPE.sub(_unescape, raw)
    return unescaped.encode("utf-16", errors="surrogatepass").decode("utf-16", errors="replace")


def _unescape(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    if digits:
        number = int(digits, 16)
        return chr(number) if 0 < number < 0x110000 else "\ufffd"  # noqa: PLR2004 - the end of Unicode
    char = match[4]
    if char in ("\n", "\r\n", "\u2028", "\u2029"):
        return ""
    return "\ufffd" if char == "0" else PLAIN_ESCAPES.get(char, char)
