"""The symbolic values of a script that is read without running it, and the operations on them.

Literals are plain Python values; everything else is an Unknown, Result, Joined, Json, Global, Function or Method.
"""

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
"""Members of a result that are methods, not fields."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that can't be determined. `calls`: indexes of the tool calls whose results went into it."""

    calls: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Result:
    """A tool call's result, or a field of it: `path` has the names and indexes that lead to the field."""

    call: int
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Joined:
    """Text concatenated from literal strings and parts that aren't literal, in order."""

    parts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Json:
    """The JSON text of a value that contains results."""

    value: Any


@dataclass(frozen=True, slots=True)
class Global:
    """An object or function of the environment, by its dotted name (`tools.exec_command`)."""

    name: str


@dataclass(slots=True)
class VariableScope:
    names: dict[str, Any]
    parent: "VariableScope | None" = None
    branch_depth: int = 0
    """The number of conditional branches around the scope."""

    def find(self, name: str) -> "VariableScope | None":
        """The innermost scope that declares a name, from this one outwards."""
        scope: VariableScope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.parent
        return scope


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of the script. `parameters` and `body` are (start, end) token indexes in `code`."""

    code: Code
    parameters: tuple[int, int]
    body: tuple[int, int]
    is_block: bool
    scope: VariableScope


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A member of a value that will be called."""

    owner: Any
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCall:
    """A call of a tool; its argument is JSON-like, with symbolic values for parts that aren't literals."""

    name: str
    argument: Any = None


@dataclass(slots=True, kw_only=True)
class Script:
    """A script's tool calls and output. `items`: the printed values, one per output item; None if that is uncertain.

    `tampered`: indexes of calls whose results the script modified, so that what it prints of them proves nothing.
    """

    calls: list[ScriptCall] = field(default_factory=list)
    items: list[Any] | None = field(default_factory=list)
    tampered: frozenset[int] = frozenset()


class StepBudget:
    """Limits the work of reading scripts: MAX_STEPS steps for each script and `total` for all scripts of a log."""

    def __init__(self, total: int = 2_000_000) -> None:
        self._total_left = total
        self._script_left = 0

    def begin_script(self) -> None:
        self._script_left = MAX_STEPS

    def spend(self, steps: int) -> None:
        """Raises UnreadableScriptError when a limit is exceeded."""
        self._total_left -= steps
        self._script_left -= steps
        if self._script_left < 0 or self._total_left < 0:
            raise UnreadableScriptError("more steps than are followed")


def calls_in(value: Any) -> frozenset[int]:
    """Indexes of the tool calls whose results a value contains."""
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
    """Whether a value is entirely literal: JSON without symbolic values."""
    match value:
        case list():
            return all(map(is_plain, value))
        case dict():
            return all(map(is_plain, value.values()))
    return value is None or isinstance(value, str | bool | int | float)


class FunctionExit(Exception):
    """Unwinds to the end of the function or script at `return`, `throw` or `exit()`, with the value returned."""

    def __init__(self, value: Any = None) -> None:
        self.value = value
        super().__init__()


@dataclass(slots=True)
class ContainerInfo:
    """Facts about a list or object that the script created; it is referenced here so that its id() isn't reused."""

    value: Any
    size: int
    calls: frozenset[int]
    is_part: bool = False
    """Whether another list or object contains it."""


