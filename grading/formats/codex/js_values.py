"""The symbolic values of a script that is read without running it, and the limits of reading.

Strings, numbers, booleans, None, lists and dicts are values that are written in the script; all others are Unknown,
Result, Joined, Json, Global or Function. A list or dict may contain any of them. No value is ever changed.
"""

from collections import ChainMap
from dataclasses import dataclass, field
from typing import Any, Final

from tree_sitter import Node

MAX_STEPS: Final = 20_000
TEXT_PER_STEP: Final = 1_000


class UnreadableScriptError(ValueError):
    """The script exceeds a limit or has a syntax error; the message says which."""


class UnsupportedScriptError(UnreadableScriptError):
    """The script uses syntax whose effect isn't followed; the message says which."""


class StepBudget:
    """Limits the work of reading scripts: MAX_STEPS steps for each script and `total` for all scripts of a log."""

    def __init__(self, total: int = 2_000_000) -> None:
        self._total_left = total
        self._script_left = 0

    def begin_script(self) -> None:
        self._script_left = MAX_STEPS

    def try_spend(self, steps: int) -> bool:
        """Count steps; returns whether that is within the limits."""
        self._total_left -= steps
        self._script_left -= steps
        return self._script_left >= 0 and self._total_left >= 0

    def spend(self, steps: int = 1) -> None:
        """Count steps. Raises UnreadableScriptError when a limit is exceeded."""
        if not self.try_spend(steps):
            raise UnreadableScriptError("too many steps")


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


Scope = ChainMap[str, Any]
"""The variables by name, those of the innermost block first."""


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of the script: its syntax node and the scope that it was defined in."""

    node: Node
    scope: Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCall:
    """A call of a tool; its argument is JSON-like, with symbolic values for parts that aren't literals."""

    name: str
    argument: Any = None


@dataclass(slots=True, kw_only=True)
class Script:
    """A script's tool calls and output. `items`: the printed values, one per output item; None if that is uncertain."""

    calls: list[ScriptCall] = field(default_factory=list)
    items: list[Any] | None = field(default_factory=list)


def calls_in(*values: Any, step_budget: StepBudget | None = None) -> frozenset[int]:
    """Indexes of the tool calls whose results the values contain. Each part of a value costs a step."""
    calls: set[int] = set()
    remaining = list(values)
    while remaining:
        value = remaining.pop()
        if step_budget is not None:
            step_budget.spend(1 + len(value) // TEXT_PER_STEP if isinstance(value, str) else 1)
        match value:
            case Unknown():
                calls |= value.calls
            case Result():
                calls.add(value.call)
            case Joined():
                remaining += value.parts
            case Json():
                remaining.append(value.value)
            case list():
                remaining += value
            case dict():
                remaining += value.values()
    return frozenset(calls)


def is_plain(value: Any) -> bool:
    """Whether a value is entirely literal: JSON without symbolic values."""
    match value:
        case list():
            return all(map(is_plain, value))
        case dict():
            return all(map(is_plain, value.values()))
    return value is None or isinstance(value, str | bool | int | float)
