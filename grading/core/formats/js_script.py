"""What a small JavaScript program calls and prints, read without running it.

Codex's code mode writes its tool calls as scripts: `const r = await tools.exec_command({cmd: "…"}); text(r.output)`. A
script is walked once in the order of its statements, with values for what is written down in it and `Unknown` for the
rest. What cannot be parsed, or exceeds the bounds, raises UnreadableScriptError; a value is never guessed.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from grading.core.formats.js_tokens import Code, Token, UnreadableScriptError, tokenize

MAX_CALLS: Final = 100
MAX_ITEMS: Final = 400
MAX_STEPS: Final = 20_000
MAX_SIZE: Final = 2_000
MAX_NESTING: Final = 60
MAX_TEXT: Final = 1_000_000

PRECEDENCE: Final = {
    operator: level
    for level, operators in enumerate(
        (
            ("??", "||"),
            ("&&",),
            ("|",),
            ("^",),
            ("&",),
            ("==", "!=", "===", "!=="),
            ("<", ">", "<=", ">=", "in", "instanceof"),
            ("<<", ">>", ">>>"),
            ("+", "-"),
            ("*", "/", "%"),
            ("**",),
        )
    )
    for operator in operators
}
ASSIGNMENTS: Final = frozenset(
    "= += -= *= /= %= **= <<= >>= >>>= &= |= ^= &&= ||= ??=".split()
)
SHORT_CIRCUITS: Final = ("??", "||", "&&")
PREFIXES: Final = frozenset({"!", "-", "+", "~", "typeof", "void", "delete"})
LITERALS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None, "undefined": None}
UNSUPPORTED: Final = frozenset(
    "case class debugger default do export import super switch this throw var with yield".split()
) - {"var", "throw", "do"}
CHANGING: Final = ("Object.assign", "Object.define", "Object.setPrototypeOf", "Reflect.")
MUTATORS: Final = frozenset("copyWithin fill pop reverse shift sort splice unshift".split())


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that is not written down. `calls`: the tool calls whose results went into it."""

    calls: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool call gives back, or a field of it: `path` is the names and indices that lead to it."""

    call: int
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Joined:
    """Text put together of known text and of parts that are not."""

    parts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Json:
    """The JSON text of a value that holds results."""

    value: Any


@dataclass(frozen=True, slots=True)
class Global:
    """Something of the environment, by its dotted name."""

    name: str


@dataclass(slots=True)
class Scope:
    names: dict[str, Any]
    parent: "Scope | None" = None
    certain: int = 0
    """How many uncertain branches enclose the scope."""

    def holder(self, name: str) -> "Scope | None":
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.parent
        return scope


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    code: Code
    parameters: tuple[int, int]
    body: tuple[int, int]
    is_block: bool
    scope: Scope


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A member of a value, to be called."""

    owner: Any
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCall:
    """A call of a tool; its argument is JSON-like, with Unknown (or Result, Joined, Json) where it is not known."""

    name: str
    argument: Any = None


@dataclass(slots=True, kw_only=True)
class Script:
    """`items` are the values printed, one output item each; None where it is not certain which are printed.

    `tampered`: calls whose results the script changed, so that what it prints of them says nothing.
    """

    calls: list[ScriptCall] = field(default_factory=list)
    items: list[Any] | None = field(default_factory=list)
    tampered: frozenset[int] = frozenset()


class Allowance:
    """The steps that may yet be spent on reading: of one script at most MAX_STEPS, of all scripts of a log `total`."""

    def __init__(self, total: int = 2_000_000) -> None:
        self._total = total
        self._script = 0

    def begin(self) -> None:
        self._script = MAX_STEPS

    def spend(self, steps: int) -> None:
        self._total -= steps
        self._script -= steps
        if self._script < 0 or self._total < 0:
            raise UnreadableScriptError("more steps than are followed")


