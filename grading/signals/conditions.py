"""Conditions of category rules on a session's traits: plain words and globs, matched in linear time.

In: conditions as a form or a row has them. Out: a `Matcher`, which says which traits of a session meet them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import re2

from grading.signals.traits import Traits

MAX_CONDITIONS, MAX_VALUES, MAX_VALUE_LENGTH = 6, 20, 200
# Characters of the task shown after a match, and half as many before it.
CONTEXT = 40


class Field(StrEnum):
    """The trait that a condition tests."""

    REPOSITORY = "repository"
    PATH = "path"
    BRANCH = "branch"
    WORDS = "words"
    TOOL = "tool"
    HARNESS = "harness"

    @property
    def label(self) -> str:
        return "words of the task" if self is Field.WORDS else self.value


class Test(StrEnum):
    """How a condition compares. In the values of `MATCHES`, `*` stands for any characters and `?` for one."""

    IS = "is"
    STARTS = "starts with"
    CONTAINS = "contains"
    MATCHES = "matches"


class InvalidCondition(ValueError):
    """An invalid condition; the message says which part, and what to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition, met if any of `values` matches. Case is ignored."""

    field: Field
    test: Test
    values: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.field.label} {self.test} {' or '.join(self.values)}"

    def as_dict(self) -> dict[str, Any]:
        return {"field": self.field.value, "test": self.test.value, "values": list(self.values)}


def parse(rows: object) -> tuple[Condition, ...]:
    """The conditions of these rows. Raises InvalidCondition for no rows, too many, or an invalid one."""
    if not isinstance(rows, list) or not rows:
        raise InvalidCondition("A rule needs a condition: say what of the session it looks at.")
    if len(rows) > MAX_CONDITIONS:
        raise InvalidCondition(f"A rule has at most {MAX_CONDITIONS} conditions; {len(rows)} were given.")
    return tuple(map(_parse_row, rows))


def _parse_row(row: object) -> Condition:
    """The condition of a row {"field", "test", "values"}. Raises InvalidCondition."""
    data = row if isinstance(row, Mapping) else {}
    try:
        field, test = Field(str(data.get("field"))), Test(str(data.get("test")))
    except ValueError as error:
        raise InvalidCondition(f"Choose what a condition looks at, and how: {error}.") from error
    items = data["values"] if isinstance(data.get("values"), list) else []
    values = tuple(dict.fromkeys(item.strip() for item in items if isinstance(item, str) and item.strip()))
    if not values:
        raise InvalidCondition(f"Say what the {field.label} should be: a word, or several with commas between them.")
    if len(values) > MAX_VALUES or any(len(value) > MAX_VALUE_LENGTH for value in values):
        raise InvalidCondition(
            f"At most {MAX_VALUES} words or patterns of {MAX_VALUE_LENGTH} characters in one condition."
        )
    if any("\0" in value or not value.isprintable() for value in values):
        raise InvalidCondition("Words and patterns are plain text, without control characters.")
    if test is Test.MATCHES and any(not value.strip("*?") for value in values):
        raise InvalidCondition("A pattern of stars alone matches everything; say what else it should have.")
    return Condition(field=field, test=test, values=values)


def describe(rows: object) -> str:
    """The conditions as a clause, such as "harness is codex and branch matches fix/*", or that they are invalid."""
    try:
        return " and ".join(map(str, parse(rows)))
    except InvalidCondition:
        return "conditions that cannot be read"


class Matcher:
    """Compiled conditions, to be matched with many sessions. Raises InvalidCondition."""

    def __init__(self, rows: object) -> None:
        self.conditions = parse(rows)
        self._regexes = [(condition, _compile(condition)) for condition in self.conditions]

    def explain_match(self, traits: Traits) -> str:
        """How the traits meet the conditions, as a clause; "" if they don't meet all of them."""
        reasons = []
        for condition, regex in self._regexes:
            reason = _explain_condition(condition, regex, traits)
            if not reason:
                return ""
            reasons.append(reason)
        return " and ".join(reasons)


def _explain_condition(condition: Condition, regex: Any, traits: Traits) -> str:
    """How the first trait that meets the condition does so; "" if none does."""
    texts: Mapping[Field, Sequence[str]] = {
        Field.REPOSITORY: (*traits.repositories, *(name.rpartition("/")[2] for name in traits.repositories)),
        Field.PATH: (*traits.paths, traits.folder),
        Field.BRANCH: (traits.branch,),
        Field.WORDS: (traits.task,),
        Field.TOOL: traits.tools,
        Field.HARNESS: (traits.harness,),
    }
    for text in filter(None, texts[condition.field]):
        match = regex.search(text)
        if match is None:
            continue
        if condition.field is not Field.WORDS:
            return f"{condition.field} {text}"
        start, end = max(0, match.start() - CONTEXT // 2), match.end() + CONTEXT
        before, after = "…" if start > 0 else "", "…" if end < len(text) else ""
        return f"the task says “{before}{text[start:end].strip()}{after}”"
    return ""


def _compile(condition: Condition) -> Any:
    """The RE2 pattern for any of the values of a condition; RE2 runs in linear time whatever the values."""
    to_regex = _glob_regex if condition.test is Test.MATCHES else re2.escape
    either = "|".join(to_regex(value) for value in condition.values)
    whole_words = condition.field is Field.WORDS and condition.test is Test.CONTAINS
    pattern = {
        Test.IS: rf"^(?:{either})$",
        Test.STARTS: rf"^(?:{either})",
        Test.CONTAINS: rf"(?:^|[^\pL\pN_])(?:{either})(?:$|[^\pL\pN_])" if whole_words else f"(?:{either})",
        Test.MATCHES: rf"^(?:{either})$",
    }[condition.test]
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = False
    options.dot_nl = True
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeError) as error:
        raise InvalidCondition(f"“{condition.values[0]}” cannot be searched for; write it another way.") from error


def _glob_regex(value: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(char) or re2.escape(char) for char in value)
