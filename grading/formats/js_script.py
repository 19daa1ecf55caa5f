"""Determines which tools a small JavaScript program calls and what it prints, without running it.

Codex's code mode writes its tool calls as scripts: `const r = await tools.exec_command({cmd: "…"}); text(r.output)`.
tree-sitter parses a script. Its statements are then walked once, in order, with literal values where they can be
determined and `Unknown` elsewhere; a value is never guessed. Unsupported syntax, or exceeding a limit, raises
UnreadableScriptError.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from itertools import groupby
from typing import Any, Final

from tree_sitter import Node

from grading.formats.js_syntax import SyntaxTree, parse, read_number
from grading.formats.js_values import (
    Function,
    Global,
    Joined,
    Json,
    Result,
    Script,
    ScriptCall,
    StepBudget,
    Unknown,
    UnreadableScriptError,
    VariableScope,
    calls_in,
    is_plain,
)

MAX_NESTING: Final = 60
"""Limits the recursion of the walk, so that it never reaches Python's own limit."""
MAX_CALLS: Final = 100
MAX_ITEMS: Final = 400
MAX_TEXT: Final = 1_000_000
MAX_PATH: Final = 6
MAX_GLOBAL_NAME: Final = 200
MAX_INDENT: Final = 10
MAX_CALLBACK_PARAMETERS: Final = 4

LIST_MUTATORS: Final = frozenset(["copyWithin", "fill", "pop", "push", "reverse", "shift", "sort", "splice", "unshift"])
MODIFYING_FUNCTIONS: Final = ("Array.prototype.", "Object.assign", "Object.define", "Object.setPrototypeOf", "Reflect.")
SHORT_CIRCUIT_OPERATORS: Final = ("??", "||", "&&", "??=", "||=", "&&=")
"""Their right operand may not be evaluated."""
ASSIGNMENT_TYPES: Final = ("assignment_expression", "augmented_assignment_expression", "update_expression")
MEMBER_TYPES: Final = ("member_expression", "subscript_expression")
UNSUPPORTED_METHOD_MARKS: Final = frozenset(["get", "set", "*"])
"""A getter, a setter or a generator has one of these before its name."""


