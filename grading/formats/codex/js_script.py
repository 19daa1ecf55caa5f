"""Determines which tools a small JavaScript program calls and what it prints, without running it.

Codex's code mode writes its tool calls as scripts: `const r = await tools.exec_command({cmd: "…"}); text(r.output)`.
tree-sitter parses a script. Its statements are then walked once, in order, with literal values where they can be
determined and `Unknown` elsewhere; a value is never guessed. Of a script that changes a variable, a list or an object,
or that has other syntax that isn't followed, only the calls are taken, with their literal arguments.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import groupby
from typing import Any, Final

from tree_sitter import Node

from grading.formats.codex.js_syntax import SyntaxTree, parse, read_number
from grading.formats.codex.js_values import (
    TEXT_PER_STEP,
    Function,
    Global,
    Joined,
    Json,
    Result,
    Scope,
    Script,
    ScriptCall,
    StepBudget,
    Unknown,
    UnreadableScriptError,
    UnsupportedScriptError,
    calls_in,
    is_plain,
)

MAX_NESTING: Final = 60
"""Limits the recursion of the walk, so that it never reaches Python's own limit."""
MAX_CALLS: Final = 100
MAX_ITEMS: Final = 400
MAX_TEXT: Final = 1_000_000
MAX_PATH: Final = 6
MAX_CALLBACK_PARAMETERS: Final = 4

LIST_MUTATORS: Final = frozenset(["copyWithin", "fill", "pop", "push", "reverse", "shift", "sort", "splice", "unshift"])
MODIFYING_FUNCTIONS: Final = ("Array.prototype.", "Object.assign", "Object.define", "Object.setPrototypeOf", "Reflect.")
SHORT_CIRCUIT_OPERATORS: Final = ("??", "||", "&&")
"""Their right operand may not be evaluated."""


