"""Determines which tools a small JavaScript program calls and what it prints, without running it.

Codex's code mode writes its tool calls as scripts: `const r = await tools.exec_command({cmd: "…"}); text(r.output)`. A
script is walked once in the order of its statements, with literal values where they can be determined and `Unknown`
elsewhere; a value is never guessed. Unsupported syntax, or exceeding a limit, raises UnreadableScriptError.
"""

from typing import Final

from grading.formats.js_expressions import ASSIGNMENTS, UNSUPPORTED, Expressions, TokenCursor
from grading.formats.js_tokens import Code, UnreadableScriptError, tokenize
from grading.formats.js_values import LITERALS, MUTATORS, FunctionExit, Script, StepBudget, Unknown, VariableScope

PREDEFINED_NAMES: Final = frozenset({"tools", "text", "let", "const", "var", *LITERALS})
"""Names that, in the head of a loop, aren't variables declared there."""


def read_script(source: str, step_budget: StepBudget | None = None) -> Script:
    """The tool calls and printed values of a script. Raises UnreadableScriptError if any part of it isn't supported."""
    step_budget = step_budget or StepBudget()
    step_budget.begin_script()
    step_budget.spend(len(source) // 1000)
    code = tokenize(source)
    walker = _Walker(step_budget)
    try:
        walker.block(code, 0, len(code.tokens) - 1, VariableScope({}))
    except RecursionError as error:
        raise UnreadableScriptError("nested too deeply") from error
    except FunctionExit:
        pass
    return walker.script


class _Walker(Expressions):
    """Walks through statements. Methods that take a cursor leave it behind what they have read."""

    def block(self, code: Code, start: int, end: int, scope: VariableScope) -> None:
        at = start
        while at < end:  # function declarations first: they are hoisted
            token = code.tokens[at]
            if token.kind == "name" and token.value == "function" and code.tokens[at + 1].kind == "name":
                cursor = TokenCursor(code, at + 1, end)
                name = cursor.take().value
                scope.names[name] = self._function(cursor, scope)
                at = cursor.at
            else:
                at = code.closing.get(at, at) + 1
        cursor = TokenCursor(code, start, end)
        while cursor.at < end:
            self._statement(cursor, scope)

    def _statement(self, cursor: TokenCursor, scope: VariableScope) -> None:
        self._step()
        token = cursor.token
        match token.kind, token.value:
            case "punctuation", ";":
                cursor.at += 1
            case "punctuation", "{":
                end = cursor.closing()
                self.block(cursor.code, cursor.at + 1, end, VariableScope({}, scope, self._branch_depth))
                cursor.at = end + 1
            case "name", word if word in UNSUPPORTED:
                raise UnreadableScriptError(f"{word} is not read")
            case "name", "function" | "async" as word if word == "function" or cursor.peek().value == "function":
                self._skip_function(cursor)
            case "name", "const" | "let" | "var":
                self._declare(cursor, scope)
            case "name", "return" | "throw":
                self._return(cursor, scope)
            case "name", "break" | "continue":
                # Later iterations may not happen, so it is uncertain which items are printed.
                if not self._branch_depth:
                    raise UnreadableScriptError("a loop left without a condition")
                cursor.at += 1
                self.script.items = None
                self._end_statement(cursor)
            case "name", "if":
                cursor.at += 1
                self._bracketed(cursor, scope)
                self._branch(cursor, scope)
                if cursor.skip("else"):
                    self._branch(cursor, scope)
            case "name", "do" | "while":
                self._while(cursor, scope)
            case "name", "for":
                self._for(cursor, scope)
            case "name", "try":
                self._try(cursor, scope)
            case _:
                self._expression(cursor, scope)
                self._end_statement(cursor)

    @staticmethod
    def _end_statement(cursor: TokenCursor) -> None:
        if not cursor.skip(";") and cursor.at < cursor.end and not cursor.token.after_newline:
            raise UnreadableScriptError(f"expected the end of a statement, got {cursor.token.value[:20]!r}")

    def _branch(self, cursor: TokenCursor, scope: VariableScope) -> None:
        """A statement that may not run."""
        with self._in_branch():
            self._statement(cursor, VariableScope({}, scope, self._branch_depth))

    def _declare(self, cursor: TokenCursor, scope: VariableScope) -> None:
        """A `const`, `let` or `var` statement."""
        cursor.at += 1
        while True:
            pattern = (cursor.at, self._pattern_end(cursor))
            cursor.at = pattern[1]
            value = self._assignment(cursor, scope) if cursor.skip("=") else None
            self._bind(cursor.code, pattern, value, scope)
            if not cursor.skip(","):
                break
        self._end_statement(cursor)

    def _skip_function(self, cursor: TokenCursor) -> None:
        """Skip a function declaration, which `block` has already bound: its parameters, then its body."""
        while not cursor.is_at("("):
            cursor.at += 1
            self._step()
            if cursor.at >= cursor.end:
                raise UnreadableScriptError("a function without parameters")
        cursor.at = cursor.closing() + 1
        cursor.at = cursor.closing() + 1

    def _while(self, cursor: TokenCursor, scope: VariableScope) -> None:
        """A `while` or `do` loop."""
        is_do = cursor.take().value == "do"
        end = cursor.closing() if is_do else self._loop_end(cursor)
        self._forget_assigned(cursor.code, cursor.at, end, scope)
        if is_do:
            self._branch(cursor, scope)
            cursor.expect("while")
            self._bracketed(cursor, scope)
            self._end_statement(cursor)
        else:
            self._bracketed(cursor, scope)
            self._branch(cursor, scope)

    def _loop_end(self, cursor: TokenCursor) -> int:
        """The end of a loop's body, roughly: variables assigned before it become Unknown, and a few more do no harm."""
        after = cursor.closing() + 1
        return cursor.code.closing.get(after, min(cursor.end, after + 200))

    def _forget_assigned(self, code: Code, start: int, end: int, scope: VariableScope) -> None:
        """Make variables Unknown that are assigned or modified in a range of tokens: a loop may do so repeatedly."""
        tokens = code.tokens
        for at in range(start, min(end, len(tokens) - 1)):
            if tokens[at].kind != "name":
                continue
            following, before = tokens[at + 1].value, tokens[at - 1].value if at else ""
            has_operator = following in ASSIGNMENTS or following in ("++", "--") or before in ("++", "--")
            is_punctuation = tokens[at + 1].kind == "punctuation"
            is_assigned = has_operator and is_punctuation and before not in (".", "const", "let", "var")
            if is_assigned or (following == "." and tokens[at + 2].value in (MUTATORS | {"push"})):
                self._forget(tokens[at].value, scope)

    def _for(self, cursor: TokenCursor, scope: VariableScope) -> None:
        """A `for` loop: over a literal list every iteration is walked, else the body once with unknown values."""
        cursor.at += 1
        cursor.skip("await")
        end = cursor.closing()
        head = TokenCursor(cursor.code, cursor.at + 1, end)
        if head.is_at("const", "let", "var"):
            head.at += 1
        pattern = (head.at, self._pattern_end(head)) if not head.is_at(";") else (head.at, head.at)
        head.at = pattern[1]
        if head.is_at("of", "in"):
            is_of = head.take().value == "of"
            iterable = self._expression(head, scope)
            self._expect_end(head)
            body = cursor.at = end + 1
            if is_of and isinstance(iterable, list) and iterable:
                for value in list(iterable):
                    cursor.at = body
                    inner = VariableScope({}, scope, self._branch_depth)
                    self._bind(cursor.code, pattern, value, inner)
                    self._statement(cursor, inner)
                return
            self._forget_assigned(cursor.code, body, cursor.code.closing.get(body, cursor.end), scope)
            inner = VariableScope({}, scope, self._branch_depth)
            self._bind(cursor.code, pattern, Unknown(self._calls(iterable)), inner)
            self._branch(cursor, inner)
            return
        self._forget_assigned(cursor.code, cursor.at, self._loop_end(cursor), scope)
        inner = VariableScope({}, scope, 0)
        for token in cursor.code.tokens[cursor.at : end]:
            if token.kind == "name" and token.value not in PREDEFINED_NAMES and scope.find(token.value) is None:
                inner.names[token.value] = Unknown()
        cursor.at = end + 1
        self._branch(cursor, inner)

    def _return(self, cursor: TokenCursor, scope: VariableScope) -> None:
        """A `return` or `throw`. In a branch the walk goes on, and it becomes uncertain what is printed."""
        cursor.at += 1
        value = None
        if not cursor.is_at(";", "}") and cursor.at < cursor.end and not cursor.token.after_newline:
            value = self._expression(cursor, scope)
        self._end_statement(cursor)
        if self._branch_depth == self._function_branch_depth:
            raise FunctionExit(value)
        self.script.items = None

    def _try(self, cursor: TokenCursor, scope: VariableScope) -> None:
        """A `try` statement; only its `catch` block counts as a branch."""
        cursor.at += 1
        self._statement(cursor, scope)
        if cursor.skip("catch"):
            inner = VariableScope({}, scope, self._branch_depth)
            if cursor.is_at("("):
                end = cursor.closing()
                self._bind(cursor.code, (cursor.at + 1, end), Unknown(), inner)
                cursor.at = end + 1
            self._branch(cursor, inner)
        if cursor.skip("finally"):
            self._statement(cursor, scope)