def read_script(source: str, step_budget: StepBudget | None = None) -> Script:
    """The tool calls and printed values of a script. Raises UnreadableScriptError if any part of it isn't supported."""
    step_budget = step_budget or StepBudget()
    step_budget.begin_script()
    step_budget.spend(len(source) // 1000)
    tree = parse(source, step_budget)
    walker = _Walker(tree, step_budget)
    with suppress(_FunctionExit, _ScriptExit):
        walker.execute_block(tree.root, VariableScope({}))
    return walker.script


class _FunctionExit(Exception):
    """Unwinds to the end of the function or script at `return` or `throw`, with the value returned."""

    def __init__(self, value: Any = None) -> None:
        self.value = value
        super().__init__()


class _Throw(_FunctionExit):
    """Unwinds to the next `catch` of the function."""


class _ScriptExit(Exception):
    """Unwinds to the end of the script at `exit()`."""


class _Walker:
    """Walks through the statements of one script and collects its calls and its output in `script`.

    `_depth` is the nesting of the code. `_branch_depth` counts the conditional branches around the current statement;
    `_function_branch_depth` is that count at the start of the current function. If they are equal, the function's code
    runs whenever it is called. `_modified` has the lists and objects that the script modified in a way that makes their
    content uncertain, by id(). During a rehearsal, code that may run repeatedly is walked to see what it changes, and
    its calls are not recorded.
    """

    def __init__(self, tree: SyntaxTree, step_budget: StepBudget) -> None:
        self.script = Script()
        self._tree = tree
        self._modified: dict[int, Any] = {}
        self._is_rehearsal = False
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
        """For code that may not run: what it prints is uncertain, and so is what it assigns."""
        self._branch_depth += 1
        try:
            yield
        finally:
            self._branch_depth -= 1

    def _calls(self, *values: Any) -> frozenset[int]:
        return calls_in(*values, step_budget=self._step_budget)

    # Statements

    def execute_block(self, block: Node, scope: VariableScope) -> None:
        """Walk through the statements of a block or of the whole script; function declarations are bound first."""
        statements = self._tree.parts(block)
        for statement in statements:
            if statement.type == "function_declaration":
                scope.names[self._tree.text(self._tree.field(statement, "name"))] = Function(statement, scope)
        for statement in statements:
            self._execute(statement, scope)

    def _execute(self, node: Node, scope: VariableScope) -> None:  # noqa: C901, PLR0912 - a case per kind of node
        with self._deeper():
            match node.type:
                case "expression_statement" | "else_clause" | "finally_clause":
                    for part in self._tree.parts(node):
                        self._execute(part, scope)
                case "lexical_declaration" | "variable_declaration":
                    for declarator in self._tree.parts(node):
                        initial = self._tree.find_field(declarator, "value")
                        value = None if initial is None else self._evaluate(initial, scope)
                        self._bind(self._tree.field(declarator, "name"), value, scope)
                case "statement_block":
                    self.execute_block(node, VariableScope({}, scope, self._branch_depth))
                case "function_declaration" | "empty_statement":
                    pass
                case "return_statement" | "throw_statement":
                    values = [self._evaluate(part, scope) for part in self._tree.parts(node)]
                    if self._branch_depth == self._function_branch_depth:
                        raise _FunctionExit(*values) if node.type == "return_statement" else _Throw(*values)
                    self.script.items = None  # what follows may not run
                case "break_statement" | "continue_statement":
                    if not self._branch_depth:
                        raise UnreadableScriptError("a loop left without a condition")
                    self.script.items = None  # later iterations may not happen
                case "if_statement":
                    self._evaluate(self._tree.field(node, "condition"), scope)
                    self._execute_branch(self._tree.field(node, "consequence"), scope)
                    if alternative := self._tree.find_field(node, "alternative"):
                        self._execute_branch(alternative, scope)
                case "while_statement" | "do_statement":
                    self._repeat_parts(self._tree.parts(node), scope)
                case "for_statement":
                    self._execute_for(node, scope)
                case "for_in_statement":
                    self._execute_for_in(node, scope)
                case "try_statement":
                    self._execute_try(node, scope)
                case _:
                    self._evaluate(node, scope)

    def _execute_branch(self, node: Node, scope: VariableScope) -> None:
        """A statement that may not run."""
        with self._in_branch():
            self._execute(node, VariableScope({}, scope, self._branch_depth))

    def _repeat_parts(self, parts: list[Node], scope: VariableScope) -> None:
        """Walk the parts of a loop that may run any number of times."""

        def walk() -> None:
            for part in parts:
                self._execute(part, VariableScope({}, scope, self._branch_depth))

        self._repeat(walk)

    def _execute_for(self, node: Node, scope: VariableScope) -> None:
        """A `for (;;)` loop."""
        inner = VariableScope({}, scope, self._branch_depth)
        initializer, *parts = self._tree.parts(node)
        self._execute(initializer, inner)
        self._repeat_parts(parts, inner)

    def _execute_for_in(self, node: Node, scope: VariableScope) -> None:
        """A `for (… of …)` or `for (… in …)` loop.

        Every iteration over a literal list is walked. For anything else, and for an empty list, the body is walked as
        code that may run any number of times, with unknown values.
        """
        pattern, body = self._tree.field(node, "left"), self._tree.field(node, "body")
        is_declared = self._tree.find_field(node, "kind") is not None
        iterable = self._evaluate(self._tree.field(node, "right"), scope)
        if self._tree.text(self._tree.field(node, "operator")) == "of" and isinstance(iterable, list) and iterable:
            for value in list(iterable):  # a copy, because the body may change the list
                inner = VariableScope({}, scope, self._branch_depth)
                self._bind(pattern, value, inner, declare=is_declared)
                self._execute(body, inner)
            return
        inner = VariableScope({}, scope, self._branch_depth)
        with self._in_branch():
            self._bind(pattern, Unknown(self._calls(iterable)), inner, declare=is_declared)
        self._repeat_parts([body], inner)

    def _execute_try(self, node: Node, scope: VariableScope) -> None:
        """A `try` statement. Its `try` block is taken to run to its end or to a `throw` of its own, so only the `catch`
        block counts as a branch. The `finally` block is walked in any case.
        """
        handler, finalizer = self._tree.find_field(node, "handler"), self._tree.find_field(node, "finalizer")
        try:
            with suppress(_Throw) if handler else nullcontext():
                self._execute(self._tree.field(node, "body"), scope)
            if handler:
                with self._in_branch():
                    inner = VariableScope({}, scope, self._branch_depth)
                    if parameter := self._tree.find_field(handler, "parameter"):
                        self._bind(parameter, Unknown(), inner)
                    self._execute(self._tree.field(handler, "body"), inner)
        except _FunctionExit:
            if finalizer:
                self._execute(finalizer, scope)
            raise
        if finalizer:
            self._execute(finalizer, scope)

    def _repeat(self, walk: Callable[[], object]) -> None:
        """Walk code that may run any number of times, by calling `walk` twice.

        The first walk is a rehearsal, in which no tool calls are recorded: it makes whatever the code changes Unknown,
        as it is when a later iteration begins. Code within a rehearsal is walked once.
        """
        with self._in_branch():
            if not self._is_rehearsal:
                self._is_rehearsal = True
                try:
                    walk()
                finally:
                    self._is_rehearsal = False
            walk()

    # Variables

    def _bind(self, pattern: Node, value: Any, scope: VariableScope, *, declare: bool = True) -> None:
        """Give the variables of a pattern (`a`, `[a, b]`, `{a, b: c = 1}`) the matching parts of a value.

        They are declared in `scope`, or else assigned. An assigned pattern may also have members (`[a.b] = value`).
        """
        with self._deeper():
            match pattern.type:
                case "identifier" | "shorthand_property_identifier_pattern" if declare:
                    scope.names[self._tree.text(pattern)] = value
                case "identifier" | "shorthand_property_identifier_pattern":
                    self._assign(self._tree.text(pattern), value, scope)
                case "member_expression" | "subscript_expression" if not declare:
                    self._taint(self._evaluate_owner(pattern, scope), value)
                case "parenthesized_expression" if not declare:
                    self._bind(self._tree.only_part(pattern), value, scope, declare=False)
                case "assignment_pattern" | "object_assignment_pattern":
                    value = self._or_default(value, self._tree.field(pattern, "right"), scope)
                    self._bind(self._tree.field(pattern, "left"), value, scope, declare=declare)
                case "rest_pattern":
                    self._bind(self._tree.only_part(pattern), Unknown(self._calls(value)), scope, declare=declare)
                case "array_pattern":
                    index = 0
                    for child in self._tree.children(pattern):
                        if child.type == ",":
                            index += 1
                        elif child.type == "rest_pattern":
                            self._bind(child, value, scope, declare=declare)
                        elif child.is_named and child.type != "comment":
                            self._bind(child, self._index(value, index), scope, declare=declare)
                case "object_pattern":
                    self._bind_object(pattern, value, scope, declare=declare)
                case _:
                    raise UnreadableScriptError(f"{pattern.type} is not supported")

    def _bind_object(self, pattern: Node, value: Any, scope: VariableScope, *, declare: bool) -> None:
        for part in self._tree.parts(pattern):
            if part.type == "rest_pattern":
                self._bind(part, value, scope, declare=declare)
            elif part.type == "pair_pattern":
                key = self._key(self._tree.field(part, "key"), scope)
                self._bind(self._tree.field(part, "value"), self._member(value, key), scope, declare=declare)
            else:
                name = self._tree.text(self._tree.find_field(part, "left") or part)
                self._bind(part, self._member(value, name), scope, declare=declare)

    def _or_default(self, value: Any, default: Node, scope: VariableScope) -> Any:
        """The value, or the pattern's default if the value is undefined.

        If the value is unknown, the default is evaluated as a branch, for the calls it may make. If the default has
        results of calls, the value may be these: it is Unknown then, with their calls.
        """
        if value is None:
            return self._evaluate(default, scope)
        if isinstance(value, Unknown | Result):
            with self._in_branch():
                calls = self._calls(self._evaluate(default, scope))
            return Unknown(calls | self._calls(value)) if calls else value
        return value

    def _assign(self, name: str, value: Any, scope: VariableScope) -> None:
        """Assign to a variable; Unknown if this happens in a branch that doesn't enclose the variable's scope."""
        declaring = scope.find(name)
        if declaring is None:
            self._taint(Global(name), value)
            return
        if self._branch_depth > declaring.branch_depth:
            value = Unknown(self._calls(value, declaring.names[name]))
        declaring.names[name] = value

    def _taint(self, modified: Any, value: Any = None) -> None:
        """Note that the script put `value` into `modified`: a list, an object, a result or the environment itself.

        The content of a list or object becomes Unknown, and calls whose results were modified become `tampered`.
        """
        unknown = Unknown(self._calls(modified, value))
        match modified:
            case Global():
                self.script.items = None  # the functions that print may have been replaced
            case list():
                modified[:] = [unknown]
                self._modified[id(modified)] = modified
            case dict():
                modified.clear()
                modified["unknown"] = unknown
                self._modified[id(modified)] = modified
            case _:
                self.script.tampered |= self._calls(modified)

    def _is_modified(self, value: Any) -> bool:
        return id(value) in self._modified

    # Expressions

    def _evaluate(self, node: Node, scope: VariableScope) -> Any:
        """The value of an expression; Unknown if the script modified it."""
        value = self._resolve(node, scope)
        return Unknown(self._calls(value)) if self._is_modified(value) else value

    def _resolve(self, node: Node, scope: VariableScope) -> Any:  # noqa: C901, PLR0911, PLR0912 - a case per kind of node
        """The value of an expression as it is, also if the script modified it; `_evaluate` makes it Unknown then."""
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
                    declaring = scope.find(name)
                    return Global(name) if declaring is None else declaring.names[name]
                case "array":
                    return self._values(node, scope)
                case "object":
                    return self._object(node, scope)
                case "parenthesized_expression" | "await_expression" | "sequence_expression":
                    values = [self._evaluate(part, scope) for part in self._tree.parts(node)]
                    return values[-1] if values else Unknown()
                case "member_expression":
                    return self._member(
                        self._evaluate(self._tree.field(node, "object"), scope),
                        self._tree.text(self._tree.field(node, "property")),
                    )
                case "subscript_expression":
                    owner = self._evaluate(self._tree.field(node, "object"), scope)
                    return self._index(owner, self._evaluate(self._tree.field(node, "index"), scope))
                case "call_expression":
                    return self._evaluate_call(node, scope)
                case "new_expression":
                    constructor = self._evaluate(self._tree.field(node, "constructor"), scope)
                    arguments = self._tree.find_field(node, "arguments")
                    values = [] if arguments is None else self._values(arguments, scope)
                    return Unknown(self._calls(self._call(constructor, values)))
                case "binary_expression":
                    return self._binary(node, scope)
                case "unary_expression":
                    return self._unary(node, scope)
                case "ternary_expression":
                    condition = self._evaluate(self._tree.field(node, "condition"), scope)
                    with self._in_branch():
                        if_true = self._evaluate(self._tree.field(node, "consequence"), scope)
                        if_false = self._evaluate(self._tree.field(node, "alternative"), scope)
                    return Unknown(self._calls(condition, if_true, if_false))
                case kind if kind in ASSIGNMENT_TYPES:
                    return self._evaluate_assignment(node, scope)
                case "arrow_function" | "function_expression":
                    return Function(node, scope)
            raise UnreadableScriptError(f"{node.type} is not supported")

    def _values(self, node: Node, scope: VariableScope) -> list[Any]:
        """The values in the brackets of an array literal or of a call."""
        values: list[Any] = []
        for part in self._tree.parts(node):
            if part.type != "spread_element":
                values.append(self._evaluate(part, scope))
                continue
            spread = self._evaluate(self._tree.only_part(part), scope)
            if isinstance(spread, list):
                self._step_budget.spend(len(spread))
                values += spread
            else:
                values.append(Unknown(self._calls(spread)))
        return values

    def _object(self, node: Node, scope: VariableScope) -> Any:
        """An object literal; Unknown if it spreads anything but an object."""
        fields: dict[str, Any] = {}
        unknown_spreads: list[Any] = []
        for part in self._tree.parts(node):
            match part.type:
                case "pair":
                    key = self._key(self._tree.field(part, "key"), scope)
                    fields[key] = self._evaluate(self._tree.field(part, "value"), scope)
                case "shorthand_property_identifier":
                    fields[self._tree.text(part)] = self._evaluate(part, scope)
                case "method_definition":
                    if UNSUPPORTED_METHOD_MARKS & {child.type for child in self._tree.children(part)}:
                        raise UnreadableScriptError(f"{part.type} is not supported")
                    fields[self._key(self._tree.field(part, "name"), scope)] = Function(part, scope)
                case "spread_element":
                    spread = self._evaluate(self._tree.only_part(part), scope)
                    if isinstance(spread, dict):
                        self._step_budget.spend(len(spread))
                        fields |= spread
                    else:
                        unknown_spreads.append(spread)
                case _:
                    raise UnreadableScriptError(f"{part.type} is not supported")
        return Unknown(self._calls(fields, *unknown_spreads)) if unknown_spreads else fields

    def _key(self, node: Node, scope: VariableScope) -> str:
        """The name of a property in an object literal or pattern. Raises UnreadableScriptError if it isn't literal."""
        if node.type == "string":
            return self._tree.literal(node.start_byte + 1, node.end_byte - 1)
        if node.type != "computed_property_name":
            return self._tree.text(node)
        key = self._evaluate(self._tree.only_part(node), scope)
        if not isinstance(key, str):
            raise UnreadableScriptError("a key that is not known")
        return key

    def _template(self, node: Node, scope: VariableScope, *, raw: bool) -> Any:
        """The text of a template literal, Joined if a substitution `${…}` in it isn't literal; with `raw`, escape
        sequences stay as they are written.
        """
        literal = self._tree.raw_literal if raw else self._tree.literal
        values: list[Any] = []
        start = node.start_byte + 1
        for part in self._tree.parts(node):
            if part.type == "template_substitution":
                values += [literal(start, part.start_byte), self._evaluate(self._tree.only_part(part), scope)]
                start = part.end_byte
        return self._concatenate([*values, literal(start, node.end_byte - 1)])

    def _binary(self, node: Node, scope: VariableScope) -> Any:
        """The value of an expression of binary operators. A chain (`a + b + c`) is nested to the left in the syntax
        tree; it is walked in a loop, so that a long one doesn't count as nested.
        """
        chain: list[Node] = []
        while node.type == "binary_expression":
            chain.append(node)
            node = self._tree.field(node, "left")
        value = self._evaluate(node, scope)
        for step in reversed(chain):
            value = self._operate(value, step, scope)
        return value

    def _operate(self, value: Any, node: Node, scope: VariableScope) -> Any:
        """The result of the node's operator for a left operand, `value`, and the node's right operand, which is
        evaluated here.
        """
        operator = self._tree.text(self._tree.field(node, "operator"))
        with self._in_branch() if operator in SHORT_CIRCUIT_OPERATORS else nullcontext():
            right_value = self._evaluate(self._tree.field(node, "right"), scope)
        return self._add(value, right_value) if operator in ("+", "+=") else Unknown(self._calls(value, right_value))

    def _unary(self, node: Node, scope: VariableScope) -> Any:
        operator, argument = self._tree.text(self._tree.field(node, "operator")), self._tree.field(node, "argument")
        if operator == "delete" and argument.type in MEMBER_TYPES:
            self._taint(self._evaluate_owner(argument, scope))
            return Unknown()
        value = self._evaluate(argument, scope)
        if operator == "-" and _is_number(value):
            return -value
        return Unknown(self._calls(value))

    def _evaluate_assignment(self, node: Node, scope: VariableScope) -> Any:
        """The value of an assignment (`=`), perhaps with an operator (`+=`), or of an update (`++`), after making it.

        The owner and the index of a target such as `owner[index]` are evaluated once, before the value.
        """
        target = self._tree.find_field(node, "left") or self._tree.field(node, "argument")
        is_member = target.type in MEMBER_TYPES
        owner = self._evaluate_owner(target, scope) if is_member else None
        if node.type == "assignment_expression":
            value = self._evaluate(self._tree.field(node, "right"), scope)
        else:
            before = Unknown(self._calls(owner)) if is_member else self._evaluate(target, scope)
            if node.type == "update_expression":
                value = Unknown(self._calls(before))
            else:
                value = self._operate(before, node, scope)
        if is_member:
            self._taint(owner, value)
        else:
            self._bind(target, value, scope, declare=False)
        return value

    def _evaluate_owner(self, member: Node, scope: VariableScope) -> Any:
        """The value of `owner` in an expression `owner.name` or `owner[index]`; evaluates the index.

        Unlike `_evaluate`, this doesn't make a list or object unknown that the script modified.
        """
        owner = self._resolve(self._tree.field(member, "object"), scope)
        if index := self._tree.find_field(member, "index"):
            self._evaluate(index, scope)
        return owner

    def _member(self, value: Any, name: str) -> Any:
        """The value of `value.name`."""
        match value:
            case Global():
                return Global(f"{value.name}.{name}"[:MAX_GLOBAL_NAME])
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

    def _add(self, left_value: Any, right_value: Any) -> Any:
        """The value of `left + right`."""
        if _is_number(left_value) and _is_number(right_value):
            return left_value + right_value
        if isinstance(left_value, str | Joined | Json) or isinstance(right_value, str | Joined | Json):
            return self._concatenate([left_value, right_value])
        return Unknown(self._calls(left_value, right_value))

    def _concatenate(self, values: list[Any]) -> Any:
        """The concatenated texts of values: a string if all are known, else Joined with adjacent strings merged."""
        parts: list[Any] = []
        for value in values:
            if isinstance(value, Joined):
                parts += value.parts
            else:
                parts.append(self._to_text(value))
        length = sum(len(part) for part in parts if isinstance(part, str))
        self._step_budget.spend(len(parts) + length // 1000)
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

    def _evaluate_call(self, node: Node, scope: VariableScope) -> Any:
        """The value of a call expression: the callee is evaluated, then the arguments, then the call.

        `owner.name(…)` calls the field of an object or of the environment if there is one, else a method.
        """
        function, arguments = self._tree.field(node, "function"), self._tree.field(node, "arguments")
        if arguments.type == "template_string":
            if self._evaluate(function, scope) != Global("String.raw"):
                raise UnreadableScriptError("a tagged template")
            return self._template(arguments, scope, raw=True)
        if function.type != "member_expression":
            callee = self._evaluate(function, scope)
            return self._call(callee, self._values(arguments, scope))
        owner = self._resolve(self._tree.field(function, "object"), scope)
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
        self._run_callbacks(arguments)
        return Unknown(self._calls(callee, *arguments))

    def _run(self, function: Function, arguments: list[Any]) -> Any:
        """Walk through a function's body with its parameters bound; returns its return value, Unknown if the walk
        reaches the end of the body.
        """
        scope = VariableScope({}, function.scope, self._branch_depth)
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
                    return self._evaluate(body, scope)
                self.execute_block(body, scope)
                return Unknown()
        except _Throw:
            # The caller, or a `catch` somewhere, is walked as if it went on: no call is missed, but nothing is certain.
            self.script.items = None
            return Unknown()
        except _FunctionExit as function_exit:
            return function_exit.value
        finally:
            self._function_branch_depth = caller_branch_depth

    def _run_callbacks(self, arguments: list[Any]) -> None:
        """Run functions passed to unknown code, which may or may not call them, with unknown arguments."""
        for argument in arguments:
            if isinstance(argument, Function):
                self._repeat(partial(self._run, argument, [Unknown()] * MAX_CALLBACK_PARAMETERS))

    def _call_global(self, name: str, arguments: list[Any]) -> Any:
        """The result of calling a function of the environment: a tool, an output function or the language's own."""
        first = arguments[0] if arguments else None
        if name.startswith("tools."):
            if self._is_rehearsal:
                return Unknown()
            if len(self.script.calls) >= MAX_CALLS:
                raise UnreadableScriptError(f"more than {MAX_CALLS} calls")
            self.script.calls.append(ScriptCall(name=name.removeprefix("tools."), argument=self._copy(first)))
            return Result(len(self.script.calls) - 1)
        if name in ("text", "image"):
            self._print(first if name == "text" else Unknown(self._calls(first)))
            return first
        if name in ("eval", "Function"):
            raise UnreadableScriptError("code made by code")
        if name.startswith(MODIFYING_FUNCTIONS):
            self._taint(first, arguments[1:])
        if name == "exit" and not self._branch_depth:
            raise _ScriptExit
        if name in ("exit", "yield_control"):
            self.script.items = None  # what follows may not run, or print into a later output
        return self._call_library(name, first, arguments)

    def _print(self, value: Any) -> None:
        """Add an item to the output; what is printed becomes uncertain if that may not happen."""
        if self._branch_depth or self.script.items is None or len(self.script.items) >= MAX_ITEMS:
            self.script.items = None
        else:
            printed = self._copy(value)
            self.script.items.append(Json(printed) if isinstance(printed, list | dict) else self._to_text(printed))

    def _copy(self, value: Any) -> Any:
        """A copy of a value, which later changes by the script don't reach. Costs a step for each part of the value.

        What the script has modified becomes Unknown.
        """
        with self._deeper():
            if isinstance(value, str):
                self._step_budget.spend(len(value) // 1000)
                return value
            is_modified = self._is_modified(value)
            if isinstance(value, list) and not is_modified:
                return [self._copy(part) for part in value]
            if isinstance(value, dict) and not is_modified:
                return {key: self._copy(part) for key, part in value.items()}
            calls = self._calls(value)
            return Unknown(calls) if is_modified or calls & self.script.tampered else value

    def _call_library(self, name: str, first: Any, arguments: list[Any]) -> Any:
        """The result of calling a function of the language's standard library; `first` is its first argument."""
        if name in ("Promise.all", "Promise.resolve"):
            return first
        if name in ("Array.from", "structuredClone") and isinstance(first, list):
            return self._copy(first)
        if name == "Promise.allSettled" and isinstance(first, list):
            return [{"status": Unknown(self._calls(value)), "value": value} for value in first]
        if name == "JSON.stringify":
            return self._stringify(first, arguments)
        if name == "String":
            return self._concatenate([first])
        if isinstance(first, dict):
            self._step_budget.spend(len(first))
            if name in ("Object.keys", "Object.values"):
                return list(first if name == "Object.keys" else first.values())
            if name == "Object.entries":
                return [[key, value] for key, value in first.items()]
        self._run_callbacks(arguments)
        return Unknown(self._calls(*arguments))

    def _stringify(self, value: Any, arguments: list[Any]) -> Any:
        """The result of `JSON.stringify(value)` or `JSON.stringify(value, null, indent)`, indents of 1 to 10 spaces."""
        value = self._copy(value)
        if not is_plain(value):
            return Json(value) if self._calls(value) else Unknown()
        if len(arguments) == 1:
            return _to_json(value, separators=(",", ":"))
        indent = arguments[2] if len(arguments) > 2 else None  # noqa: PLR2004
        if isinstance(indent, int) and 0 < indent <= MAX_INDENT:
            return _to_json(value, indent=indent)
        return Unknown()

    def _call_method(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        """The result of `owner.name(...arguments)`."""
        first = arguments[0] if arguments else None
        if name == "then" and isinstance(first, Function):
            value = self._run(first, [owner])
            self._run_callbacks(arguments[1:])
            return value
        if name in ("catch", "finally"):
            self._run_callbacks(arguments)
            return owner
        if isinstance(owner, list) and not self._is_modified(owner):
            return self._call_list_method(owner, name, arguments)
        if isinstance(owner, list | Result) and name in LIST_MUTATORS:
            self._taint(owner, arguments)
        if isinstance(owner, str):
            self._step_budget.spend(len(owner) // 1000)
            if name == "trim":
                return owner.strip()
            if name == "split" and isinstance(first, str) and first and len(arguments) == 1:
                self._step_budget.spend(owner.count(first))
                return owner.split(first)
        self._run_callbacks(arguments)
        return Unknown(self._calls(owner, *arguments))

    def _call_list_method(self, owner: list[Any], name: str, arguments: list[Any]) -> Any:
        """The result of `owner.name(...arguments)` for a list that the script did not modify in an uncertain way."""
        first = arguments[0] if arguments else None
        self._step_budget.spend(len(owner))
        if name in ("map", "forEach") and isinstance(first, Function):
            returned = [self._run(first, [item, index, owner]) for index, item in enumerate(list(owner))]
            return returned if name == "map" else None
        if name == "entries":
            return [[index, item] for index, item in enumerate(owner)]
        if name == "join" and (isinstance(first, str) or not arguments):
            separator = "," if first is None else first
            texts: list[Any] = []
            for item in owner:
                texts += [separator, "" if item is None else item]
            return self._concatenate(texts[1:] or [""])  # without the separator before the first item
        if name == "push" and not self._branch_depth:
            self._step_budget.spend(len(arguments))
            owner += arguments
            return Unknown()
        if name in LIST_MUTATORS:
            self._taint(owner, arguments)
            return Unknown()
        self._run_callbacks(arguments)
        return Unknown(self._calls(owner, *arguments))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _to_json(value: Any, **options: Any) -> str:
    """The JSON text of a plain value. Raises UnreadableScriptError as soon as it is too long."""
    chunks, length = [], 0
    for chunk in json.JSONEncoder(ensure_ascii=False, **options).iterencode(value):
        chunks.append(chunk)
        length += len(chunk)
        if length > MAX_TEXT:
            raise UnreadableScriptError("a text that grows too long")
    return "".join(chunks)
