"""The expressions of a script: calls are noted, functions followed; a value is known where it is written down."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from grading.formats.js_tokens import Code, Token, UnreadableScriptError
from grading.formats.js_values import (
    MAX_CALLS,
    MAX_ITEMS,
    MAX_NESTING,
    MUTATORS,
    Function,
    Global,
    Json,
    Left,
    Method,
    Result,
    ScriptCall,
    Unknown,
    Values,
    VariableScope,
)

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
    ["=", "+=", "-=", "*=", "/=", "%=", "**=", "<<=", ">>=", ">>>=", "&=", "|=", "^=", "&&=", "||=", "??="]
)
SHORT_CIRCUITS: Final = ("??", "||", "&&")
PREFIXES: Final = frozenset({"!", "-", "+", "~", "typeof", "void", "delete"})
UNSUPPORTED: Final = frozenset(
    [
        "case",
        "class",
        "debugger",
        "default",
        "do",
        "export",
        "import",
        "super",
        "switch",
        "this",
        "throw",
        "var",
        "with",
        "yield",
    ]
) - {"var", "throw", "do"}
CHANGING: Final = ("Object.assign", "Object.define", "Object.setPrototypeOf", "Reflect.")


@dataclass(slots=True)
class TokenCursor:
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


class Expressions(Values, ABC):
    @abstractmethod
    def block(self, code: Code, start: int, end: int, scope: VariableScope) -> None:
        """Walks through statements."""

    def _bracketed(self, cursor: TokenCursor, scope: VariableScope) -> Any:
        """The expression in the brackets that are next."""
        end = cursor.closing()
        inner = TokenCursor(cursor.code, cursor.at + 1, end)
        value = self._expression(inner, scope)
        self._finished(inner)
        cursor.at = end + 1
        return value

    @staticmethod
    def _finished(cursor: TokenCursor) -> None:
        if cursor.at < cursor.end:
            raise UnreadableScriptError(f"an unexpected {cursor.token.value[:20]!r}")

    def _pattern_end(self, cursor: TokenCursor) -> int:
        if cursor.sees("[", "{"):
            return cursor.closing() + 1
        if cursor.token.kind != "name":
            raise UnreadableScriptError(f"expected a name, got {cursor.token.value[:20]!r}")
        return cursor.at + 1

    def _bind(self, code: Code, pattern: tuple[int, int], value: Any, scope: VariableScope) -> None:
        """Gives the names of a pattern (`a`, `[a, b]`, `{a, b: c}`) their parts of a value."""
        self._step()
        cursor = TokenCursor(code, *pattern)
        if cursor.at >= cursor.end:
            return
        if cursor.token.kind == "name":
            scope.names[cursor.take().value] = value
            if cursor.at < cursor.end:
                raise UnreadableScriptError("a pattern that is not read")
            return
        is_list = cursor.sees("[")
        cursor = TokenCursor(code, cursor.at + 1, cursor.closing())
        index = 0
        while cursor.at < cursor.end:
            if cursor.skip(","):
                index += 1
                continue
            if cursor.skip("..."):
                start, part = cursor.at, Unknown(self._calls(value))
                cursor.at = self._pattern_end(cursor)
                self._bind(code, (start, cursor.at), part, scope)
                continue
            start = cursor.at
            if is_list:
                part = self._at_index(value, index)
            else:
                key = cursor.take()
                if key.kind not in ("name", "string"):
                    raise UnreadableScriptError("a pattern that is not read")
                part = self._member(value, key.value)
                if cursor.skip(":"):
                    start = cursor.at
                else:
                    cursor.at = start
            end = self._pattern_end(cursor)
            self._bind(code, (start, end), self._default(cursor, end, part), scope)
            if not is_list:
                cursor.skip(",")

    def _default(self, cursor: TokenCursor, end: int, value: Any) -> Any:
        """A part of a pattern, whose default makes it uncertain where it is missing."""
        cursor.at = end
        if not cursor.skip("="):
            return value
        default = self._assignment(cursor, VariableScope({}))
        return value if value is not None else default

    def _expression(self, cursor: TokenCursor, scope: VariableScope) -> Any:
        value = self._assignment(cursor, scope)
        while cursor.skip(","):
            value = self._assignment(cursor, scope)
        return value

    def _assignment(self, cursor: TokenCursor, scope: VariableScope) -> Any:
        self._step()
        with self._deeper():
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
            value = self._binary(cursor, scope, 0)
            if cursor.skip("?"):
                left = self._doubtful(lambda: self._assignment(cursor, scope))
                cursor.expect(":")
                right = self._doubtful(lambda: self._assignment(cursor, scope))
                value = Unknown(self._calls(value) | self._calls(left) | self._calls(right))
            if not (cursor.token.kind == "punctuation" and cursor.token.value in ASSIGNMENTS):
                return value
            operator, is_name = cursor.take().value, cursor.at - start == 2  # noqa: PLR2004 - the name and the operator
            given = self._assignment(cursor, scope)
            if first.kind != "name":
                raise UnreadableScriptError("an assignment to what is no name")
            if not is_name:
                owner = self._lookup(first.value, scope)
                self._tamper(value, owner)
                self._assign(first.value, Unknown(self._calls(given) | self._calls(owner)), scope)
                return given
            if operator == "=":
                result = given
            elif operator == "+=":
                result = self._add(value, given)
            else:
                result = Unknown(self._calls(given))
            self._assign(first.value, result, scope)
            return result

    def _arrow(self, cursor: TokenCursor, scope: VariableScope) -> Function | None:
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
            # An expression, up to a comma, semicolon or bracket of its level, or to a new statement.
            end = cursor.at
            while end < cursor.end:
                token, before = cursor.code.tokens[end], cursor.code.tokens[end - 1]
                if token.kind == "punctuation" and token.value in (",", ";", ")", "]", "}"):
                    break
                is_new = end > cursor.at and token.after_newline and token.kind in ("name", "template", "string")
                if is_new and not (before.kind == "punctuation" and before.value not in (")", "]", "}")):
                    break
                end = cursor.code.closing.get(end, end) + 1
                self._step()
            body, is_block = (cursor.at, end), False
            cursor.at = end
        return Function(cursor.code, parameters, body, is_block, scope)

    def _function(self, cursor: TokenCursor, scope: VariableScope) -> Function:
        """From the parameters on."""
        end = cursor.closing()
        parameters = (cursor.at + 1, end)
        cursor.at = end + 1
        if not cursor.sees("{"):
            raise UnreadableScriptError("a function without a body")
        body = (cursor.at + 1, cursor.closing())
        cursor.at = body[1] + 1
        return Function(cursor.code, parameters, body, True, scope)  # noqa: FBT003

    def _doubtful(self, read: Callable[[], Any]) -> Any:
        """What may or may not be carried out: what it prints is not certain (`_global`), nor what it assigns."""
        self._doubt += 1
        try:
            return read()
        finally:
            self._doubt -= 1

    def _binary(self, cursor: TokenCursor, scope: VariableScope, level: int) -> Any:
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

    def _unary(self, cursor: TokenCursor, scope: VariableScope) -> Any:
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

    def _nested(self, cursor: TokenCursor, scope: VariableScope) -> Any:
        with self._deeper():
            return self._unary(cursor, scope)

    def _postfix(self, cursor: TokenCursor, scope: VariableScope) -> Any:
        first = cursor.token
        value = self._primary(cursor, scope)
        while True:
            token = cursor.token
            if token.kind == "template":
                if not isinstance(value, Global) or value.name != "String.raw":
                    raise UnreadableScriptError("a tagged template")
                value = self._template(cursor.take(), scope, raw=True)
            elif cursor.sees(".", "?."):
                cursor.at += 1
                if not cursor.sees("(", "["):  # else it is `?.(` or `?.[`
                    name = cursor.take()
                    if name.kind != "name":
                        raise UnreadableScriptError("expected a member's name")
                    value = self._member(value, name.value)
            elif cursor.sees("["):
                value = self._index(value, self._bracketed(cursor, scope))
            elif cursor.sees("("):
                value = self._call(value, self._arguments(cursor, scope))
            elif cursor.sees("++", "--") and not token.after_newline:
                cursor.at += 1
                if first.kind == "name":
                    self._assign(first.value, Unknown(self._calls(value)), scope)
                return Unknown(self._calls(value))
            else:
                return value

    def _arguments(self, cursor: TokenCursor, scope: VariableScope) -> list[Any]:
        """The values of an array literal or of arguments."""
        end = cursor.closing()
        inner = TokenCursor(cursor.code, cursor.at + 1, end)
        values: list[Any] = []
        while inner.at < end:
            if inner.skip(","):
                continue
            if inner.skip("..."):
                spread = self._assignment(inner, scope)
                values += spread if isinstance(spread, list) else [Unknown(self._calls(spread))]
            else:
                values.append(self._assignment(inner, scope))
            if inner.at < end:
                inner.expect(",")
        cursor.at = end + 1
        return self._new(values)  # type: ignore[no-any-return]

    def _primary(self, cursor: TokenCursor, scope: VariableScope) -> Any:
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
            return self._bracketed(cursor, scope)
        if token.value == "[":
            return self._arguments(cursor, scope)
        if token.value == "{":
            end = cursor.closing()
            value = self._object(TokenCursor(cursor.code, cursor.at + 1, end), scope)
            cursor.at = end + 1
            return value
        raise UnreadableScriptError(f"an unexpected {token.value[:20] or token.kind!r}")

    def _named(self, cursor: TokenCursor, scope: VariableScope) -> Any:
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

    def _template(self, token: Token, scope: VariableScope, *, raw: bool = False) -> Any:
        values: list[Any] = [token.chunks[0][raw]]
        for hole, chunk in zip(token.holes, token.chunks[1:], strict=True):
            inner = TokenCursor(hole, 0, len(hole.tokens) - 1)
            values.append(self._expression(inner, scope))
            self._finished(inner)
            values.append(chunk[raw])
        return self._joined(values)

    def _object(self, cursor: TokenCursor, scope: VariableScope) -> Any:
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
            token = cursor.token
            if token.value == "[" and token.kind == "punctuation":
                key = self._bracketed(cursor, scope)
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
            if cursor.at < cursor.end:
                cursor.expect(",")
        return self._new(fields) if is_whole else Unknown(self._calls(fields))

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
        scope = VariableScope({}, function.scope, self._doubt)
        cursor = TokenCursor(function.code, *function.parameters)
        outer = self._function_doubt
        try:
            with self._deeper():
                self._function_doubt = self._doubt
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
                    inner = TokenCursor(function.code, *function.body)
                    value = self._assignment(inner, scope)
                    self._finished(inner)
                    return value
                before = self.script.items
                self.block(function.code, *function.body, scope)
                return None if self.script.items is before else Unknown()
        except Left as left:
            return left.value
        finally:
            self._function_doubt = outer

    def _run_unknown(self, values: list[Any]) -> None:
        """Functions handed to something unknown may be called, with what is not known."""
        for value in values:
            if isinstance(value, Function):
                self._doubtful(lambda function=value: self._run(function, [Unknown()] * 4))  # type: ignore[misc]

    def _global(self, name: str, arguments: list[Any]) -> Any:
        first = arguments[0] if arguments else None
        if name.startswith("tools."):
            if len(self.script.calls) >= MAX_CALLS:
                raise UnreadableScriptError(f"more than {MAX_CALLS} calls")
            self.script.calls.append(ScriptCall(name=name.removeprefix("tools."), argument=first))
            return Result(len(self.script.calls) - 1)
        if name in ("text", "image"):
            value = first if name == "text" else Unknown(self._calls(first))
            if self._doubt or self.script.items is None or len(self.script.items) >= MAX_ITEMS:
                self.script.items = None
            else:
                self.script.items.append(Json(value) if isinstance(value, list | dict) else self._as_text(value))
            return value
        if name in ("eval", "Function"):
            raise UnreadableScriptError("code made by code")
        if name.startswith(CHANGING):
            self._tamper(*arguments[:1])
        if name == "exit" and not self._doubt:
            raise Left
        if name in ("exit", "yield_control"):
            self.script.items = None
        return self._library(name, first, arguments)

    def _library(self, name: str, first: Any, arguments: list[Any]) -> Any:
        """What the language's own functions give back."""
        if name in ("Promise.all", "Promise.resolve", "structuredClone") or (name, type(first)) == ("Array.from", list):
            return first
        if name == "Promise.allSettled" and isinstance(first, list):
            settled = [{"status": Unknown(self._calls(one)), "value": one, "reason": Unknown()} for one in first]
            return self._new(list(map(self._new, settled)))
        if name == "JSON.stringify":
            return self._json_of(arguments)
        if name == "String":
            return self._joined(["", first])
        if isinstance(first, dict) and name in ("Object.entries", "Object.keys", "Object.values"):
            rows = [self._new([key, one]) for key, one in first.items()]
            return self._new({"Object.keys": list(first), "Object.values": list(first.values())}.get(name, rows))
        self._run_unknown(arguments)
        return Unknown(self._calls(arguments))

    def _method(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        first = arguments[0] if arguments else None
        if name in ("then", "catch", "finally"):
            if name == "then" and isinstance(first, Function):
                return self._run(first, [owner])
            self._run_unknown(arguments)
            return owner if name != "then" else Unknown(self._calls(owner))
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
            # A list that is part of another value is left alone: that would have to change too.
            if (known := self._made.get(id(owner))) is not None and known.is_part:
                raise UnreadableScriptError("a change inside a value")
            if name == "push":
                owner.extend(Unknown(self._calls(one)) if self._doubt else one for one in arguments)
            else:
                owner[:] = [Unknown(self._calls(owner) | self._calls(arguments))]
            self._new(owner)
            return Unknown()
        self._run_unknown(arguments)
        return Unknown(self._calls(owner) | self._calls(arguments))
