"""Rows of whole numbers out of the database as columns, without an object for each."""

from itertools import chain
from typing import Any

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BigIntegerField, Func, QuerySet
from django.db.models.sql.compiler import SQLCompiler

from bandit.core.table import Ints


class WholeSeconds(Func):
    """A moment in seconds since 1970, rounded down: a number, which needs no reading row by row."""

    output_field = BigIntegerField()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **kwargs: Any) -> Any:
        # Without the fraction, which SQLite rounds. A per cent sign is read twice on its way.
        template = "CAST(strftime('%%%%s', substr(%(expressions)s, 1, 19)) AS INTEGER)"
        return self.as_sql(compiler, connection, template=template, **kwargs)

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **kwargs: Any) -> Any:
        return self.as_sql(
            compiler, connection, template="FLOOR(EXTRACT(EPOCH FROM %(expressions)s))::bigint", **kwargs
        )


def columns_of(asked: QuerySet[Any, Any], width: int) -> Ints:
    """So many columns of a query's rows, (width, n)."""
    try:
        statement = asked.query.sql_with_params()
    except EmptyResultSet:  # one that needs no asking
        return np.zeros((width, 0), dtype=np.int64)
    with connection.cursor() as cursor:
        cursor.execute(*statement)
        rows = cursor.fetchall()
    return np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=width * len(rows)).reshape(-1, width).T