def read_script(source: str, allowance: Allowance | None = None) -> Script:
    """What a script calls and prints. Raises UnreadableScriptError where it cannot be read whole."""
    allowance = allowance or Allowance()
    allowance.begin()
    allowance.spend(len(source) // 1000)
    code = tokenize(source)
    walker = _Walker(allowance)
    try:
        walker.block(code, 0, len(code.tokens) - 1, Scope({}))
    except RecursionError as error:
        raise UnreadableScriptError("nested too deeply") from error
    except _Left:
        pass
    return walker.script


def calls_in(value: Any) -> frozenset[int]:
    """The tool calls whose results a value holds."""
    match value:
        case Unknown():
            return value.calls
        case Result():
            return frozenset({value.call})
        case Joined():
            return frozenset().union(*map(calls_in, value.parts))
        case Json():
            return calls_in(value.value)
        case Method():
            return calls_in(value.owner)
        case list():
            return frozenset().union(*map(calls_in, value))
        case dict():
            return frozenset().union(*map(calls_in, value.values()))
    return frozenset()


def is_plain(value: Any) -> bool:
    """Whether a value is written down whole."""
    match value:
        case list():
            return all(map(is_plain, value))
        case dict():
            return all(map(is_plain, value.values()))
    return value is None or isinstance(value, str | bool | int | float)


class _Left(Exception):  # noqa: N818 - not an error: a script or function that ended early
    """`return`, `throw` or `exit()`."""

    def __init__(self, value: Any = None) -> None:
        self.value = value
        super().__init__()


@dataclass(slots=True)
class _Cursor:
    code: Code
    at: int
    end: int

    @property
    def token(self) -> Token:
        return self.code.tokens[self.at] if self.at < self.end else self.code.tokens[-1]

    def peek(self, ahead: int = 1) -> Token:
        return self.code.tokens[self.at + ahead] if self.at + ahead < self.end else self.code.tokens[-1]

    def sees(self, *values: str) -> bool:
        """Whether the next token is one of these punctuation marks or words."""
        return self.token.kind in ("punctuation", "name") and self.token.value in values

    def take(self) -> Token:
        token = self.token
        self.at += 1
        return token

    def skip(self, value: str) -> bool:
        if self.sees(value):
            self.at += 1
            return True
        return False

    def expect(self, value: str) -> None:
        if not self.skip(value):
            raise UnreadableScriptError(f"expected {value!r}, got {self.token.value[:20]!r}")

    def closing(self) -> int:
        """Where the bracket that is next closes."""
        found = self.code.closing.get(self.at)
        if found is None or found >= self.end:
            raise UnreadableScriptError("expected an opening bracket")
        return found


@dataclass(slots=True)
class _Made:
    """What is known of a list or object: it is kept, so that its identity stays its own."""

    value: Any
    size: int
    calls: frozenset[int]
    is_part: bool = False


class _Walker:
    def __init__(self, allowance: "Allowance") -> None:
        self.script = Script()
        self._allowance = allowance
        self._made: dict[int, _Made] = {}
        self._depth = 0
        self._doubt = 0
        self._function_doubt = 0

    # Statements

    def block(self, code: Code, start: int, end: int, scope: Scope) -> None:
        self._declare_functions(code, start, end, scope)
        cursor = _Cursor(code, start, end)
        while cursor.at < end:
            self._statement(cursor, scope)

    def _declare_functions(self, code: Code, start: int, end: int, scope: Scope) -> None:
        """Functions may be called above where they stand."""
        at = start
        while at < end:
            token = code.tokens[at]
            if token.kind == "name" and token.value == "function" and code.tokens[at + 1].kind == "name":
                cursor = _Cursor(code, at + 1, end)
                name = cursor.take().value
                scope.names[name] = self._function(cursor, scope)
                at = cursor.at
            else:
                at = code.closing.get(at, at) + 1

    def _statement(self, cursor: _Cursor, scope: Scope) -> None:
        self._step()
        token = cursor.token
        if token.kind == "punctuation" and token.value == ";":
            cursor.at += 1
        elif token.kind == "punctuation" and token.value == "{":
            end = cursor.closing()
            self._inner(cursor.code, cursor.at + 1, end, scope)
            cursor.at = end + 1
        elif token.kind == "name" and (handler := self._keyword(cursor)):
            handler(cursor, scope)
        else:
            self._expression(cursor, scope)
            self._end_statement(cursor)

    def _keyword(self, cursor: _Cursor) -> Callable[[_Cursor, Scope], None] | None:
        word = cursor.token.value
        if word == "async" and cursor.peek().value == "function":
            return self._skip_function
        if word in UNSUPPORTED:
            raise UnreadableScriptError(f"{word} is not read")
        return {
            "break": self._leave_loop,
            "const": self._declare,
            "continue": self._leave_loop,
            "do": self._do,
            "for": self._for,
            "function": self._skip_function,
            "if": self._if,
            "let": self._declare,
            "return": self._return,
            "throw": self._return,
            "try": self._try,
            "var": self._declare,
            "while": self._while,
        }.get(word)

    @staticmethod
    def _end_statement(cursor: _Cursor) -> None:
        if not cursor.skip(";") and cursor.at < cursor.end and not cursor.token.after_newline:
            raise UnreadableScriptError(f"expected the end of a statement, got {cursor.token.value[:20]!r}")

    def _inner(self, code: Code, start: int, end: int, scope: Scope, **names: Any) -> None:
        self.block(code, start, end, Scope(dict(names), scope, self._doubt))

    def _perhaps(self, cursor: _Cursor, scope: Scope) -> None:
        """A statement that may or may not be carried out."""
        self._doubtful(lambda: self._statement(cursor, Scope({}, scope, self._doubt)))

    def _declare(self, cursor: _Cursor, scope: Scope) -> None:
        cursor.at += 1
        while True:
            pattern = (cursor.at, self._pattern_end(cursor))
            cursor.at = pattern[1]
            value = self._assignment(cursor, scope) if cursor.skip("=") else None
            self._bind(cursor.code, pattern, value, scope)
            if not cursor.skip(","):
                break
        self._end_statement(cursor)

    def _skip_function(self, cursor: _Cursor, scope: Scope) -> None:
        while not cursor.sees("("):
            cursor.at += 1
            self._step()
            if cursor.at >= cursor.end:
                raise UnreadableScriptError("a function without parameters")
        cursor.at = cursor.closing() + 1
        cursor.at = cursor.closing() + 1
        del scope

    def _if(self, cursor: _Cursor, scope: Scope) -> None:
        cursor.at += 1
        self._parenthesis(cursor, scope)
        self._perhaps(cursor, scope)
        if cursor.skip("else"):
            self._perhaps(cursor, scope)

    def _parenthesis(self, cursor: _Cursor, scope: Scope) -> Any:
        end = cursor.closing()
        inner = _Cursor(cursor.code, cursor.at + 1, end)
        value = self._expression(inner, scope)
        self._finished(inner)
        cursor.at = end + 1
        return value

    @staticmethod
    def _finished(cursor: _Cursor) -> None:
        if cursor.at < cursor.end:
            raise UnreadableScriptError(f"an unexpected {cursor.token.value[:20]!r}")

    def _while(self, cursor: _Cursor, scope: Scope) -> None:
        cursor.at += 1
        self._forget_assigned(cursor.code, cursor.at, self._loop_end(cursor), scope)
        self._parenthesis(cursor, scope)
        self._perhaps(cursor, scope)

    def _do(self, cursor: _Cursor, scope: Scope) -> None:
        cursor.at += 1
        end = cursor.closing()
        self._forget_assigned(cursor.code, cursor.at, end, scope)
        self._perhaps(cursor, scope)
        cursor.expect("while")
        self._parenthesis(cursor, scope)
        self._end_statement(cursor)

    def _loop_end(self, cursor: _Cursor) -> int:
        """Where a loop's body ends, roughly: names assigned in it are forgotten, and one too many does no harm."""
        after = cursor.closing() + 1
        return cursor.code.closing.get(after, min(cursor.end, after + 200))

    def _forget_assigned(self, code: Code, start: int, end: int, scope: Scope) -> None:
        """What a loop assigns is not known in any of its turns."""
        tokens = code.tokens
        for at in range(start, min(end, len(tokens) - 1)):
            if tokens[at].kind != "name":
                continue
            following, before = tokens[at + 1].value, tokens[at - 1].value if at else ""
            changes = following in ASSIGNMENTS or following in ("++", "--") or before in ("++", "--")
            if changes and tokens[at + 1].kind == "punctuation" and before not in (".", "const", "let", "var"):
                self._forget(tokens[at].value, scope)
            elif following == "." and tokens[at + 2].value in (MUTATORS | {"push"}):
                self._forget(tokens[at].value, scope)

    def _forget(self, name: str, scope: Scope) -> None:
        if (holder := scope.holder(name)) is not None:
            holder.names[name] = Unknown(self._calls(holder.names[name]))

    def _for(self, cursor: _Cursor, scope: Scope) -> None:
        cursor.at += 1
        cursor.skip("await")
        end = cursor.closing()
        head = _Cursor(cursor.code, cursor.at + 1, end)
        if head.sees("const", "let", "var"):
            head.at += 1
        pattern = (head.at, self._pattern_end(head)) if not head.sees(";") else (head.at, head.at)
        head.at = pattern[1]
        if head.sees("of", "in"):
            is_of = head.take().value == "of"
            listed = self._expression(head, scope)
            self._finished(head)
            cursor.at = end + 1
            self._each(cursor, pattern, listed if is_of else Unknown(self._calls(listed)), scope)
            return
        self._forget_assigned(cursor.code, cursor.at, self._loop_end(cursor), scope)
        names = [token.value for token in cursor.code.tokens[cursor.at : end] if token.kind == "name"]
        inner = Scope(dict.fromkeys((name for name in names if scope.holder(name) is None), Unknown()), scope, 0)
        for name in ("tools", "text", *LITERALS, "let", "const", "var"):
            inner.names.pop(name, None)
        cursor.at = end + 1
        self._perhaps(cursor, inner)

    def _each(self, cursor: _Cursor, pattern: tuple[int, int], listed: Any, scope: Scope) -> None:
        body = cursor.at
        if not isinstance(listed, list) or not listed:
            self._forget_assigned(cursor.code, body, cursor.code.closing.get(body, cursor.end), scope)
            inner = Scope({}, scope, self._doubt)
            self._bind(cursor.code, pattern, Unknown(self._calls(listed)), inner)
            self._perhaps(cursor, inner)
            return
        for value in list(listed):
            cursor.at = body
            inner = Scope({}, scope, self._doubt)
            self._bind(cursor.code, pattern, value, inner)
            self._statement(cursor, inner)

    def _leave_loop(self, cursor: _Cursor, scope: Scope) -> None:
        """Later turns may not come: which items are printed is not certain."""
        del scope
        if not self._doubt:
            raise UnreadableScriptError("a loop left without a condition")
        cursor.at += 1
        self.script.items = None
        self._end_statement(cursor)

    def _return(self, cursor: _Cursor, scope: Scope) -> None:
        cursor.at += 1
        value = None
        if not cursor.sees(";", "}") and cursor.at < cursor.end and not cursor.token.after_newline:
            value = self._expression(cursor, scope)
        self._end_statement(cursor)
        if self._doubt == self._function_doubt:
            raise _Left(value)
        self.script.items = None

    def _try(self, cursor: _Cursor, scope: Scope) -> None:
        cursor.at += 1
        self._statement(cursor, scope)
        if cursor.skip("catch"):
            inner = Scope({}, scope, self._doubt)
            if cursor.sees("("):
                end = cursor.closing()
                self._bind(cursor.code, (cursor.at + 1, end), Unknown(), inner)
                cursor.at = end + 1
            self._perhaps(cursor, inner)
        if cursor.skip("finally"):
            self._statement(cursor, scope)

    # Names and patterns

    def _pattern_end(self, cursor: _Cursor) -> int:
        if cursor.sees("[", "{"):
            return cursor.closing() + 1
        if cursor.token.kind != "name":
            raise UnreadableScriptError(f"expected a name, got {cursor.token.value[:20]!r}")
        return cursor.at + 1

    def _bind(self, code: Code, pattern: tuple[int, int], value: Any, scope: Scope) -> None:
        """Gives the names of a pattern (`a`, `[a, b]`, `{a, b: c}`) their parts of a value."""
        self._step()
        cursor = _Cursor(code, *pattern)
        if cursor.at >= cursor.end:
            return
        if cursor.token.kind == "name":
            scope.names[cursor.take().value] = value
            if cursor.at < cursor.end:
                raise UnreadableScriptError("a pattern that is not read")
            return
        is_list = cursor.sees("[")
        cursor = _Cursor(code, cursor.at + 1, cursor.closing())
        index = 0
        while cursor.at < cursor.end:
            if cursor.skip(","):
                index += 1
                continue
            if cursor.skip("..."):
                end = self._pattern_end(cursor)
                self._bind(code, (cursor.at, end), Unknown(self._calls(value)), scope)
            elif is_list:
                end = self._pattern_end(cursor)
                self._bind(code, (cursor.at, end), self._default(cursor, end, self._at_index(value, index)), scope)
                continue
            else:
                self._bind_field(cursor, value, scope)
                continue
            cursor.at = end

    def _bind_field(self, cursor: _Cursor, value: Any, scope: Scope) -> None:
        token = cursor.take()
        if token.kind not in ("name", "string"):
            raise UnreadableScriptError("a pattern that is not read")
        part = self._member(value, token.value)
        if cursor.skip(":"):
            end = self._pattern_end(cursor)
            target = (cursor.at, end)
        else:
            target = (cursor.at - 1, cursor.at)
        cursor.at = target[1]
        self._bind(cursor.code, target, self._default(cursor, target[1], part), scope)
        cursor.skip(",")

    def _default(self, cursor: _Cursor, end: int, value: Any) -> Any:
        """A part of a pattern, whose default makes it uncertain where it is missing."""
        cursor.at = end
        if not cursor.skip("="):
            return value
        default = self._assignment(cursor, Scope({}))
        return value if value is not None else default

    def _at_index(self, value: Any, index: int) -> Any:
        if isinstance(value, list):
            return value[index] if index < len(value) else None
        return Unknown(self._calls(value))

    def _lookup(self, name: str, scope: Scope) -> Any:
        if name in LITERALS:
            return LITERALS[name]
        holder = scope.holder(name)
        return Global(name) if holder is None else holder.names[name]

    def _assign(self, name: str, value: Any, scope: Scope) -> None:
        holder = scope.holder(name)
        if holder is None:
            scope.names[name] = Unknown(self._calls(value))
            return
        if self._doubt > holder.certain:
            value = Unknown(self._calls(value) | self._calls(holder.names[name]))
        holder.names[name] = value

    # Expressions

    def _expression(self, cursor: _Cursor, scope: Scope) -> Any:
        value = self._assignment(cursor, scope)
        while cursor.skip(","):
            value = self._assignment(cursor, scope)
        return value

    def _assignment(self, cursor: _Cursor, scope: Scope) -> Any:
        self._step()
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise UnreadableScriptError("nested too deeply")
        try:
            return self._assignment_or_arrow(cursor, scope)
        finally:
            self._depth -= 1

    def _assignment_or_arrow(self, cursor: _Cursor, scope: Scope) -> Any:
        if (function := self._arrow(cursor, scope)) is not None:
            return function
        first, start = cursor.token, cursor.at
        if first.value in ("[", "{") and cursor.code.closing.get(start) is not None:
            after = cursor.code.closing[start] + 1
            if after < cursor.end and cursor.code.tokens[after].value == "=":
                cursor.at = after + 1
                value = self._assignment(cursor, scope)
                self._bind(cursor.code, (start, after), Unknown(self._calls(value)), scope)
                return value
        value = self._conditional(cursor, scope)
        if not (cursor.token.kind == "punctuation" and cursor.token.value in ASSIGNMENTS):
            return value
        operator, is_name = cursor.take().value, cursor.at - start == 2  # noqa: PLR2004 - the name and the operator
        given = self._assignment(cursor, scope)
        if first.kind != "name":
            raise UnreadableScriptError("an assignment to what is no name")
        if not is_name:
            self._tamper(value, self._lookup(first.value, scope))
            self._assign(first.value, Unknown(self._calls(given) | self._calls(self._lookup(first.value, scope))), scope)
            return given
        result = given if operator == "=" else self._add(value, given) if operator == "+=" else Unknown(self._calls(given))
        self._assign(first.value, result, scope)
        return result

    def _arrow(self, cursor: _Cursor, scope: Scope) -> Function | None:
        at = cursor.at
        if cursor.sees("async") and not cursor.peek().after_newline and cursor.peek().kind in ("name", "punctuation"):
            at += 1
        token = cursor.code.tokens[at] if at < cursor.end else cursor.code.tokens[-1]
        if token.kind == "name" and token.value not in ("function", "await"):
            parameters, after = (at, at + 1), at + 1
        elif token.kind == "punctuation" and token.value == "(" and at in cursor.code.closing:
            parameters, after = (at + 1, cursor.code.closing[at]), cursor.code.closing[at] + 1
        else:
            return None
        if after >= cursor.end or cursor.code.tokens[after].value != "=>":
            return None
        cursor.at = after + 1
        if cursor.sees("{"):
            body, is_block = (cursor.at + 1, cursor.closing()), True
            cursor.at = body[1] + 1
        else:
            body, is_block = (cursor.at, self._expression_end(cursor)), False
            cursor.at = body[1]
        return Function(cursor.code, parameters, body, is_block, scope)

    def _expression_end(self, cursor: _Cursor) -> int:
        """Where an arrow's expression ends: at a comma, semicolon or bracket of its own level, or at a new statement."""
        at = cursor.at
        while at < cursor.end:
            token = cursor.code.tokens[at]
            if token.kind == "punctuation" and token.value in (",", ";", ")", "]", "}"):
                break
            is_new = at > cursor.at and token.after_newline and token.kind in ("name", "template", "string")
            before = cursor.code.tokens[at - 1]
            if is_new and not (before.kind == "punctuation" and before.value not in (")", "]", "}")):
                break
            at = cursor.code.closing.get(at, at) + 1
            self._step()
        return at

    def _function(self, cursor: _Cursor, scope: Scope) -> Function:
        """From the parameters on."""
        end = cursor.closing()
        parameters = (cursor.at + 1, end)
        cursor.at = end + 1
        if not cursor.sees("{"):
            raise UnreadableScriptError("a function without a body")
        body = (cursor.at + 1, cursor.closing())
        cursor.at = body[1] + 1
        return Function(cursor.code, parameters, body, True, scope)  # noqa: FBT003

    def _conditional(self, cursor: _Cursor, scope: Scope) -> Any:
        value = self._binary(cursor, scope, 0)
        if not cursor.skip("?"):
            return value
        left = self._doubtful(lambda: self._assignment(cursor, scope))
        cursor.expect(":")
        right = self._doubtful(lambda: self._assignment(cursor, scope))
        return Unknown(self._calls(value) | self._calls(left) | self._calls(right))

    def _doubtful(self, read: Callable[[], Any]) -> Any:
        """What may or may not be carried out: what it prints is not certain (`_print`), nor what it assigns."""
        self._doubt += 1
        try:
            return read()
        finally:
            self._doubt -= 1

    def _binary(self, cursor: _Cursor, scope: Scope, level: int) -> Any:
        left = self._unary(cursor, scope)
        while (found := PRECEDENCE.get(cursor.token.value)) is not None and found >= level:
            if cursor.token.kind not in ("punctuation", "name"):
                break
            operator = cursor.take().value
            following = found if operator == "**" else found + 1
            if operator in SHORT_CIRCUITS:
                right = self._doubtful(lambda level=following: self._binary(cursor, scope, level))  # type: ignore[misc]
                left = Unknown(self._calls(left) | self._calls(right))
                continue
            right = self._binary(cursor, scope, following)
            left = self._add(left, right) if operator == "+" else Unknown(self._calls(left) | self._calls(right))
        return left

    def _add(self, left: Any, right: Any) -> Any:
        numbers = [value for value in (left, right) if isinstance(value, int | float) and not isinstance(value, bool)]
        if len(numbers) == 2:  # noqa: PLR2004
            return left + right
        if any(isinstance(value, str | Joined | Json) for value in (left, right)):
            return self._joined([left, right])
        return Unknown(self._calls(left) | self._calls(right))

    def _joined(self, values: list[Any]) -> Any:
        """Text of several values, one after the other."""
        parts: list[Any] = []
        for value in values:
            for part in value.parts if isinstance(value, Joined) else (self._as_text(value),):
                if isinstance(part, str) and parts and isinstance(parts[-1], str):
                    parts[-1] += part
                else:
                    parts.append(part)
        if sum(len(part) for part in parts if isinstance(part, str)) > MAX_TEXT or len(parts) > MAX_ITEMS:
            raise UnreadableScriptError("a text that grows too long")
        if all(isinstance(part, str) for part in parts):
            return "".join(parts)
        return Joined(tuple(parts))

    def _unary(self, cursor: _Cursor, scope: Scope) -> Any:
        self._step()
        token = cursor.token
        if token.kind in ("punctuation", "name"):
            if token.value == "await":
                cursor.at += 1
                return self._nested(cursor, scope)
            if token.value in PREFIXES:
                cursor.at += 1
                value = self._nested(cursor, scope)
                if token.value == "delete":
                    self._tamper(value)
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                return -value if token.value == "-" and is_number else Unknown(self._calls(value))
            if token.value in ("++", "--"):
                cursor.at += 1
                name = cursor.token
                value = self._nested(cursor, scope)
                if name.kind == "name":
                    self._assign(name.value, Unknown(self._calls(value)), scope)
                return Unknown(self._calls(value))
        return self._postfix(cursor, scope)

    def _nested(self, cursor: _Cursor, scope: Scope) -> Any:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise UnreadableScriptError("nested too deeply")
        try:
            return self._unary(cursor, scope)
        finally:
            self._depth -= 1

    def _postfix(self, cursor: _Cursor, scope: Scope) -> Any:
        first = cursor.token
        value = self._primary(cursor, scope)
        while True:
            token = cursor.token
            if token.kind == "template" and isinstance(value, Global) and value.name == "String.raw":
                value = self._template(cursor.take(), scope, raw=True)
            elif token.kind == "template":
                raise UnreadableScriptError("a tagged template")
            elif token.kind != "punctuation":
                return value
            elif token.value in (".", "?."):
                cursor.at += 1
                if cursor.sees("(", "["):
                    continue
                name = cursor.take()
                if name.kind != "name":
                    raise UnreadableScriptError("expected a member's name")
                value = self._member(value, name.value)
            elif token.value == "[":
                value = self._index(value, self._bracket(cursor, scope))
            elif token.value == "(":
                value = self._call(value, self._arguments(cursor, scope))
            elif token.value in ("++", "--") and not token.after_newline:
                cursor.at += 1
                if first.kind == "name":
                    self._assign(first.value, Unknown(self._calls(value)), scope)
                return Unknown(self._calls(value))
            else:
                return value

    def _bracket(self, cursor: _Cursor, scope: Scope) -> Any:
        end = cursor.closing()
        inner = _Cursor(cursor.code, cursor.at + 1, end)
        value = self._expression(inner, scope)
        self._finished(inner)
        cursor.at = end + 1
        return value

    def _arguments(self, cursor: _Cursor, scope: Scope) -> list[Any]:
        end = cursor.closing()
        values = self._new(list(self._listed(_Cursor(cursor.code, cursor.at + 1, end), scope)))
        cursor.at = end + 1
        return values  # type: ignore[no-any-return]

    def _listed(self, cursor: _Cursor, scope: Scope) -> Iterator[Any]:
        """The values of an array literal or of arguments."""
        while cursor.at < cursor.end:
            if cursor.skip(","):
                continue
            if cursor.skip("..."):
                spread = self._assignment(cursor, scope)
                if isinstance(spread, list):
                    yield from spread
                else:
                    yield Unknown(self._calls(spread))
            else:
                yield self._assignment(cursor, scope)
            if cursor.at < cursor.end:
                cursor.expect(",")

    def _primary(self, cursor: _Cursor, scope: Scope) -> Any:
        token = cursor.token
        if token.kind == "string":
            return cursor.take().value
        if token.kind == "number":
            cursor.at += 1
            return int(token.number) if token.number.is_integer() and abs(token.number) < 2**53 else token.number
        if token.kind == "template":
            return self._template(cursor.take(), scope)
        if token.kind == "regex":
            cursor.at += 1
            return Unknown()
        if token.kind == "name":
            return self._named(cursor, scope)
        if token.value == "(":
            return self._parenthesis(cursor, scope)
        if token.value == "[":
            return self._arguments(cursor, scope)
        if token.value == "{":
            end = cursor.closing()
            value = self._object(_Cursor(cursor.code, cursor.at + 1, end), scope)
            cursor.at = end + 1
            return value
        raise UnreadableScriptError(f"an unexpected {token.value[:20] or token.kind!r}")

    def _named(self, cursor: _Cursor, scope: Scope) -> Any:
        word = cursor.token.value
        if word == "async" and cursor.peek().value == "function":
            cursor.at += 1
            word = "function"
        if word == "function":
            cursor.at += 1
            cursor.skip("*")
            if cursor.token.kind == "name":
                cursor.at += 1
            return self._function(cursor, scope)
        if word == "new":
            cursor.at += 1
            made = self._postfix(cursor, scope)
            return Unknown(self._calls(made))
        if word in UNSUPPORTED:
            raise UnreadableScriptError(f"{word} is not read")
        cursor.at += 1
        return self._lookup(word, scope)

    def _template(self, token: Token, scope: Scope, *, raw: bool = False) -> Any:
        values: list[Any] = [token.chunks[0][raw]]
        for hole, chunk in zip(token.holes, token.chunks[1:], strict=True):
            inner = _Cursor(hole, 0, len(hole.tokens) - 1)
            values.append(self._expression(inner, scope))
            self._finished(inner)
            values.append(chunk[raw])
        return self._joined(values)

    def _object(self, cursor: _Cursor, scope: Scope) -> Any:
        fields: dict[str, Any] = {}
        is_whole = True
        while cursor.at < cursor.end:
            if cursor.skip(","):
                continue
            if cursor.skip("..."):
                spread = self._assignment(cursor, scope)
                is_whole = is_whole and isinstance(spread, dict)
                fields |= spread if isinstance(spread, dict) else {"...": Unknown(self._calls(spread))}
                continue
            self._field(cursor, scope, fields)
            if cursor.at < cursor.end:
                cursor.expect(",")
        return self._new(fields) if is_whole else Unknown(self._calls(fields))

    def _field(self, cursor: _Cursor, scope: Scope, fields: dict[str, Any]) -> None:
        token = cursor.token
        if token.value == "[" and token.kind == "punctuation":
            key = self._bracket(cursor, scope)
            if not isinstance(key, str):
                raise UnreadableScriptError("a key that is not known")
        elif token.kind in ("name", "string", "number"):
            key = cursor.take().value
        else:
            raise UnreadableScriptError(f"an unexpected {token.value[:20]!r}")
        if cursor.skip(":"):
            fields[key] = self._assignment(cursor, scope)
        elif cursor.sees("("):
            fields[key] = self._function(cursor, scope)
        elif token.kind == "name":
            fields[key] = self._lookup(key, scope)
        else:
            raise UnreadableScriptError("a key without a value")

    # What values can do

    def _member(self, value: Any, name: str) -> Any:
        match value:
            case Global():
                return Global(f"{value.name}.{name}"[:200])
            case dict() if name in value:
                return value[name]
            case Result() if len(value.path) < 6 and name not in METHODS:  # noqa: PLR2004
                return Result(value.call, (*value.path, name))
            case list() if name == "length":
                return len(value)
        return Method(value, name)

    def _index(self, value: Any, index: Any) -> Any:
        if isinstance(value, list) and isinstance(index, int) and not isinstance(index, bool):
            return value[index] if 0 <= index < len(value) else None
        if isinstance(value, dict | Global) and isinstance(index, str):
            return self._member(value, index)
        if isinstance(value, Result) and isinstance(index, int | str) and len(value.path) < 6:  # noqa: PLR2004
            return Result(value.call, (*value.path, str(index)))
        return Unknown(self._calls(value) | self._calls(index))

    def _call(self, value: Any, arguments: list[Any]) -> Any:
        self._step()
        match value:
            case Function():
                return self._run(value, arguments)
            case Global():
                return self._global(value.name, arguments)
            case Method():
                return self._method(value.owner, value.name, arguments)
            case Result():
                value = Unknown(self._calls(value))
        self._run_unknown(arguments)
        return Unknown(self._calls(value) | self._calls(arguments))

    def _run(self, function: Function, arguments: list[Any]) -> Any:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise UnreadableScriptError("nested too deeply")
        scope = Scope({}, function.scope, self._doubt)
        cursor = _Cursor(function.code, *function.parameters)
        outer, self._function_doubt = self._function_doubt, self._doubt
        try:
            for given in (*arguments, *[None] * MAX_NESTING):
                if cursor.at >= cursor.end:
                    break
                if cursor.skip("..."):
                    end = self._pattern_end(cursor)
                    self._bind(cursor.code, (cursor.at, end), Unknown(self._calls(arguments)), scope)
                    break
                start, end = cursor.at, self._pattern_end(cursor)
                part = self._default(cursor, end, given)
                self._bind(cursor.code, (start, end), part, scope)
                cursor.skip(",")
            if not function.is_block:
                inner = _Cursor(function.code, *function.body)
                value = self._assignment(inner, scope)
                self._finished(inner)
                return value
            before = self.script.items
            self.block(function.code, *function.body, scope)
            return None if self.script.items is before else Unknown()
        except _Left as left:
            return left.value
        finally:
            self._depth -= 1
            self._function_doubt = outer

    def _run_unknown(self, values: list[Any]) -> None:
        """Functions handed to something unknown may be called, with what is not known."""
        for value in values:
            if isinstance(value, Function):
                self._doubtful(lambda function=value: self._run(function, [Unknown()] * 4))  # type: ignore[misc]

    def _global(self, name: str, arguments: list[Any]) -> Any:
        first = arguments[0] if arguments else None
        if name.startswith("tools."):
            return self._tool(name.removeprefix("tools."), first)
        if name in ("text", "image"):
            return self._print(first if name == "text" else Unknown(self._calls(first)))
        if name == "exit":
            if self._doubt:
                self.script.items = None
                return Unknown()
            raise _Left
        if name in ("eval", "Function"):
            raise UnreadableScriptError("code made by code")
        if name.startswith(CHANGING):
            self._tamper(*arguments[:1])
        if name == "yield_control":
            self.script.items = None
        if name in ("Promise.all", "Promise.resolve", "Array.from", "structuredClone") and len(arguments) == 1:
            return first if name != "Array.from" or isinstance(first, list) else Unknown(self._calls(first))
        if name == "Promise.allSettled" and isinstance(first, list):
            settled = [{"status": Unknown(self._calls(one)), "value": one, "reason": Unknown()} for one in first]
            return self._new(list(map(self._new, settled)))
        if name == "JSON.stringify":
            return self._json_of(arguments)
        if name == "String":
            return self._joined(["", first])
        if name in ("Object.entries", "Object.keys", "Object.values") and isinstance(first, dict):
            wanted = name.removeprefix("Object.")
            if wanted == "entries":
                return self._new([self._new([key, one]) for key, one in first.items()])
            return self._new(list(first) if wanted == "keys" else list(first.values()))
        self._run_unknown(arguments)
        return Unknown(self._calls(arguments))

    def _tool(self, name: str, argument: Any) -> Result:
        if len(self.script.calls) >= MAX_CALLS:
            raise UnreadableScriptError(f"more than {MAX_CALLS} calls")
        self.script.calls.append(ScriptCall(name=name, argument=argument))
        return Result(len(self.script.calls) - 1)

    def _print(self, value: Any) -> Any:
        if self.script.items is not None:
            if self._doubt or len(self.script.items) >= MAX_ITEMS:
                self.script.items = None
            else:
                self.script.items.append(Json(value) if isinstance(value, list | dict) else self._as_text(value))
        return value

    def _method(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        first = arguments[0] if arguments else None
        if name in ("then", "catch", "finally"):
            return self._settled(owner, name, arguments)
        if isinstance(owner, list):
            return self._of_list(owner, name, arguments)
        if isinstance(owner, str) and name in ("trim", "toString", "trimEnd"):
            return {"trim": owner.strip(), "toString": owner, "trimEnd": owner.rstrip()}[name]
        if isinstance(owner, str) and name == "split" and isinstance(first, str) and first and len(arguments) == 1:
            return self._new(owner.split(first))
        if isinstance(owner, int) and name == "toString" and not arguments:
            return str(owner)
        self._run_unknown(arguments)
        return Unknown(self._calls(owner) | self._calls(arguments))

    def _settled(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        if name == "then" and arguments and isinstance(arguments[0], Function):
            return self._run(arguments[0], [owner])
        self._run_unknown(arguments)
        return owner if name != "then" else Unknown(self._calls(owner))

    def _of_list(self, owner: list[Any], name: str, arguments: list[Any]) -> Any:
        first = arguments[0] if arguments else None
        if name in ("map", "forEach", "flatMap") and isinstance(first, Function):
            given = [self._run(first, [one, index, owner]) for index, one in enumerate(list(owner))]
            if name == "flatMap":
                given = [part for one in given for part in (one if isinstance(one, list) else [one])]
            return None if name == "forEach" else self._new(given)
        if name == "entries":
            return self._new([self._new([index, one]) for index, one in enumerate(owner)])
        if name == "join" and (isinstance(first, str) or not arguments):
            between = first if isinstance(first, str) else ","
            return self._joined([part for one in owner for part in (between, "" if one is None else one)][1:] or [""])
        if name == "concat" and all(isinstance(one, list) for one in arguments):
            return self._new([*owner, *(part for one in arguments for part in one)])
        if name == "push" or name in MUTATORS:
            self._change(owner, name, arguments)
            return Unknown()
        self._run_unknown(arguments)
        return Unknown(self._calls(owner) | self._calls(arguments))

    def _tamper(self, *values: Any) -> None:
        """What a script changed in a result, or in the environment, is no longer the harness's word."""
        for value in values:
            self.script.tampered |= self._calls(value)
            if isinstance(value, Global):
                self.script.items = None

    def _change(self, owner: list[Any], name: str, arguments: list[Any]) -> None:
        """Changes a list in place. One that is part of another value is left alone: that would have to change too."""
        if (known := self._made.get(id(owner))) is not None and known.is_part:
            raise UnreadableScriptError("a change inside a value")
        if name == "push":
            owner.extend(Unknown(self._calls(one)) if self._doubt else one for one in arguments)
        else:
            owner[:] = [Unknown(self._calls(owner) | self._calls(arguments))]
        self._new(owner)

    def _step(self, cost: int = 1) -> None:
        self._allowance.spend(cost)

    def _new(self, value: Any) -> Any:
        """Takes note of a list or object just made: how large it is and whose results it holds."""
        parts = list(value.values()) if isinstance(value, dict) else value
        size = 1 + sum(map(self._size, parts))
        if size > MAX_SIZE:
            raise UnreadableScriptError("a value that grows too large")
        for part in parts:
            if (known := self._made.get(id(part))) is not None:
                known.is_part = True
        self._made[id(value)] = _Made(value, size, frozenset[int]().union(*map(self._calls, parts)))
        self._step(len(parts))
        return value

    def _size(self, value: Any) -> int:
        if isinstance(value, Joined):
            return 1 + sum(map(self._size, value.parts))
        if isinstance(value, Json):
            return 1 + self._size(value.value)
        known = self._made.get(id(value))
        return 1 if known is None else known.size

    def _calls(self, value: Any) -> frozenset[int]:
        """As `calls_in`, at a cost that does not grow with the value."""
        match value:
            case list() | dict():
                known = self._made.get(id(value))
                return calls_in(value) if known is None else known.calls
            case Json():
                return self._calls(value.value)
            case Joined():
                return frozenset[int]().union(*map(self._calls, value.parts))
        return calls_in(value)

    def _as_text(self, value: Any) -> Any:
        """A value as a part of text: text where it is known, else itself."""
        match value:
            case str():
                return value
            case bool():
                return "true" if value else "false"
            case int():
                return str(value)
            case Result() | Json() | Joined() | Unknown():
                return value
        return Unknown(self._calls(value))

    def _json_of(self, arguments: list[Any]) -> Any:
        value = arguments[0] if arguments else None
        self._step(self._size(value))
        if not is_plain(value):
            return Json(value) if self._calls(value) else Unknown()
        if len(arguments) == 1:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        indent = arguments[2] if len(arguments) > 2 and isinstance(arguments[2], int) else None  # noqa: PLR2004
        return json.dumps(value, ensure_ascii=False, indent=indent) if indent and indent <= 10 else Unknown()  # noqa: PLR2004


METHODS: Final = frozenset(
    "catch endsWith filter finally find forEach includes indexOf join length map match matchAll replace replaceAll slice "
    "some split startsWith substring then toFixed toString trim trimEnd trimStart at reduce flatMap sort".split()
)

