"""Evaluates a script's expressions symbolically: records tool calls, follows the script's own functions.

Methods that take a cursor leave it behind what they have read.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from grading.formats.js_tokens import Code, Token, UnreadableScriptError
from grading.formats.js_values import (
    MAX_CALLS,
    MAX_ITEMS,
    MAX_NESTING,
    MUTATORS,
    Function,
    FunctionExit,
    Global,
    Json,
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
SHORT_CIRCUIT_OPERATORS: Final = ("??", "||", "&&")
PREFIX_OPERATORS: Final = frozenset({"!", "-", "+", "~", "typeof", "void", "delete"})
UNSUPPORTED: Final = frozenset(
    [
        "case",
        "class",
        "debugger",
        "default",
        "export",
        "import",
        "super",
        "switch",
        "this",
        "with",
        "yield",
    ]
)
MODIFYING_FUNCTIONS: Final = ("Object.assign", "Object.define", "Object.setPrototypeOf", "Reflect.")


@dataclass(slots=True)
class TokenCursor:
    """A position `at` in the tokens of `code`, which are read up to `end`."""

    code: Code
    at: int
    end: int

    @property
    def token(self) -> Token:
        return self.code.tokens[self.at] if self.at < self.end else self.code.tokens[-1]

    def peek(self, ahead: int = 1) -> Token:
        return self.code.tokens[self.at + ahead] if self.at + ahead < self.end else self.code.tokens[-1]

    def is_at(self, *values: str) -> bool:
        """Whether the next token is one of these punctuation marks or names."""
        return self.token.kind in ("punctuation", "name") and self.token.value in values

    def take(self) -> Token:
        token = self.token
        self.at += 1
        return token

    def skip(self, value: str) -> bool:
        """Move past the next token if it is this one; returns whether it was."""
        if self.is_at(value):
            self.at += 1
            return True
        return False

    def expect(self, value: str) -> None:
        if not self.skip(value):
            raise UnreadableScriptError(f"expected {value!r}, got {self.token.value[:20]!r}")

    def closing(self) -> int:
        """The index of the token that closes the bracket at the cursor."""
        closing = self.code.closing.get(self.at)
        if closing is None or closing >= self.end:
            raise UnreadableScriptError("expected an opening bracket")
        return closing


class Expressions(Values, ABC):
    """Evaluates expressions; `block`, which functions need for their bodies, is left to the subclass."""

    @abstractmethod
    def block(self, code: Code, start: int, end: int, scope: VariableScope) -> None:
        """Walk through the statements in a range of tokens."""

    def _bracketed(self, cursor: TokenCursor, scope: VariableScope) -> Any:
        """The value of the expression in brackets at the cursor."""
        end = cursor.closing()
        inner = TokenCursor(cursor.code, cursor.at + 1, end)
        value = self._expression(inner, scope)
        self._expect_end(inner)
        cursor.at = end + 1
        return value

    @staticmethod
    def _expect_end(cursor: TokenCursor) -> None:
        if cursor.at < cursor.end:
            raise UnreadableScriptError(f"an unexpected {cursor.token.value[:20]!r}")

    def _pattern_end(self, cursor: TokenCursor) -> int:
        """The end index of the pattern (`a`, `[a, b]` or `{a, b: c}`) at the cursor, which stays where it is."""
        if cursor.is_at("[", "{"):
            return cursor.closing() + 1
        if cursor.token.kind != "name":
            raise UnreadableScriptError(f"expected a name, got {cursor.token.value[:20]!r}")
        return cursor.at + 1

    def _bind(self, code: Code, pattern: tuple[int, int], value: Any, scope: VariableScope) -> None:
        """Bind the names of a pattern (`a`, `[a, b]`, `{a, b: c}`) to the corresponding parts of a value.

        `pattern` is its (start, end) token indexes.
        """
        self._step()
        cursor = TokenCursor(code, *pattern)
        if cursor.at >= cursor.end:
            return
        if cursor.token.kind == "name":
            scope.names[cursor.take().value] = value
            if cursor.at < cursor.end:
                raise UnreadableScriptError("a pattern that is not read")
            return
        is_list = cursor.is_at("[")
        cursor = TokenCursor(code, cursor.at + 1, cursor.closing())
        index = 0
        while cursor.at < cursor.end:
            if cursor.skip(","):
                index += 1
                continue
            if cursor.skip("..."):
                start = cursor.at
                cursor.at = self._pattern_end(cursor)
                self._bind(code, (start, cursor.at), Unknown(self._calls(value)), scope)
                continue
            start = cursor.at
            if is_list:
                part = self._destructured_item(value, index)
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
            self._bind(code, (start, end), self._or_default(cursor, end, part), scope)
            if not is_list:
                cursor.skip(",")

    def _or_default(self, cursor: TokenCursor, end: int, value: Any) -> Any:
        """The value for a part of a pattern that ends at `end`; the default after `=` if the value is None."""
        cursor.at = end
        if not cursor.skip("="):
            return value
        default = self._assignment(cursor, VariableScope({}))
        return value if value is not None else default

    def _expression(self, cursor: TokenCursor, scope: VariableScope) -> Any:
        """Assignment expressions separated by commas; the value of the last."""
        value = self._assignment(cursor, scope)
        while cursor.skip(","):
            value = self._assignment(cursor, scope)
        return value

    def _assignment(self, cursor: TokenCursor, scope: VariableScope) -> Any:
        """An expression without commas: an arrow function, an assignment, a conditional, or anything simpler."""
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
                with self._in_branch():
                    if_true = self._assignment(cursor, scope)
                cursor.expect(":")
                with self._in_branch():
                    if_false = self._assignment(cursor, scope)
                value = Unknown(self._calls(value) | self._calls(if_true) | self._calls(if_false))
            if not (cursor.token.kind == "punctuation" and cursor.token.value in ASSIGNMENTS):
                return value
            is_variable = cursor.at - start == 1  # else it is a member, `name.field`
            operator = cursor.take().value
            assigned = self._assignment(cursor, scope)
            if first.kind != "name":
                raise UnreadableScriptError("an assignment to what is no name")
            if not is_variable:
                owner = self._lookup(first.value, scope)
                self._mark_tampered(value, owner)
                self._assign(first.value, Unknown(self._calls(assigned) | self._calls(owner)), scope)
                return assigned
            if operator == "=":
                result = assigned
            elif operator == "+=":
                result = self._add(value, assigned)
            else:
                result = Unknown(self._calls(assigned))
            self._assign(first.value, result, scope)
            return result

    def _arrow(self, cursor: TokenCursor, scope: VariableScope) -> Function | None:
        """The arrow function at the cursor; None, and the cursor stays, if there is none."""
        at = cursor.at
        if cursor.is_at("async") and not cursor.peek().after_newline and cursor.peek().kind in ("name", "punctuation"):
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
        if cursor.is_at("{"):
            body, is_block = (cursor.at + 1, cursor.closing()), True
            cursor.at = body[1] + 1
        else:
            # The body is an expression, up to a comma, semicolon or bracket of its level, or to a new statement.
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
        """The function whose parameters begin at the cursor."""
        end = cursor.closing()
        parameters = (cursor.at + 1, end)
        cursor.at = end + 1
        if not cursor.is_at("{"):
            raise UnreadableScriptError("a function without a body")
        body = (cursor.at + 1, cursor.closing())
        cursor.at = body[1] + 1
        return Function(cursor.code, parameters, body, True, scope)  # noqa: FBT003

    @contextmanager
    def _in_branch(self) -> Iterator[None]:
        """For code that may not run: what it prints is uncertain (see `_global`), and so is what it assigns."""
        self._branch_depth += 1
        try:
            yield
        finally:
            self._branch_depth -= 1

    def _binary(self, cursor: TokenCursor, scope: VariableScope, min_precedence: int) -> Any:
        """An expression of binary operators of at least this precedence, by precedence climbing."""
        left_value = self._unary(cursor, scope)
        while (precedence := PRECEDENCE.get(cursor.token.value)) is not None and precedence >= min_precedence:
            if cursor.token.kind not in ("punctuation", "name"):
                break
            operator = cursor.take().value
            right_precedence = precedence if operator == "**" else precedence + 1
            if operator in SHORT_CIRCUIT_OPERATORS:
                with self._in_branch():
                    right_value = self._binary(cursor, scope, right_precedence)
                left_value = Unknown(self._calls(left_value) | self._calls(right_value))
                continue
            right_value = self._binary(cursor, scope, right_precedence)
            if operator == "+":
                left_value = self._add(left_value, right_value)
            else:
                left_value = Unknown(self._calls(left_value) | self._calls(right_value))
        return left_value

    def _unary(self, cursor: TokenCursor, scope: VariableScope) -> Any:
        """An expression with prefix operators."""
        self._step()
        token = cursor.token
        if token.kind in ("punctuation", "name"):
            if token.value == "await":
                cursor.at += 1
                return self._operand(cursor, scope)
            if token.value in PREFIX_OPERATORS:
                cursor.at += 1
                value = self._operand(cursor, scope)
                if token.value == "delete":
                    self._mark_tampered(value)
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                return -value if token.value == "-" and is_number else Unknown(self._calls(value))
            if token.value in ("++", "--"):
                cursor.at += 1
                name = cursor.token
                value = self._operand(cursor, scope)
                if name.kind == "name":
                    self._assign(name.value, Unknown(self._calls(value)), scope)
                return Unknown(self._calls(value))
        return self._postfix(cursor, scope)

    def _operand(self, cursor: TokenCursor, scope: VariableScope) -> Any:
        """The operand of a prefix operator."""
        with self._deeper():
            return self._unary(cursor, scope)

    def _postfix(self, cursor: TokenCursor, scope: VariableScope) -> Any:
        """A primary expression with the members, calls, templates and `++` or `--` after it."""
        first = cursor.token
        value = self._primary(cursor, scope)
        while True:
            token = cursor.token
            if token.kind == "template":
                if not isinstance(value, Global) or value.name != "String.raw":
                    raise UnreadableScriptError("a tagged template")
                value = self._template(cursor.take(), scope, raw=True)
            elif cursor.is_at(".", "?."):
                cursor.at += 1
                if not cursor.is_at("(", "["):  # else it is `?.(` or `?.[`
                    name = cursor.take()
                    if name.kind != "name":
                        raise UnreadableScriptError("expected a member's name")
                    value = self._member(value, name.value)
            elif cursor.is_at("["):
                value = self._index(value, self._bracketed(cursor, scope))
            elif cursor.is_at("("):
                value = self._call(value, self._arguments(cursor, scope))
            elif cursor.is_at("++", "--") and not token.after_newline:
                cursor.at += 1
                if first.kind == "name":
                    self._assign(first.value, Unknown(self._calls(value)), scope)
                return Unknown(self._calls(value))
            else:
                return value

    def _arguments(self, cursor: TokenCursor, scope: VariableScope) -> list[Any]:
        """The values in the brackets of an array literal or of a call."""
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
        return self._register(values)  # type: ignore[no-any-return]

    def _primary(self, cursor: TokenCursor, scope: VariableScope) -> Any:
        """A literal, a name, an expression in parentheses, an array or an object."""
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
            return self._name(cursor, scope)
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

    def _name(self, cursor: TokenCursor, scope: VariableScope) -> Any:
        """A function expression, a `new` expression or a variable."""
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
            instance = self._postfix(cursor, scope)
            return Unknown(self._calls(instance))
        if word in UNSUPPORTED:
            raise UnreadableScriptError(f"{word} is not read")
        cursor.at += 1
        return self._lookup(word, scope)

    def _template(self, token: Token, scope: VariableScope, *, raw: bool = False) -> Any:
        """The text of a template literal; `raw`: without unescaping its chunks, which are (unescaped, raw)."""
        values: list[Any] = [token.chunks[0][raw]]
        for hole, chunk in zip(token.holes, token.chunks[1:], strict=True):
            inner = TokenCursor(hole, 0, len(hole.tokens) - 1)
            values.append(self._expression(inner, scope))
            self._expect_end(inner)
            values.append(chunk[raw])
        return self._concatenate(values)

    def _object(self, cursor: TokenCursor, scope: VariableScope) -> Any:
        """An object literal, from the cursor inside its braces; Unknown if it spreads anything but an object."""
        fields: dict[str, Any] = {}
        is_complete = True
        while cursor.at < cursor.end:
            if cursor.skip(","):
                continue
            if cursor.skip("..."):
                spread = self._assignment(cursor, scope)
                is_complete = is_complete and isinstance(spread, dict)
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
            elif cursor.is_at("("):
                fields[key] = self._function(cursor, scope)
            elif token.kind == "name":
                fields[key] = self._lookup(key, scope)
            else:
                raise UnreadableScriptError("a key without a value")
            if cursor.at < cursor.end:
                cursor.expect(",")
        return self._register(fields) if is_complete else Unknown(self._calls(fields))

    def _call(self, value: Any, arguments: list[Any]) -> Any:
        """The result of calling a value."""
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
        self._run_callbacks(arguments)
        return Unknown(self._calls(value) | self._calls(arguments))

    def _run(self, function: Function, arguments: list[Any]) -> Any:
        """Walk through a function's body with its parameters bound; returns its return value."""
        scope = VariableScope({}, function.scope, self._branch_depth)
        cursor = TokenCursor(function.code, *function.parameters)
        caller_branch_depth = self._function_branch_depth
        try:
            with self._deeper():
                self._function_branch_depth = self._branch_depth
                # Parameters without an argument get None; MAX_NESTING is more than a function has.
                for argument in (*arguments, *[None] * MAX_NESTING):
                    if cursor.at >= cursor.end:
                        break
                    if cursor.skip("..."):
                        end = self._pattern_end(cursor)
                        self._bind(cursor.code, (cursor.at, end), Unknown(self._calls(arguments)), scope)
                        break
                    start, end = cursor.at, self._pattern_end(cursor)
                    value = self._or_default(cursor, end, argument)
                    self._bind(cursor.code, (start, end), value, scope)
                    cursor.skip(",")
                if not function.is_block:
                    inner = TokenCursor(function.code, *function.body)
                    value = self._assignment(inner, scope)
                    self._expect_end(inner)
                    return value
                items_before = self.script.items
                self.block(function.code, *function.body, scope)
                # `_return` sets `items` to None if the function may have returned a value in a branch.
                return None if self.script.items is items_before else Unknown()
        except FunctionExit as function_exit:
            return function_exit.value
        finally:
            self._function_branch_depth = caller_branch_depth

    def _run_callbacks(self, arguments: list[Any]) -> None:
        """Run functions passed to unknown code, which may or may not call them, with unknown arguments."""
        for argument in arguments:
            if isinstance(argument, Function):
                with self._in_branch():
                    self._run(argument, [Unknown()] * 4)

    def _global(self, name: str, arguments: list[Any]) -> Any:
        """The result of calling a function of the environment: a tool, an output function or the language's own."""
        first = arguments[0] if arguments else None
        if name.startswith("tools."):
            if len(self.script.calls) >= MAX_CALLS:
                raise UnreadableScriptError(f"more than {MAX_CALLS} calls")
            self.script.calls.append(ScriptCall(name=name.removeprefix("tools."), argument=first))
            return Result(len(self.script.calls) - 1)
        if name in ("text", "image"):
            value = first if name == "text" else Unknown(self._calls(first))
            if self._branch_depth or self.script.items is None or len(self.script.items) >= MAX_ITEMS:
                self.script.items = None
            else:
                self.script.items.append(Json(value) if isinstance(value, list | dict) else self._to_text(value))
            return value
        if name in ("eval", "Function"):
            raise UnreadableScriptError("code made by code")
        if name.startswith(MODIFYING_FUNCTIONS):
            self._mark_tampered(*arguments[:1])
        if name == "exit" and not self._branch_depth:
            raise FunctionExit
        if name in ("exit", "yield_control"):
            self.script.items = None
        return self._library(name, first, arguments)

    def _library(self, name: str, first: Any, arguments: list[Any]) -> Any:
        """The result of calling a function of the language's standard library; `first` is its first argument."""
        is_copied_list = name == "Array.from" and isinstance(first, list)
        if is_copied_list or name in ("Promise.all", "Promise.resolve", "structuredClone"):
            return first
        if name == "Promise.allSettled" and isinstance(first, list):
            settled = []
            for value in first:
                outcome = {"status": Unknown(self._calls(value)), "value": value, "reason": Unknown()}
                settled.append(outcome)
            return self._register(list(map(self._register, settled)))
        if name == "JSON.stringify":
            return self._stringify(arguments)
        if name == "String":
            return self._concatenate(["", first])
        if isinstance(first, dict) and name in ("Object.entries", "Object.keys", "Object.values"):
            listed = [self._register([key, value]) for key, value in first.items()]
            if name == "Object.keys":
                listed = list(first)
            elif name == "Object.values":
                listed = list(first.values())
            return self._register(listed)
        self._run_callbacks(arguments)
        return Unknown(self._calls(arguments))

    def _method(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        """The result of `owner.name(...arguments)`."""
        first = arguments[0] if arguments else None
        if name in ("then", "catch", "finally"):
            if name == "then" and isinstance(first, Function):
                return self._run(first, [owner])
            self._run_callbacks(arguments)
            return owner if name != "then" else Unknown(self._calls(owner))
        if isinstance(owner, list):
            return self._list_method(owner, name, arguments)
        if isinstance(owner, str) and name in ("trim", "toString", "trimEnd"):
            if name == "toString":
                return owner
            return owner.strip() if name == "trim" else owner.rstrip()
        if isinstance(owner, str) and name == "split" and isinstance(first, str) and first and len(arguments) == 1:
            return self._register(owner.split(first))
        if isinstance(owner, int) and name == "toString" and not arguments:
            return str(owner)
        self._run_callbacks(arguments)
        return Unknown(self._calls(owner) | self._calls(arguments))

    def _list_method(self, owner: list[Any], name: str, arguments: list[Any]) -> Any:
        """The result of calling a method of a list."""
        first = arguments[0] if arguments else None
        if name in ("map", "forEach", "flatMap") and isinstance(first, Function):
            results = [self._run(first, [item, index, owner]) for index, item in enumerate(list(owner))]
            if name == "forEach":
                return None
            if name == "flatMap":
                results = list(chain.from_iterable(one if isinstance(one, list) else [one] for one in results))
            return self._register(results)
        if name == "entries":
            return self._register([self._register([index, item]) for index, item in enumerate(owner)])
        if name == "join" and (isinstance(first, str) or not arguments):
            separator = first if isinstance(first, str) else ","
            texts: list[Any] = []
            for item in owner:
                texts += [separator, "" if item is None else item]
            return self._concatenate(texts[1:] or [""])
        if name == "concat" and all(isinstance(argument, list) for argument in arguments):
            return self._register([*owner, *chain.from_iterable(arguments)])
        if name == "push" or name in MUTATORS:
            # The facts recorded about a list that contains this one would become wrong.
            if (info := self._containers.get(id(owner))) is not None and info.is_part:
                raise UnreadableScriptError("a change inside a value")
            if name == "push":
                owner.extend(Unknown(self._calls(item)) if self._branch_depth else item for item in arguments)
            else:
                owner[:] = [Unknown(self._calls(owner) | self._calls(arguments))]
            self._register(owner)
            return Unknown()
        self._run_callbacks(arguments)
        return Unknown(self._calls(owner) | self._calls(arguments))