class Values:
    """State of a walk through a script, and operations that create, join, look up and assign values.

    `_branch_depth` counts the conditional branches around the current statement; `_function_branch_depth` is that
    count at the start of the current function. If they are equal, the function's code runs whenever it is called.
    """

    def __init__(self, step_budget: StepBudget) -> None:
        self.script = Script()
        self._step_budget = step_budget
        self._containers: dict[int, ContainerInfo] = {}
        """By the id() of the list or object."""
        self._depth = 0
        self._branch_depth = 0
        self._function_branch_depth = 0

    def _step(self, cost: int = 1) -> None:
        self._step_budget.spend(cost)

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        """Count one level of nesting; raises UnreadableScriptError beyond MAX_NESTING."""
        if self._depth >= MAX_NESTING:
            raise UnreadableScriptError("nested too deeply")
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def _register(self, value: Any) -> Any:
        """Record the size of a list or object and the calls whose results it contains; returns the value."""
        parts = list(value.values()) if isinstance(value, dict) else value
        size = 1 + sum(map(self._size, parts))
        if size > MAX_SIZE:
            raise UnreadableScriptError("a value that grows too large")
        for part in parts:
            if (info := self._containers.get(id(part))) is not None:
                info.is_part = True
        self._containers[id(value)] = ContainerInfo(value, size, frozenset[int]().union(*map(self._calls, parts)))
        self._step(len(parts))
        return value

    def _size(self, value: Any) -> int:
        """The number of values in a value, itself included."""
        if isinstance(value, Joined):
            return 1 + sum(map(self._size, value.parts))
        if isinstance(value, Json):
            return 1 + self._size(value.value)
        info = self._containers.get(id(value))
        return 1 if info is None else info.size

    def _calls(self, value: Any) -> frozenset[int]:
        """Same as `calls_in`, but in constant time for registered lists and objects."""
        match value:
            case list() | dict():
                info = self._containers.get(id(value))
                return calls_in(value) if info is None else info.calls
            case Json():
                return self._calls(value.value)
            case Joined():
                return frozenset[int]().union(*map(self._calls, value.parts))
        return calls_in(value)

    def _to_text(self, value: Any) -> Any:
        """A value converted to a string as JavaScript does, or a symbolic value if that can't be determined."""
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

    def _stringify(self, arguments: list[Any]) -> Any:
        """The result of `JSON.stringify(value)` or `JSON.stringify(value, null, indent)`, indents of 1 to 10 spaces."""
        value = arguments[0] if arguments else None
        self._step(self._size(value))
        if not is_plain(value):
            return Json(value) if self._calls(value) else Unknown()
        if len(arguments) == 1:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        indent = arguments[2] if len(arguments) > 2 and isinstance(arguments[2], int) else None  # noqa: PLR2004
        return json.dumps(value, ensure_ascii=False, indent=indent) if indent and indent <= 10 else Unknown()  # noqa: PLR2004

    def _add(self, left_value: Any, right_value: Any) -> Any:
        """The result of `left + right`."""
        values = [left_value, right_value]
        numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        if len(numbers) == 2:  # noqa: PLR2004
            return left_value + right_value
        if any(isinstance(value, str | Joined | Json) for value in values):
            return self._concatenate(values)
        return Unknown(self._calls(left_value) | self._calls(right_value))

    def _concatenate(self, values: list[Any]) -> Any:
        """The concatenated texts of values: a string if all are known, else Joined with adjacent strings merged."""
        parts: list[Any] = []
        for value in values:
            for part in value.parts if isinstance(value, Joined) else (self._to_text(value),):
                if isinstance(part, str) and parts and isinstance(parts[-1], str):
                    parts[-1] += part
                else:
                    parts.append(part)
        if sum(len(part) for part in parts if isinstance(part, str)) > MAX_TEXT or len(parts) > MAX_ITEMS:
            raise UnreadableScriptError("a text that grows too long")
        if all(isinstance(part, str) for part in parts):
            return "".join(parts)
        return Joined(tuple(parts))

    def _mark_tampered(self, *values: Any) -> None:
        """Note that the script modified these values: results in them, or the environment's own objects."""
        for value in values:
            self.script.tampered |= self._calls(value)
            if isinstance(value, Global):
                self.script.items = None

    def _member(self, value: Any, name: str) -> Any:
        """The value of `value.name`."""
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
        """The value of `value[index]`."""
        if isinstance(value, list) and isinstance(index, int) and not isinstance(index, bool):
            return value[index] if 0 <= index < len(value) else None
        if isinstance(value, dict | Global) and isinstance(index, str):
            return self._member(value, index)
        if isinstance(value, Result) and isinstance(index, int | str) and len(value.path) < 6:  # noqa: PLR2004
            return Result(value.call, (*value.path, str(index)))
        return Unknown(self._calls(value) | self._calls(index))

    def _destructured_item(self, value: Any, index: int) -> Any:
        """The value that a list pattern binds at `index`."""
        if isinstance(value, list):
            return value[index] if index < len(value) else None
        return Unknown(self._calls(value))

    def _lookup(self, name: str, scope: VariableScope) -> Any:
        if name in LITERALS:
            return LITERALS[name]
        declaring = scope.find(name)
        return Global(name) if declaring is None else declaring.names[name]

    def _assign(self, name: str, value: Any, scope: VariableScope) -> None:
        """Assign to a variable, which becomes Unknown if this happens in a branch that doesn't enclose its scope."""
        declaring = scope.find(name)
        if declaring is None:
            scope.names[name] = Unknown(self._calls(value))
            return
        if self._branch_depth > declaring.branch_depth:
            value = Unknown(self._calls(value) | self._calls(declaring.names[name]))
        declaring.names[name] = value

    def _forget(self, name: str, scope: VariableScope) -> None:
        """Make a variable Unknown."""
        if (declaring := scope.find(name)) is not None:
            declaring.names[name] = Unknown(self._calls(declaring.names[name]))
