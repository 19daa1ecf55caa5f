"""Determines which tools a small JavaScript program calls and what it prints, without running it.

Codex's code mode writes its tool calls as scripts: `const r = await tools.exec_command({cmd: "…"}); text(r.output)`.
tree-sitter parses a script. Its statements are then walked once, in order, with literal values where they can be
determined and `Unknown` elsewhere; a value is never guessed. Unsupported syntax, or exceeding a limit, raises
UnreadableScriptError.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from tree_sitter import Node

from grading.formats.js_syntax import descendants, field_of, only_part, parse, parts_of, read_number, unescape
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
MAX_INDENT: Final = 10

LIST_MUTATORS: Final = frozenset(["copyWithin", "fill", "pop", "push", "reverse", "shift", "sort", "splice", "unshift"])
MODIFYING_FUNCTIONS: Final = ("Object.assign", "Object.define", "Object.setPrototypeOf", "Reflect.")
UNKNOWN_KEY: Final = "..."
"""Marks an object that the script modified: it may have any fields."""
FUNCTION_TYPES: Final = ("arrow_function", "function_expression", "function_declaration", "method_definition")
IDENTIFIER_TYPES: Final = ("identifier", "shorthand_property_identifier", "shorthand_property_identifier_pattern")


def read_script(source: str, step_budget: StepBudget | None = None) -> Script:
    """The tool calls and printed values of a script. Raises UnreadableScriptError if any part of it isn't supported."""
    step_budget = step_budget or StepBudget()
    step_budget.begin_script()
    step_budget.spend(len(source) // 1000)
    root, encoded = parse(source, step_budget)
    walker = _Walker(encoded, step_budget)
    with suppress(_FunctionExit):
        walker.execute_block(root, VariableScope({}))
    return walker.script


class _FunctionExit(Exception):
    """Unwinds to the end of the function or script at `return`, `throw` or `exit()`, with the value returned."""

    def __init__(self, value: Any = None) -> None:
        self.value = value
        super().__init__()


class _Walker:
    """Walks through the statements of one script and collects its calls and its output in `script`.

    `_branch_depth` counts the conditional branches around the current statement; `_function_branch_depth` is that
    count at the start of the current function. If they are equal, the function's code runs whenever it is called.
    """

    def __init__(self, source: bytes, step_budget: StepBudget) -> None:
        self.script = Script()
        self._source = source
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

    def _text(self, node: Node) -> str:
        # Not `node.text`, which is slow: it reads the source byte by byte, by the function that the parser was given.
        return self._source[node.start_byte : node.end_byte].decode()

    # Statements

    def execute_block(self, block: Node, scope: VariableScope) -> None:
        """Walk through the statements of a block or of the whole script; function declarations are bound first."""
        statements = parts_of(block)
        for statement in statements:
            if statement.type == "function_declaration":
                scope.names[self._text(field_of(statement, "name"))] = Function(statement, scope)
        for statement in statements:
            self._execute(statement, scope)

    def _execute(self, node: Node, scope: VariableScope) -> None:  # noqa: C901, PLR0912 - a case per kind of node
        with self._deeper():
            match node.type:
                case "expression_statement" | "else_clause" | "finally_clause" | "parenthesized_expression":
                    for part in parts_of(node):
                        self._execute(part, scope)
                case "lexical_declaration" | "variable_declaration":
                    for declarator in parts_of(node):
                        initial = declarator.child_by_field_name("value")
                        value = None if initial is None else self._evaluate(initial, scope)
                        self._bind(field_of(declarator, "name"), value, scope)
                case "statement_block":
                    self.execute_block(node, VariableScope({}, scope, self._branch_depth))
                case "function_declaration" | "empty_statement":
                    pass
                case "return_statement" | "throw_statement":
                    values = [self._evaluate(part, scope) for part in parts_of(node)]
                    if self._branch_depth == self._function_branch_depth:
                        raise _FunctionExit(*values)
                    self.script.items = None
                case "break_statement" | "continue_statement":
                    if not self._branch_depth:
                        raise UnreadableScriptError("a loop left without a condition")
                    self.script.items = None  # later iterations may not happen
                case "if_statement":
                    self._evaluate(field_of(node, "condition"), scope)
                    self._execute_branch(field_of(node, "consequence"), scope)
                    if alternative := node.child_by_field_name("alternative"):
                        self._execute_branch(alternative, scope)
                case "while_statement" | "do_statement":
                    self._forget_assigned(node, scope)
                    for part in parts_of(node):  # the condition comes first, except in a `do` loop
                        if part.type == "parenthesized_expression":
                            self._evaluate(part, scope)
                        else:
                            self._execute_branch(part, scope)
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

    def _execute_for(self, node: Node, scope: VariableScope) -> None:
        """A `for (;;)` loop: the body is walked once, with unknown values for what the loop assigns."""
        inner = VariableScope({}, scope, self._branch_depth)
        self._execute(field_of(node, "initializer"), inner)
        self._forget_assigned(node, inner)
        self._execute(field_of(node, "condition"), inner)
        self._execute_branch(field_of(node, "body"), inner)
        if increment := node.child_by_field_name("increment"):
            self._execute_branch(increment, inner)

    def _execute_for_in(self, node: Node, scope: VariableScope) -> None:
        """A `for (… of …)` or `for (… in …)` loop.

        Every iteration over a literal list is walked, else the body once with unknown values.
        """
        pattern, body = field_of(node, "left"), field_of(node, "body")
        iterable = self._evaluate(field_of(node, "right"), scope)
        if self._text(field_of(node, "operator")) == "of" and isinstance(iterable, list) and iterable:
            for value in list(iterable):
                inner = VariableScope({}, scope, self._branch_depth)
                self._bind(pattern, value, inner)
                self._execute(body, inner)
            return
        self._forget_assigned(body, scope)
        inner = VariableScope({}, scope, self._branch_depth)
        self._bind(pattern, Unknown(self._calls(iterable)), inner)
        self._execute_branch(body, inner)

    def _execute_try(self, node: Node, scope: VariableScope) -> None:
        """A `try` statement; only its `catch` block counts as a branch."""
        self._execute(field_of(node, "body"), scope)
        if handler := node.child_by_field_name("handler"):
            inner = VariableScope({}, scope, self._branch_depth)
            if parameter := handler.child_by_field_name("parameter"):
                self._bind(parameter, Unknown(), inner)
            self._execute_branch(field_of(handler, "body"), inner)
        if finalizer := node.child_by_field_name("finalizer"):
            self._execute(finalizer, scope)

    def _forget_assigned(self, loop: Node, scope: VariableScope) -> None:
        """Make variables Unknown that are assigned or modified in a loop, which may do so repeatedly."""
        for node in descendants(loop):
            self._step_budget.spend()
            target = None
            if node.type in ("assignment_expression", "augmented_assignment_expression"):
                target = field_of(node, "left")
            elif node.type == "update_expression":
                target = field_of(node, "argument")
            elif node.type == "call_expression" and field_of(node, "function").type == "member_expression":
                method = field_of(node, "function")
                if self._text(field_of(method, "property")) in LIST_MUTATORS:
                    target = field_of(method, "object")
            if target is not None:
                self._forget(target, scope)

    def _forget(self, target: Node, scope: VariableScope, calls: frozenset[int] = frozenset()) -> None:
        """Make every variable in the target of an assignment Unknown."""
        for node in descendants(target):
            self._step_budget.spend()
            if node.type in IDENTIFIER_TYPES:
                name = self._text(node)
                declaring = scope.find(name) or scope
                declaring.names[name] = Unknown(calls | self._calls(declaring.names.get(name)))

    # Variables

    def _bind(self, pattern: Node, value: Any, scope: VariableScope) -> None:
        """Declare the variables of a pattern (`a`, `[a, b]`, `{a, b: c = 1}`) with the matching parts of a value."""
        with self._deeper():
            match pattern.type:
                case "identifier" | "shorthand_property_identifier_pattern":
                    scope.names[self._text(pattern)] = value
                case "assignment_pattern" | "object_assignment_pattern":
                    if value is None:
                        value = self._evaluate(field_of(pattern, "right"), scope)
                    self._bind(field_of(pattern, "left"), value, scope)
                case "rest_pattern":
                    self._bind(only_part(pattern), Unknown(self._calls(value)), scope)
                case "array_pattern":
                    index = 0
                    for child in pattern.children:
                        if child.type == ",":
                            index += 1
                        elif child.type == "rest_pattern":
                            self._bind(child, value, scope)
                        elif child.is_named and child.type != "comment":
                            self._bind(child, self._index(value, index), scope)
                case "object_pattern":
                    self._bind_object(pattern, value, scope)
                case _:
                    raise UnreadableScriptError(f"{pattern.type} is not supported")

    def _bind_object(self, pattern: Node, value: Any, scope: VariableScope) -> None:
        for part in parts_of(pattern):
            if part.type == "rest_pattern":
                self._bind(part, value, scope)
            elif part.type == "pair_pattern":
                key = self._key(field_of(part, "key"), scope)
                self._bind(field_of(part, "value"), self._member(value, key), scope)
            else:
                name = self._text(part.child_by_field_name("left") or part)
                self._bind(part, self._member(value, name), scope)

    def _assign(self, target: Node, value: Any, scope: VariableScope) -> None:
        """Assign to a variable; Unknown if this happens in a branch that doesn't enclose the variable's scope.

        If the target is a pattern or a member, the script's variables and objects concerned become Unknown.
        """
        if target.type in ("member_expression", "subscript_expression"):
            self._taint(self._evaluate(field_of(target, "object"), scope), value)
        elif target.type == "identifier" and (declaring := scope.find(self._text(target))):
            name = self._text(target)
            if self._branch_depth > declaring.branch_depth:
                value = Unknown(self._calls(value, declaring.names[name]))
            declaring.names[name] = value
        else:
            self._forget(target, scope, self._calls(value))

    def _taint(self, modified: Any, value: Any = None) -> None:
        """Note that the script put something into a list, an object, a result or the environment itself."""
        calls = self._calls(modified)
        self.script.tampered |= calls
        unknown = Unknown(calls | self._calls(value))
        match modified:
            case Global():
                self.script.items = None
            case list():
                modified[:] = [unknown]
            case dict():
                modified.clear()
                modified[UNKNOWN_KEY] = unknown

    # Expressions

    def _evaluate(self, node: Node, scope: VariableScope) -> Any:  # noqa: C901, PLR0911, PLR0912 - a case per kind of node
        """The value of an expression."""
        with self._deeper():
            match node.type:
                case "string":
                    return unescape(self._text(node)[1:-1])
                case "template_string":
                    return self._template(node, scope, raw=False)
                case "number":
                    return read_number(self._text(node).replace("_", ""))
                case "true" | "false":
                    return node.type == "true"
                case "null" | "undefined":
                    return None
                case "regex":
                    return Unknown()
                case "identifier" | "shorthand_property_identifier":
                    name = self._text(node)
                    declaring = scope.find(name)
                    return Global(name) if declaring is None else declaring.names[name]
                case "array":
                    return self._values(node, scope)
                case "object":
                    return self._object(node, scope)
                case "parenthesized_expression" | "await_expression" | "sequence_expression":
                    values = [self._evaluate(part, scope) for part in parts_of(node)]
                    return values[-1] if values else Unknown()
                case "member_expression":
                    return self._member(
                        self._evaluate(field_of(node, "object"), scope), self._text(field_of(node, "property"))
                    )
                case "subscript_expression":
                    owner = self._evaluate(field_of(node, "object"), scope)
                    return self._index(owner, self._evaluate(field_of(node, "index"), scope))
                case "call_expression":
                    return self._evaluate_call(node, scope)
                case "new_expression":
                    constructor = self._evaluate(field_of(node, "constructor"), scope)
                    arguments = node.child_by_field_name("arguments")
                    values = [] if arguments is None else self._values(arguments, scope)
                    return Unknown(self._calls(self._call(constructor, values)))
                case "binary_expression":
                    return self._binary(node, scope)
                case "unary_expression":
                    return self._unary(node, scope)
                case "ternary_expression":
                    condition = self._evaluate(field_of(node, "condition"), scope)
                    with self._in_branch():
                        if_true = self._evaluate(field_of(node, "consequence"), scope)
                        if_false = self._evaluate(field_of(node, "alternative"), scope)
                    return Unknown(self._calls(condition, if_true, if_false))
                case "assignment_expression":
                    value = self._evaluate(field_of(node, "right"), scope)
                    self._assign(field_of(node, "left"), value, scope)
                    return value
                case "augmented_assignment_expression":
                    before = self._evaluate(field_of(node, "left"), scope)
                    change = self._evaluate(field_of(node, "right"), scope)
                    is_sum = self._text(field_of(node, "operator")) == "+="
                    value = self._add(before, change) if is_sum else Unknown(self._calls(before, change))
                    self._assign(field_of(node, "left"), value, scope)
                    return value
                case "update_expression":
                    value = Unknown(self._calls(self._evaluate(field_of(node, "argument"), scope)))
                    self._assign(field_of(node, "argument"), value, scope)
                    return value
                case kind if kind in FUNCTION_TYPES:
                    return Function(node, scope)
            raise UnreadableScriptError(f"{node.type} is not supported")

    def _values(self, node: Node, scope: VariableScope) -> list[Any]:
        """The values in the brackets of an array literal or of a call."""
        values: list[Any] = []
        for part in parts_of(node):
            if part.type != "spread_element":
                values.append(self._evaluate(part, scope))
                continue
            spread = self._evaluate(only_part(part), scope)
            if isinstance(spread, list):
                self._step_budget.spend(len(spread))
                values += spread
            else:
                values.append(Unknown(self._calls(spread)))
        return values

    def _object(self, node: Node, scope: VariableScope) -> Any:
        """An object literal; Unknown if it spreads anything but an object."""
        fields: dict[str, Any] = {}
        for part in parts_of(node):
            match part.type:
                case "pair":
                    key = self._key(field_of(part, "key"), scope)
                    fields[key] = self._evaluate(field_of(part, "value"), scope)
                case "shorthand_property_identifier":
                    fields[self._text(part)] = self._evaluate(part, scope)
                case "method_definition" if not {child.type for child in part.children} & {"get", "set", "*"}:
                    fields[self._key(field_of(part, "name"), scope)] = Function(part, scope)
                case "spread_element":
                    spread = self._evaluate(only_part(part), scope)
                    fields |= spread if isinstance(spread, dict) else {UNKNOWN_KEY: Unknown(self._calls(spread))}
                    self._step_budget.spend(len(fields))
                case _:
                    raise UnreadableScriptError(f"{part.type} is not supported")
        return Unknown(self._calls(fields)) if UNKNOWN_KEY in fields else fields

    def _key(self, node: Node, scope: VariableScope) -> str:
        """The name of a property in an object literal or pattern."""
        if node.type == "string":
            return unescape(self._text(node)[1:-1])
        if node.type != "computed_property_name":
            return self._text(node)
        key = self._evaluate(only_part(node), scope)
        if not isinstance(key, str):
            raise UnreadableScriptError("a key that is not known")
        return key

    def _template(self, node: Node, scope: VariableScope, *, raw: bool) -> Any:
        """The text of a template literal; with `raw`, escape sequences stay as they are written."""
        values: list[Any] = []
        start = node.start_byte + 1
        for hole in parts_of(node):
            if hole.type == "template_substitution":
                chunk = self._source[start : hole.start_byte].decode()
                values += [chunk if raw else unescape(chunk), self._evaluate(only_part(hole), scope)]
                start = hole.end_byte
        chunk = self._source[start : node.end_byte - 1].decode()
        return self._concatenate([*values, chunk if raw else unescape(chunk)])

    def _binary(self, node: Node, scope: VariableScope) -> Any:
        """An expression of binary operators; a long chain (`a + b + c`) doesn't count as nested."""
        chain: list[Node] = []
        while node.type == "binary_expression":
            chain.append(node)
            node = field_of(node, "left")
        value = self._evaluate(node, scope)
        for step in reversed(chain):
            operator = self._text(field_of(step, "operator"))
            if operator in ("??", "||", "&&"):
                with self._in_branch():
                    right_value = self._evaluate(field_of(step, "right"), scope)
            else:
                right_value = self._evaluate(field_of(step, "right"), scope)
            value = self._add(value, right_value) if operator == "+" else Unknown(self._calls(value, right_value))
        return value

    def _unary(self, node: Node, scope: VariableScope) -> Any:
        operator, argument = self._text(field_of(node, "operator")), field_of(node, "argument")
        value = self._evaluate(argument, scope)
        if operator == "-" and _is_number(value):
            return -value
        if operator == "delete":
            self._assign(argument, None, scope)
        return Unknown(self._calls(value))

    def _member(self, value: Any, name: str) -> Any:
        """The value of `value.name`."""
        match value:
            case Global():
                return Global(f"{value.name}.{name}"[:200])
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
            for part in value.parts if isinstance(value, Joined) else (self._to_text(value),):
                if isinstance(part, str) and parts and isinstance(parts[-1], str):
                    parts[-1] += part
                else:
                    parts.append(part)
        length = sum(len(part) for part in parts if isinstance(part, str))
        if length > MAX_TEXT or len(parts) > MAX_ITEMS:
            raise UnreadableScriptError("a text that grows too long")
        self._step_budget.spend(len(parts) + length // 1000)
        if all(isinstance(part, str) for part in parts):
            return "".join(parts)
        return Joined(tuple(parts))

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
        function, arguments = field_of(node, "function"), field_of(node, "arguments")
        if arguments.type == "template_string":
            if self._evaluate(function, scope) != Global("String.raw"):
                raise UnreadableScriptError("a tagged template")
            return self._template(arguments, scope, raw=True)
        if function.type != "member_expression":
            callee = self._evaluate(function, scope)
            return self._call(callee, self._values(arguments, scope))
        owner = self._evaluate(field_of(function, "object"), scope)
        name = self._text(field_of(function, "property"))
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
        """Walk through a function's body with its parameters bound; returns its return value."""
        scope = VariableScope({}, function.scope, self._branch_depth)
        single = function.node.child_by_field_name("parameter")
        parameters = [single] if single else parts_of(field_of(function.node, "parameters"))
        caller_branch_depth = self._function_branch_depth
        self._function_branch_depth = self._branch_depth
        try:
            with self._deeper():
                for index, parameter in enumerate(parameters):
                    is_rest = parameter.type == "rest_pattern"
                    value = arguments[index] if index < len(arguments) else None
                    self._bind(parameter, arguments[index:] if is_rest else value, scope)
                body = field_of(function.node, "body")
                if body.type != "statement_block":
                    return self._evaluate(body, scope)
                self.execute_block(body, scope)
                return Unknown()
        except _FunctionExit as function_exit:
            return function_exit.value
        finally:
            self._function_branch_depth = caller_branch_depth

    def _run_callbacks(self, arguments: list[Any]) -> None:
        """Run functions passed to unknown code, which may or may not call them, with unknown arguments."""
        for argument in arguments:
            if isinstance(argument, Function):
                with self._in_branch():
                    self._run(argument, [Unknown()] * 4)

    def _call_global(self, name: str, arguments: list[Any]) -> Any:
        """The result of calling a function of the environment: a tool, an output function or the language's own."""
        first = arguments[0] if arguments else None
        if name.startswith("tools."):
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
            raise _FunctionExit
        if name in ("exit", "yield_control"):
            self.script.items = None
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
            if isinstance(value, list):
                return [self._copy(part) for part in value]
            if isinstance(value, dict) and UNKNOWN_KEY not in value:
                return {key: self._copy(part) for key, part in value.items()}
            calls = self._calls(value)
            is_modified = isinstance(value, dict) or calls & self.script.tampered
            return Unknown(calls) if is_modified else value

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
        if isinstance(first, dict) and UNKNOWN_KEY not in first:
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
            return self._concatenate([json.dumps(value, ensure_ascii=False, separators=(",", ":"))])
        indent = arguments[2] if len(arguments) > 2 else None  # noqa: PLR2004
        if isinstance(indent, int) and 0 < indent <= MAX_INDENT:
            return self._concatenate([json.dumps(value, ensure_ascii=False, indent=indent)])
        return Unknown()

    def _call_method(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        """The result of `owner.name(...arguments)`."""
        first = arguments[0] if arguments else None
        if name == "then" and isinstance(first, Function):
            return self._run(first, [owner])
        if name in ("catch", "finally"):
            self._run_callbacks(arguments)
            return owner
        if isinstance(owner, list):
            return self._call_list_method(owner, name, arguments)
        if isinstance(owner, str) and name == "trim":
            return owner.strip()
        if isinstance(owner, str) and name == "split" and isinstance(first, str) and first and len(arguments) == 1:
            lines = owner.split(first)
            self._step_budget.spend(len(lines))
            return lines
        self._run_callbacks(arguments)
        return Unknown(self._calls(owner, *arguments))

    def _call_list_method(self, owner: list[Any], name: str, arguments: list[Any]) -> Any:
        first = arguments[0] if arguments else None
        self._step_budget.spend(len(owner))
        if name in ("map", "forEach") and isinstance(first, Function):
            return [self._run(first, [item, index, owner]) for index, item in enumerate(list(owner))]
        if name == "entries":
            return [[index, item] for index, item in enumerate(owner)]
        if name == "join" and (isinstance(first, str) or not arguments):
            texts: list[Any] = []
            for item in owner:
                texts += ["," if first is None else first, "" if item is None else item]
            return self._concatenate(texts[1:] or [""])
        if name == "push":
            self._step_budget.spend(len(arguments))
            owner += [Unknown(self._calls(item)) if self._branch_depth else item for item in arguments]
            return Unknown()
        if name in LIST_MUTATORS:
            owner[:] = [Unknown(self._calls(owner, *arguments))]
            return Unknown()
        self._run_callbacks(arguments)
        return Unknown(self._calls(owner, *arguments))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
