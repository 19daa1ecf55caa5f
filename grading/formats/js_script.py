"""What a small JavaScript program calls and prints, read without running it.

Codex's code mode writes its tool calls as scripts: `const r = await tools.exec_command({cmd: "…"}); text(r.output)`. A
script is walked once in the order of its statements, with values for what is written down in it and `Unknown` for the
rest. What cannot be parsed, or exceeds the bounds, raises UnreadableScriptError; a value is never guessed.
"""

from typing import Final

from grading.formats.js_expressions import ASSIGNMENTS, UNSUPPORTED, Expressions, TokenCursor
from grading.formats.js_tokens import Code, UnreadableScriptError, tokenize
from grading.formats.js_values import LITERALS, MUTATORS, Left, Script, StepBudget, Unknown, VariableScope

KNOWN: Final = frozenset({"tools", "text", "let", "const", "var", *LITERALS})
"""Names in a loop's head that it does not declare."""


def read_script(source: str, allowance: StepBudget | None = None) -> Script:
    """What a script calls and prints. Raises UnreadableScriptError where it cannot be read whole."""
    allowance = allowance or StepBudget()
    allowance.begin()
    allowance.spend(len(source) // 1000)
    code = tokenize(source)
    walker = _Walker(allowance)
    try:
        walker.block(code, 0, len(code.tokens) - 1, VariableScope({}))
    except RecursionError as error:
        raise UnreadableScriptError("nested too deeply") from error
    except Left:
        pass
    return walker.script


class _Walker(Expressions):
    def block(self, code: Code, start: int, end: int, scope: VariableScope) -> None:
        at = start
        while at < end:  # functions may be called above where they stand
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
                self.block(cursor.code, cursor.at + 1, end, VariableScope({}, scope, self._doubt))
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
                # Later turns may not come: which items are printed is not certain.
                if not self._doubt:
                    raise UnreadableScriptError("a loop left without a condition")
                cursor.at += 1
                self.script.items = None
                self._end_statement(cursor)
            case "name", "if":
                cursor.at += 1
                self._bracketed(cursor, scope)
                self._perhaps(cursor, scope)
                if cursor.skip("else"):
                    self._perhaps(cursor, scope)
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

    def _perhaps(self, cursor: TokenCursor, scope: VariableScope) -> None:
        """A statement that may or may not be carried out."""
        self._doubtful(lambda: self._statement(cursor, VariableScope({}, scope, self._doubt)))

    def _declare(self, cursor: TokenCursor, scope: VariableScope) -> None:
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
        while not cursor.sees("("):
            cursor.at += 1
            self._step()
            if cursor.at >= cursor.end:
                raise UnreadableScriptError("a function without parameters")
        cursor.at = cursor.closing() + 1
        cursor.at = cursor.closing() + 1

    def _while(self, cursor: TokenCursor, scope: VariableScope) -> None:
        is_do = cursor.take().value == "do"
        end = cursor.closing() if is_do else self._loop_end(cursor)
        self._forget_assigned(cursor.code, cursor.at, end, scope)
        if is_do:
            self._perhaps(cursor, scope)
            cursor.expect("while")
            self._bracketed(cursor, scope)
            self._end_statement(cursor)
        else:
            self._bracketed(cursor, scope)
            self._perhaps(cursor, scope)

    def _loop_end(self, cursor: TokenCursor) -> int:
        """Where a loop's body ends, roughly: names assigned in it are forgotten, and one too many does no harm."""
        after = cursor.closing() + 1
        return cursor.code.closing.get(after, min(cursor.end, after + 200))

    def _forget_assigned(self, code: Code, start: int, end: int, scope: VariableScope) -> None:
        """What a loop assigns is not known in any of its turns."""
        tokens = code.tokens
        for at in range(start, min(end, len(tokens) - 1)):
            if tokens[at].kind != "name":
                continue
            following, before = tokens[at + 1].value, tokens[at - 1].value if at else ""
            changes = following in ASSIGNMENTS or following in ("++", "--") or before in ("++", "--")
            if (changes and tokens[at + 1].kind == "punctuation" and before not in (".", "const", "let", "var")) or (
                following == "." and tokens[at + 2].value in (MUTATORS | {"push"})
            ):
                self._forget(tokens[at].value, scope)

    def _for(self, cursor: TokenCursor, scope: VariableScope) -> None:
        cursor.at += 1
        cursor.skip("await")
        end = cursor.closing()
        head = TokenCursor(cursor.code, cursor.at + 1, end)
        if head.sees("const", "let", "var"):
            head.at += 1
        pattern = (head.at, self._pattern_end(head)) if not head.sees(";") else (head.at, head.at)
        head.at = pattern[1]
        if head.sees("of", "in"):
            is_of = head.take().value == "of"
            listed = self._expression(head, scope)
            self._finished(head)
            body = cursor.at = end + 1
            if is_of and isinstance(listed, list) and listed:
                for value in list(listed):
                    cursor.at = body
                    inner = VariableScope({}, scope, self._doubt)
                    self._bind(cursor.code, pattern, value, inner)
                    self._statement(cursor, inner)
                return
            self._forget_assigned(cursor.code, body, cursor.code.closing.get(body, cursor.end), scope)
            inner = VariableScope({}, scope, self._doubt)
            self._bind(cursor.code, pattern, Unknown(self._calls(listed)), inner)
            self._perhaps(cursor, inner)
            return
        self._forget_assigned(cursor.code, cursor.at, self._loop_end(cursor), scope)
        inner = VariableScope({}, scope, 0)
        for token in cursor.code.tokens[cursor.at : end]:
            if token.kind == "name" and token.value not in KNOWN and scope.holder(token.value) is None:
                inner.names[token.value] = Unknown()
        cursor.at = end + 1
        self._perhaps(cursor, inner)

    def _return(self, cursor: TokenCursor, scope: VariableScope) -> None:
        cursor.at += 1
        value = None
        if not cursor.sees(";", "}") and cursor.at < cursor.end and not cursor.token.after_newline:
            value = self._expression(cursor, scope)
        self._end_statement(cursor)
        if self._doubt == self._function_doubt:
            raise Left(value)
        self.script.items = None

    def _try(self, cursor: TokenCursor, scope: VariableScope) -> None:
        cursor.at += 1
        self._statement(cursor, scope)
        if cursor.skip("catch"):
            inner = VariableScope({}, scope, self._doubt)
            if cursor.sees("("):
                end = cursor.closing()
                self._bind(cursor.code, (cursor.at + 1, end), Unknown(), inner)
                cursor.at = end + 1
            self._perhaps(cursor, inner)
        if cursor.skip("finally"):
            self._statement(cursor, scope)
