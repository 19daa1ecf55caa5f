"""The values that a script can hold as far as they are written down in it, and what can be done with them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from grading.formats.js_tokens import Code, UnreadableScriptError

MAX_CALLS: Final = 100
MAX_ITEMS: Final = 400
MAX_STEPS: Final = 20_000
MAX_SIZE: Final = 2_000
MAX_NESTING: Final = 60
MAX_TEXT: Final = 1_000_000
LITERALS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None, "undefined": None}
MUTATORS: Final = frozenset(["copyWithin", "fill", "pop", "reverse", "shift", "sort", "splice", "unshift"])
METHODS: Final = frozenset(
    [
        "catch",
        "endsWith",
        "filter",
        "finally",
        "find",
        "forEach",
        "includes",
        "indexOf",
        "join",
        "length",
        "map",
        "match",
        "matchAll",
        "replace",
        "replaceAll",
        "slice",
        "some",
        "split",
        "startsWith",
        "substring",
        "then",
        "toFixed",
        "toString",
        "trim",
        "trimEnd",
        "trimStart",
        "at",
        "reduce",
        "flatMap",
        "sort",
    ]
)
"""Members of a result that are called, not read."""


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
class VariableScope:
    names: dict[str, Any]
    parent: "VariableScope | None" = None
    certain: int = 0
    """How many uncertain branches enclose the scope."""

    def holder(self, name: str) -> "VariableScope | None":
        scope: VariableScope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.parent
        return scope


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    code: Code
    parameters: tuple[int, int]
    body: tuple[int, int]
    is_block: bool
    scope: VariableScope


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


class StepBudget:
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


class Left(Exception):
    """`return`, `throw` or `exit()`."""

    def __init__(self, value: Any = None) -> None:
        self.value = value
        super().__init__()


@dataclass(slots=True)
class Made:
    """What is known of a list or object: it is kept, so that its identity stays its own."""

    value: Any
    size: int
    calls: frozenset[int]
    is_part: bool = False


class Values:
    """What a walk through a script knows, and how values are made, joined, named and changed."""

    def __init__(self, allowance: "StepBudget") -> None:
        self.script = Script()
        self._allowance = allowance
        self._made: dict[int, Made] = {}
        self._depth = 0
        self._doubt = 0
        self._function_doubt = 0

    def _step(self, cost: int = 1) -> None:
        self._allowance.spend(cost)

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        """One level further into what is nested; refused where that is too deep."""
        if self._depth >= MAX_NESTING:
            raise UnreadableScriptError("nested too deeply")
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def _new(self, value: Any) -> Any:
        """Takes note of a list or object just made: how large it is and whose results it holds."""
        parts = list(value.values()) if isinstance(value, dict) else value
        size = 1 + sum(map(self._size, parts))
        if size > MAX_SIZE:
            raise UnreadableScriptError("a value that grows too large")
        for part in parts:
            if (known := self._made.get(id(part))) is not None:
                known.is_part = True
        self._made[id(value)] = Made(value, size, frozenset[int]().union(*map(self._calls, parts)))
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

    def _tamper(self, *values: Any) -> None:
        """What a script changed in a result, or in the environment, is no longer the harness's word."""
        for value in values:
            self.script.tampered |= self._calls(value)
            if isinstance(value, Global):
                self.script.items = None

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

    def _at_index(self, value: Any, index: int) -> Any:
        if isinstance(value, list):
            return value[index] if index < len(value) else None
        return Unknown(self._calls(value))

    def _lookup(self, name: str, scope: VariableScope) -> Any:
        if name in LITERALS:
            return LITERALS[name]
        holder = scope.holder(name)
        return Global(name) if holder is None else holder.names[name]

    def _assign(self, name: str, value: Any, scope: VariableScope) -> None:
        holder = scope.holder(name)
        if holder is None:
            scope.names[name] = Unknown(self._calls(value))
            return
        if self._doubt > holder.certain:
            value = Unknown(self._calls(value) | self._calls(holder.names[name]))
        holder.names[name] = value

    def _forget(self, name: str, scope: VariableScope) -> None:
        if (holder := scope.holder(name)) is not None:
            holder.names[name] = Unknown(self._calls(holder.names[name]))
