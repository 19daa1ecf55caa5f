"""Conditions: what a rule asks of a session's traits. Plain words and globs, found in linear time whatever they are.

In: conditions as a form or a row has them. Out: a `Matcher`, which says what of a session met them, if anything did.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import re2

from grading.signals.traits import Traits

MOST_CONDITIONS, MOST_VALUES, LONGEST = 6, 20, 200
AROUND = 40


class Field(StrEnum):
    """What a condition is about."""

    REPOSITORY = "repository"
    PATH = "path"
    BRANCH = "branch"
    WORDS = "words"
    TOOL = "tool"
    HARNESS = "harness"

    @property
    def words(self) -> str:
        return "words of the task" if self is Field.WORDS else self.value


class Test(StrEnum):
    """How it is asked. `MATCHES` takes `*` for any characters and `?` for one."""

    IS = "is"
    STARTS = "starts with"
    CONTAINS = "contains"
    MATCHES = "matches"


class InvalidCondition(ValueError):
    """A condition that cannot work; the message says which part, and what to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition: any of `values` will do. Upper and lower case make no difference."""

    field: Field
    test: Test
    values: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"{self.field.words} {self.test} {' or '.join(self.values)}"

    def as_dict(self) -> dict[str, Any]:
        return {"field": self.field.value, "test": self.test.value, "values": list(self.values)}


def parse(rows: object) -> tuple[Condition, ...]:
    """The conditions of these rows. Raises InvalidCondition for none, for too many, and for what is none."""
    if not isinstance(rows, list) or not rows:
        raise InvalidCondition("A rule needs a condition: say what of the session it looks at.")
    if len(rows) > MOST_CONDITIONS:
        raise InvalidCondition(f"A rule has at most {MOST_CONDITIONS} conditions; {len(rows)} were given.")
    return tuple(map(_parsed, rows))


def _parsed(row: object) -> Condition:
    said = row if isinstance(row, Mapping) else {}
    try:
        field, test = Field(str(said.get("field"))), Test(str(said.get("test")))
    except ValueError as error:
        raise InvalidCondition(f"Choose what a condition looks at, and how: {error}.") from error
    values = said.get("values")
    found = (
        tuple(dict.fromkeys(value.strip() for value in values if isinstance(value, str) and value.strip()))
        if (isinstance(values, list))
        else ()
    )
    if not found:
        raise InvalidCondition(f"Say what the {field.words} should be: a word, or several with commas between them.")
    if len(found) > MOST_VALUES or any(len(value) > LONGEST for value in found):
        raise InvalidCondition(f"At most {MOST_VALUES} words or patterns of {LONGEST} characters in one condition.")
    if any("\0" in value or not value.isprintable() for value in found):
        raise InvalidCondition("Words and patterns are plain text, without control characters.")
    if test is Test.MATCHES and any(not value.strip("*?") for value in found):
        raise InvalidCondition("A pattern of stars alone matches everything; say what else it should have.")
    return Condition(field=field, test=test, values=found)


def words(rows: object) -> str:
    """Conditions as a clause: "harness is codex and branch matches fix/*"; what cannot be read is said to be so."""
    try:
        return " and ".join(each.words for each in parse(rows))
    except InvalidCondition:
        return "conditions that cannot be read"


class Matcher:
    """Conditions, ready to be asked of many sessions. Raises InvalidCondition."""

    def __init__(self, rows: object) -> None:
        self.conditions = parse(rows)
        self._tests = [(each, _regex(each)) for each in self.conditions]

    def why(self, traits: Traits) -> str:
        """What of these traits meets the conditions, in words; empty where they don't meet them all."""
        found = []
        for condition, regex in self._tests:
            met = next(filter(None, (_met(condition, regex, text) for text in _asked(condition.field, traits))), "")
            if not met:
                return ""
            found.append(met)
        return " and ".join(found)


def _asked(field: Field, traits: Traits) -> Iterable[str]:
    """The texts of a session that a condition on that field is tried on."""
    asked: Mapping[Field, Callable[[], Sequence[str]]] = {
        Field.REPOSITORY: lambda: (*traits.repositories, *(name.rpartition("/")[2] for name in traits.repositories)),
        Field.PATH: lambda: (*traits.paths, traits.folder),
        Field.BRANCH: lambda: (traits.branch,),
        Field.WORDS: lambda: (traits.task,),
        Field.TOOL: lambda: traits.tools,
        Field.HARNESS: lambda: (traits.harness,),
    }
    return filter(None, asked[field]())


def _met(condition: Condition, regex: Any, text: str) -> str:
    found = regex.search(text)
    if found is None:
        return ""
    if condition.field is not Field.WORDS:
        return f"{condition.field} {text}"
    start, end = max(0, found.start() - AROUND // 2), found.end() + AROUND
    cut = f"{'…' if start else ''}{text[start:end].strip()}{'…' if end < len(text) else ''}"
    return f"the task says “{cut}”"


def _regex(condition: Condition) -> Any:
    """One pattern for all values of a condition: RE2's, whose time is linear whatever stands in it."""
    either = "|".join(
        _glob(value) if condition.test is Test.MATCHES else re2.escape(value) for value in condition.values
    )
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


def _glob(value: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(char) or re2.escape(char) for char in value)
