"""Queries whose SQL is built once in a process: to build it takes Django several times as long as the database needs
to answer it, and a worker asks the same few questions of each session.
"""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

from django.core.exceptions import ObjectDoesNotExist
from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Model, QuerySet
from django.db.models.query import ModelIterable, ValuesListIterable, get_related_populators

Row = TypeVar("Row")
Value = int | str | bytes | dt.datetime
Kind = type[int] | type[str] | type[bytes] | type[dt.datetime]
# What stands in the place of a query's values while its SQL is built: nothing that it would hold by itself, and what
# fits into the smallest columns, for Django leaves out a comparison with a number that a column cannot hold.
MARKS: dict[Kind, Callable[[int], Value]] = {
    int: lambda number: 31_770 + number,
    str: lambda number: f"value {number} of a prepared query",
    bytes: lambda number: b"value %d" % number,
    dt.datetime: lambda number: dt.datetime(7770 + number, 1, 1, tzinfo=dt.UTC),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """`given` are the statement's parameters, None where one of the query's values goes: the one named by `places`.
    `converters` and `made` turn a row into what the query gives.
    """

    sql: str
    given: tuple[Any, ...]
    places: tuple[int | None, ...]
    converters: list[tuple[int, list[Callable[[Any, Any, Any], Any]], Any]]
    made: Callable[[Any], Any]


class Prepared(Generic[Row]):
    """The query that `ask` makes of its values, as many as there are `kinds`, in the database's words.

    Its SQL must not depend on the values: none of them may be None. It is asked of the default database.
    """

    def __init__(self, ask: Callable[..., QuerySet[Any, Row]], *kinds: Kind) -> None:
        self.ask, self.kinds = ask, kinds

    def rows(self, *values: Value) -> list[Row]:
        """What `list(ask(*values))` is."""
        plan, written = self._plan, list(map(_written, values))
        given = [
            value if place is None else written[place] for value, place in zip(plan.given, plan.places, strict=True)
        ]
        with connection.cursor() as cursor:
            cursor.execute(plan.sql, given)
            found = cursor.fetchall()
        rows = []
        for row in map(list, found):
            for position, converters, expression in plan.converters:
                for convert in converters:
                    row[position] = convert(row[position], expression, connection)
            rows.append(plan.made(row))
        return rows

    def first(self, *values: Value) -> Row | None:
        """The first of these rows, of a query that asks for no more than it needs."""
        return next(iter(self.rows(*values)), None)

    def get(self, *values: Value) -> Row:
        """The one row that there is. Raises ObjectDoesNotExist."""
        for row in self.rows(*values):
            return row
        raise ObjectDoesNotExist(f"expected a row for {values}; got none")

    @cached_property
    def _plan(self) -> _Plan:
        asked = [MARKS[kind](number) for number, kind in enumerate(self.kinds)]
        queryset, marks = self.ask(*asked), list(map(_written, asked))
        compiler = queryset.query.get_compiler(DEFAULT_DB_ALIAS)
        sql, given = compiler.as_sql()
        places = tuple(marks.index(value) if value in marks else None for value in given)
        if set(range(len(marks))) - set(places):
            raise ValueError(f"expected a query in which each value is a parameter; got {sql} with {given}")
        columns = [column for column, *_ in compiler.select[: compiler.col_count]]
        converters = [(at, *each) for at, each in compiler.get_converters(columns).items()]
        return _Plan(sql=sql, given=tuple(given), places=places, converters=converters, made=_maker(queryset, compiler))


def _written(value: Value) -> Any:
    """A value as the database takes it."""
    return connection.ops.adapt_datetimefield_value(value) if isinstance(value, dt.datetime) else value


def _maker(asked: Any, compiler: Any) -> Callable[[Any], Any]:
    """What makes of a row, converted, what the queryset would: what Django's own iterables do."""
    if asked._iterable_class is ValuesListIterable:  # noqa: SLF001 - there is no public way to ask
        return tuple
    if asked._iterable_class is not ModelIterable or asked._prefetch_related_lookups:  # noqa: SLF001 - as above
        raise ValueError(f"expected a query for models or lists of values, without prefetching; got {asked.query}")
    place = compiler.klass_info["select_fields"]
    first, end = place[0], place[-1] + 1
    model: type[Model] = compiler.klass_info["model"]
    names = [column.target.attname for column, *_ in compiler.select[first:end]]
    populators = cast("Any", get_related_populators)  # the stubs are of another Django
    related = populators(compiler.klass_info, compiler.select, DEFAULT_DB_ALIAS)
    annotated = list(compiler.annotation_col_map.items())

    def made(row: list[Any]) -> Model:
        found = model.from_db(DEFAULT_DB_ALIAS, names, row[first:end])
        for populator in related:
            populator.populate(row, found)
        for name, at in annotated:
            setattr(found, name, row[at])
        return found

    return made