def read_script(source: str, step_budget: StepBudget | None = None) -> Script:
    """The tool calls and printed values of a script.

    Raises UnreadableScriptError if a limit is exceeded, or if the script has unsupported syntax and no call is found.
    """
    step_budget = step_budget or StepBudget()
    step_budget.begin_script()
    step_budget.spend(len(source) // TEXT_PER_STEP)
    tree = parse(source, step_budget)
    walker = _Walker(tree, step_budget)
    try:
        with suppress(_Return):
            walker.execute_block(tree.root, Scope())
    except UnsupportedScriptError:
        calls = _find_calls(tree, step_budget)
        if not calls:
            raise
        return Script(calls=calls, items=None)
    return walker.script


def _find_calls(tree: SyntaxTree, step_budget: StepBudget) -> list[ScriptCall]:
    """All calls of a tool by its name (`tools.exec_command(…)`) in the script's text, with those arguments that are
    literals. Empty if the script uses `tools` in any other way, because then it may call more.
    """
    calls: list[ScriptCall] = []
    other_uses = 0
    remaining = [tree.root]
    while remaining:
        node = remaining.pop()
        step_budget.spend()
        if node.type in ("identifier", "shorthand_property_identifier") and tree.text(node) == "tools":
            other_uses += 1
        if node.type == "call_expression" and (name := _tool_name(tree, node)):
            other_uses -= 1
            argument = None
            if arguments := tree.parts(tree.field(node, "arguments")):
                argument = Unknown()
                with suppress(UnsupportedScriptError):
                    argument = _Walker(tree, step_budget).evaluate(arguments[0], Scope())
            calls.append(ScriptCall(name=name, argument=argument))
        if node.type != "string":
            remaining += reversed(tree.parts(node))
    if len(calls) > MAX_CALLS:
        raise UnreadableScriptError(f"more than {MAX_CALLS} calls")
    return [] if other_uses else calls


def _tool_name(tree: SyntaxTree, call: Node) -> str:
    """The tool's name if a call is written as `tools.NAME(…)`, else ""."""
    function = tree.field(call, "function")
    if function.type != "member_expression" or tree.field(call, "arguments").type != "arguments":
        return ""
    owner = tree.field(function, "object")
    is_tool = owner.type == "identifier" and tree.text(owner) == "tools"
    return tree.text(tree.field(function, "property")) if is_tool else ""


class _Return(Exception):
    """Unwinds to the end of the function or script at `return`, with the value returned."""

    def __init__(self, value: Any = None) -> None:
        self.value = value
        super().__init__()


class _Walker:
    """Walks through the statements of one script and collects its calls and its output in `script`.

    `_depth` is the nesting of the code. `_branch_depth` counts the conditional branches around the current statement;
    `_function_branch_depth` is that count at the start of the current function.
    """

    def __init__(self, tree: SyntaxTree, step_budget: StepBudget) -> None:
        self.script = Script()
        self._tree = tree
        self._step_budget = step_budget
        self._depth = 0
        self._branch_depth = 0
        self._function_branch_depth = 0

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        """Count a step and one level of nesting; raises UnreadableScriptError beyond MAX_NESTING."""
        self._step_budget.spend()
        if self._depth >= MAX_NESTING:
            raise UnreadableScriptError("nested too deeply")
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    @contextmanager
    def _in_branch(self) -> Iterator[None]:
        """For code that may not run, or that may run again: what it prints is uncertain."""
        self._branch_depth += 1
        try:
            yield
        finally:
            self._branch_depth -= 1

    def _calls(self, *values: Any) -> frozenset[int]:
        """Indexes of the tool calls whose results the values contain."""
        return calls_in(*values, step_budget=self._step_budget)

    def _spend_for(self, value: Any) -> None:
        """Spend the steps that it takes to copy or walk through a value."""
        calls_in(value, step_budget=self._step_budget)

    # Statements

    def execute_block(self, block: Node, scope: Scope) -> None:
        """Walk through the statements of a block or of the whole script; function declarations are bound first."""
        statements = self._tree.parts(block)
        for statement in statements:
            if statement.type == "function_declaration":
                scope[self._tree.text(self._tree.field(statement, "name"))] = Function(statement, scope)
        for statement in statements:
            self._execute(statement, scope)

    def _execute(self, node: Node, scope: Scope) -> None:  # noqa: C901, PLR0912 - a case per kind of node
        """Walk through one statement."""
        with self._deeper():
            match node.type:
                case "expression_statement" | "else_clause" | "finally_clause":
                    for part in self._tree.parts(node):
                        self._execute(part, scope)
                case "lexical_declaration":
                    for declarator in self._tree.parts(node):
                        initial = self._tree.find_field(declarator, "value")
                        value = None if initial is None else self.evaluate(initial, scope)
                        self._bind(self._tree.field(declarator, "name"), value, scope)
                case "statement_block":
                    self.execute_block(node, scope.new_child())
                case "function_declaration" | "empty_statement":
                    pass
                case "return_statement":
                    if self._branch_depth != self._function_branch_depth:
                        raise UnsupportedScriptError("a return under a condition")
                    raise _Return(*[self.evaluate(part, scope) for part in self._tree.parts(node)])
                case "throw_statement" | "break_statement" | "continue_statement":
                    if not self._branch_depth:
                        raise UnsupportedScriptError(f"{node.type} without a condition")
                    for part in self._tree.parts(node):
                        self.evaluate(part, scope)
                    self.script.items = None  # what follows may not run
                case "if_statement":
                    self.evaluate(self._tree.field(node, "condition"), scope)
                    self._execute_branch(self._tree.field(node, "consequence"), scope)
                    if alternative := self._tree.find_field(node, "alternative"):
                        self._execute_branch(alternative, scope)
                case "while_statement" | "do_statement":
                    for name in ("condition", "body"):
                        self._execute_branch(self._tree.field(node, name), scope)
                case "for_in_statement":
                    self._execute_for_in(node, scope)
                case "try_statement":
                    self._execute_try(node, scope)
                case _:
                    self.evaluate(node, scope)

    def _execute_branch(self, node: Node, scope: Scope) -> None:
        """A statement that may not run, or that may run again."""
        with self._in_branch():
            self._execute(node, scope.new_child())

    def _execute_for_in(self, node: Node, scope: Scope) -> None:
        """A `for (… of …)` or `for (… in …)` loop.

        Every iteration over a literal list is walked. For anything else the body is walked once, with unknown values.
        """
        pattern, body = self._tree.field(node, "left"), self._tree.field(node, "body")
        if self._tree.find_field(node, "kind") is None:
            raise UnsupportedScriptError("a loop that assigns to a variable")
        iterable = self.evaluate(self._tree.field(node, "right"), scope)
        is_literal = isinstance(iterable, list) and self._tree.text(self._tree.field(node, "operator")) == "of"
        for value in iterable if is_literal else [Unknown(self._calls(iterable))]:
            inner = scope.new_child()
            with nullcontext() if is_literal else self._in_branch():
                self._bind(pattern, value, inner)
                self._execute(body, inner)

    def _execute_try(self, node: Node, scope: Scope) -> None:
        """A `try` statement. Its `try` block is taken to run to its end, so only the `catch` block counts as a branch.
        Both other blocks are walked even if it returns.
        """
        try:
            self._execute(self._tree.field(node, "body"), scope)
        finally:
            if handler := self._tree.find_field(node, "handler"):
                inner = scope.new_child()
                if parameter := self._tree.find_field(handler, "parameter"):
                    self._bind(parameter, Unknown(), inner)
                self._execute_branch(self._tree.field(handler, "body"), inner)
            if finalizer := self._tree.find_field(node, "finalizer"):
                self._execute(finalizer, scope)

    # Variables

    def _bind(self, pattern: Node, value: Any, scope: Scope) -> None:
        """Declare the variables of a pattern (`a`, `[a, b]`, `{a, b: c = 1}`) with the matching parts of a value."""
        with self._deeper():
            match pattern.type:
                case "identifier" | "shorthand_property_identifier_pattern":
                    scope[self._tree.text(pattern)] = value
                case "assignment_pattern" | "object_assignment_pattern":
                    value = self._or_default(value, self._tree.field(pattern, "right"), scope)
                    self._bind(self._tree.field(pattern, "left"), value, scope)
                case "rest_pattern":
                    self._bind(self._tree.only_part(pattern), Unknown(self._calls(value)), scope)
                case "array_pattern":
                    index = 0
                    for child in self._tree.children(pattern):
                        if child.type == ",":
                            index += 1
                        elif child.is_named and child.type != "comment":
                            part = value if child.type == "rest_pattern" else self._index(value, index)
                            self._bind(child, part, scope)
                case "object_pattern":
                    for child in self._tree.parts(pattern):
                        if child.type == "rest_pattern":
                            self._bind(child, value, scope)
                        elif child.type == "pair_pattern":
                            key = self._key(self._tree.field(child, "key"), scope)
                            self._bind(self._tree.field(child, "value"), self._member(value, key), scope)
                        else:
                            name = self._tree.text(self._tree.find_field(child, "left") or child)
                            self._bind(child, self._member(value, name), scope)
                case _:
                    raise UnsupportedScriptError(f"{pattern.type} is not supported")

    def _or_default(self, value: Any, default: Node, scope: Scope) -> Any:
        """The value, or the pattern's default if the value is undefined.

        If the value is unknown, the default is evaluated as a branch, for the calls it may make. If the default has
        results of calls, the value may be these: it is Unknown then, with their calls.
        """
        if value is None:
            return self.evaluate(default, scope)
        if isinstance(value, Unknown | Result):
            with self._in_branch():
                calls = self._calls(self.evaluate(default, scope))
            return Unknown(calls | self._calls(value)) if calls else value
        return value

    # Expressions

    def evaluate(self, node: Node, scope: Scope) -> Any:  # noqa: C901, PLR0911, PLR0912 - a case per kind of node
        """The value of an expression."""
        with self._deeper():
            match node.type:
                case "string":
                    return self._tree.literal(node.start_byte + 1, node.end_byte - 1)
                case "template_string":
                    return self._template(node, scope, raw=False)
                case "number":
                    return read_number(self._tree.text(node).replace("_", ""))
                case "true" | "false":
                    return node.type == "true"
                case "null" | "undefined":
                    return None
                case "regex":
                    return Unknown()
                case "identifier" | "shorthand_property_identifier":
                    name = self._tree.text(node)
                    return scope[name] if name in scope else Global(name)
                case "array":
                    return self._values(node, scope)
                case "object":
                    return self._object(node, scope)
                case "parenthesized_expression" | "await_expression" | "sequence_expression":
                    values = [self.evaluate(part, scope) for part in self._tree.parts(node)]
                    return values[-1] if values else Unknown()
                case "member_expression":
                    owner = self.evaluate(self._tree.field(node, "object"), scope)
                    return self._member(owner, self._tree.text(self._tree.field(node, "property")))
                case "subscript_expression":
                    owner = self.evaluate(self._tree.field(node, "object"), scope)
                    return self._index(owner, self.evaluate(self._tree.field(node, "index"), scope))
                case "call_expression":
                    return self._evaluate_call(node, scope)
                case "new_expression":
                    constructor = self.evaluate(self._tree.field(node, "constructor"), scope)
                    arguments = self._tree.find_field(node, "arguments")
                    values = [] if arguments is None else self._values(arguments, scope)
                    return Unknown(self._calls(self._call(constructor, values)))
                case "binary_expression":
                    return self._binary(node, scope)
                case "unary_expression":
                    operator = self._tree.text(self._tree.field(node, "operator"))
                    if operator == "delete":
                        raise UnsupportedScriptError("a field that is deleted")
                    value = self.evaluate(self._tree.field(node, "argument"), scope)
                    return -value if operator == "-" and _is_number(value) else Unknown(self._calls(value))
                case "ternary_expression":
                    condition = self.evaluate(self._tree.field(node, "condition"), scope)
                    with self._in_branch():
                        if_true = self.evaluate(self._tree.field(node, "consequence"), scope)
                        if_false = self.evaluate(self._tree.field(node, "alternative"), scope)
                    return Unknown(self._calls(condition, if_true, if_false))
                case "arrow_function" | "function_expression":
                    return Function(node, scope)
            raise UnsupportedScriptError(f"{node.type} is not supported")

    def _values(self, node: Node, scope: Scope) -> list[Any]:
        """The values in the brackets of an array literal or of a call."""
        values: list[Any] = []
        for part in self._tree.parts(node):
            if part.type != "spread_element":
                values.append(self.evaluate(part, scope))
                continue
            spread = self.evaluate(self._tree.only_part(part), scope)
            calls = self._calls(spread)
            values += spread if isinstance(spread, list) else [Unknown(calls)]
        return values

    def _object(self, node: Node, scope: Scope) -> Any:
        """The value of an object literal: a dict, or Unknown with the calls of all its parts if it spreads a value that
        isn't known to be an object.
        """
        fields: dict[str, Any] = {}
        unknown_spreads: list[Any] = []
        for part in self._tree.parts(node):
            match part.type:
                case "pair":
                    key = self._key(self._tree.field(part, "key"), scope)
                    fields[key] = self.evaluate(self._tree.field(part, "value"), scope)
                case "shorthand_property_identifier":
                    fields[self._tree.text(part)] = self.evaluate(part, scope)
                case "spread_element":
                    spread = self.evaluate(self._tree.only_part(part), scope)
                    self._spend_for(spread)
                    if isinstance(spread, dict):
                        fields |= spread
                    else:
                        unknown_spreads.append(spread)
                case _:
                    raise UnsupportedScriptError(f"{part.type} is not supported")
        return Unknown(self._calls(fields, *unknown_spreads)) if unknown_spreads else fields

    def _key(self, node: Node, scope: Scope) -> str:
        """The name of a property in an object literal or pattern. Raises UnsupportedScriptError if it isn't literal."""
        if node.type == "string":
            return self._tree.literal(node.start_byte + 1, node.end_byte - 1)
        if node.type != "computed_property_name":
            return self._tree.text(node)
        key = self.evaluate(self._tree.only_part(node), scope)
        if not isinstance(key, str):
            raise UnsupportedScriptError("a key that is not known")
        return key

    def _template(self, node: Node, scope: Scope, *, raw: bool) -> Any:
        """The text of a template literal, Joined if a substitution `${…}` in it isn't literal; with `raw`, escape
        sequences stay as they are written.
        """
        literal = self._tree.raw_literal if raw else self._tree.literal
        values: list[Any] = []
        start = node.start_byte + 1
        for part in self._tree.parts(node):
            if part.type == "template_substitution":
                values += [literal(start, part.start_byte), self.evaluate(self._tree.only_part(part), scope)]
                start = part.end_byte
        return self._concatenate([*values, literal(start, node.end_byte - 1)])

    def _binary(self, node: Node, scope: Scope) -> Any:
        """The value of an expression of binary operators. A chain (`a + b + c`) is nested to the left in the syntax
        tree; it is walked in a loop, so that a long one doesn't count as nested.
        """
        chain: list[Node] = []
        while node.type == "binary_expression":
            chain.append(node)
            node = self._tree.field(node, "left")
        value = self.evaluate(node, scope)
        for step in reversed(chain):
            operator = self._tree.text(self._tree.field(step, "operator"))
            with self._in_branch() if operator in SHORT_CIRCUIT_OPERATORS else nullcontext():
                right = self.evaluate(self._tree.field(step, "right"), scope)
            if operator == "+" and _is_number(value) and _is_number(right):
                value += right
            elif operator == "+" and any(isinstance(operand, str | Joined | Json) for operand in (value, right)):
                value = self._concatenate([value, right])
            else:
                value = Unknown(self._calls(value, right))
        return value

    def _member(self, value: Any, name: str) -> Any:
        """The value of `value.name`."""
        match value:
            case Global():
                return Global(f"{value.name}.{name}")
            case dict() if name in value:
                return value[name]
            case list() if name == "length":
                return len(value)
            case Result() if len(value.path) < MAX_PATH:
                return Result(value.call, (*value.path, name))
        return Unknown(self._calls(value))

    def _index(self, value: Any, index: Any) -> Any:
        """The value of `value[index]`."""
        if isinstance(value, list) and isinstance(index, int) and not isinstance(index, bool):
            return value[index] if 0 <= index < len(value) else None
        if isinstance(value, dict | Global) and isinstance(index, str):
            return self._member(value, index)
        if isinstance(value, Result) and isinstance(index, int | str):
            return self._member(value, str(index))
        return Unknown(self._calls(value, index))

    def _concatenate(self, values: list[Any]) -> Any:
        """The concatenated texts of values: a string if all are known, else Joined with adjacent strings merged."""
        parts: list[Any] = []
        for value in values:
            if isinstance(value, Joined):
                parts += value.parts
            else:
                parts.append(self._to_text(value))
        length = sum(len(part) for part in parts if isinstance(part, str))
        self._step_budget.spend(len(parts) + length // TEXT_PER_STEP)
        merged: list[Any] = []
        for is_text, group in groupby(parts, key=lambda part: isinstance(part, str)):
            adjacent = list(group)
            merged += ["".join(adjacent)] if is_text else adjacent
        if length > MAX_TEXT or len(merged) > MAX_ITEMS:
            raise UnreadableScriptError("a text that grows too long")
        return merged[0] if len(merged) == 1 and isinstance(merged[0], str) else Joined(tuple(merged))

    def _to_text(self, value: Any) -> Any:
        """A value converted to a string as JavaScript does, or a symbolic value if that can't be determined."""
        match value:
            case bool():
                return "true" if value else "false"
            case int():
                return str(value)
            case str() | Result() | Json() | Joined() | Unknown():
                return value
        return Unknown(self._calls(value))

    # Calls

    def _evaluate_call(self, node: Node, scope: Scope) -> Any:
        """The value of a call expression: the callee is evaluated, then the arguments, then the call.

        `owner.name(…)` calls the field of an object or of the environment if there is one, else a method.
        """
        function, arguments = self._tree.field(node, "function"), self._tree.field(node, "arguments")
        if arguments.type == "template_string":
            if self.evaluate(function, scope) != Global("String.raw"):
                raise UnsupportedScriptError("a tagged template")
            return self._template(arguments, scope, raw=True)
        if function.type != "member_expression":
            callee = self.evaluate(function, scope)
            return self._call(callee, self._values(arguments, scope))
        owner = self.evaluate(self._tree.field(function, "object"), scope)
        name = self._tree.text(self._tree.field(function, "property"))
        values = self._values(arguments, scope)
        if isinstance(owner, Global) or (isinstance(owner, dict) and name in owner):
            return self._call(self._member(owner, name), values)
        return self._call_method(owner, name, values)

    def _call(self, callee: Any, arguments: list[Any]) -> Any:
        """The result of calling a value."""
        if isinstance(callee, Function):
            return self._run(callee, arguments)
        if isinstance(callee, Global):
            return self._call_global(callee.name, arguments)
        return self._call_unknown(callee, *arguments)

    def _run(self, function: Function, arguments: list[Any]) -> Any:
        """Walk through a function's body with its parameters bound; returns its return value, Unknown if the walk
        reaches the end of the body.
        """
        scope = function.scope.new_child()
        single = self._tree.find_field(function.node, "parameter")  # of `x => …`, without parentheses
        parameters = [single] if single else self._tree.parts(self._tree.field(function.node, "parameters"))
        caller_branch_depth = self._function_branch_depth
        self._function_branch_depth = self._branch_depth
        try:
            with self._deeper():
                for index, parameter in enumerate(parameters):
                    if parameter.type == "rest_pattern":
                        value: Any = arguments[index:]
                    else:
                        value = arguments[index] if index < len(arguments) else None
                    self._bind(parameter, value, scope)
                body = self._tree.field(function.node, "body")
                if body.type != "statement_block":
                    return self.evaluate(body, scope)
                self.execute_block(body, scope)
                return Unknown()
        except _Return as returned:
            return returned.value
        finally:
            self._function_branch_depth = caller_branch_depth

    def _call_unknown(self, *values: Any) -> Unknown:
        """The result of unknown code, which may call the functions among its arguments with any arguments."""
        for value in values:
            if isinstance(value, Function):
                with self._in_branch():
                    self._run(value, [Unknown()] * MAX_CALLBACK_PARAMETERS)
        return Unknown(self._calls(*values))

    def _call_global(self, name: str, arguments: list[Any]) -> Any:  # noqa: PLR0911 - a case per function
        """The result of calling a function of the environment: a tool, an output function or the language's own."""
        first = arguments[0] if arguments else None
        if name.startswith("tools."):
            if len(self.script.calls) >= MAX_CALLS:
                raise UnreadableScriptError(f"more than {MAX_CALLS} calls")
            self._spend_for(first)
            self.script.calls.append(ScriptCall(name=name.removeprefix("tools."), argument=first))
            return Result(len(self.script.calls) - 1)
        if name in ("text", "image"):
            self._print(first if name == "text" else Unknown(self._calls(first)))
            return first
        if name in ("eval", "Function", "exit") or name.startswith(MODIFYING_FUNCTIONS):
            raise UnsupportedScriptError(f"{name} is not supported")
        if name == "yield_control":
            self.script.items = None  # what follows may print into a later output
        if name in ("Promise.all", "Promise.resolve"):
            return first
        if name == "Promise.allSettled" and isinstance(first, list):
            return [{"status": Unknown(self._calls(value)), "value": value} for value in first]
        if name == "JSON.stringify":
            calls = self._calls(first)
            if len(arguments) == 1 and is_plain(first):
                return _to_json(first)
            return Json(first) if calls else Unknown()
        if name == "String":
            return self._concatenate([first])
        if isinstance(first, dict) and name.startswith("Object."):
            self._spend_for(first)
            if name in ("Object.keys", "Object.values"):
                return list(first if name == "Object.keys" else first.values())
            if name == "Object.entries":
                return [[key, value] for key, value in first.items()]
        return self._call_unknown(*arguments)

    def _print(self, value: Any) -> None:
        """Add an item to the output; what is printed becomes uncertain if that may not happen."""
        self._spend_for(value)
        if self._branch_depth or self.script.items is None or len(self.script.items) >= MAX_ITEMS:
            self.script.items = None
        else:
            self.script.items.append(Json(value) if isinstance(value, list | dict) else self._to_text(value))

    def _call_method(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        """The result of `owner.name(...arguments)`."""
        first = arguments[0] if arguments else None
        if name == "then" and isinstance(first, Function):
            value = self._run(first, [owner])
            self._call_unknown(*arguments[1:])
            return value
        if name in ("catch", "finally"):
            self._call_unknown(*arguments)
            return owner
        if isinstance(owner, list):
            self._spend_for(owner)
            if name in LIST_MUTATORS:
                raise UnsupportedScriptError("a list that is changed")
            if name in ("map", "forEach") and isinstance(first, Function):
                returned = [self._run(first, [item, index, owner]) for index, item in enumerate(owner)]
                return returned if name == "map" else None
            if name == "entries":
                return [[index, item] for index, item in enumerate(owner)]
            if name == "join" and (isinstance(first, str) or not arguments):
                return self._join(owner, "," if first is None else first)
        return self._call_unknown(owner, *arguments)

    def _join(self, values: list[Any], separator: str) -> Any:
        """The texts of values with a separator between each two; None is an empty text, as in JavaScript."""
        parts: list[Any] = []
        for value in values:
            parts += [separator, "" if value is None else value]
        return self._concatenate(parts[1:] or [""])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _to_json(value: Any) -> str:
    """The JSON text of a plain value. Raises UnreadableScriptError as soon as it is too long."""
    chunks, length = [], 0
    for chunk in json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).iterencode(value):
        chunks.append(chunk)
        length += len(chunk)
        if length > MAX_TEXT:
            raise UnreadableScriptError("a text that grows too long")
    return "".join(chunks)
