"""The database backend of `settings.DATABASES`: Django's own, which asks at the gate before it writes."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from django.db.backends.sqlite3 import base
from django.db.backends.sqlite3.introspection import DatabaseIntrospection

from gradingsite.sqlite.gate import Turn, WriteGate, gate_of

WRITES = re.compile(r"\s*(?:INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP|ALTER|REINDEX|ANALYZE|VACUUM)\b", re.IGNORECASE)


class Introspection(DatabaseIntrospection):
    """Django's own, which names SQLite's statistics among the site's tables."""

    def get_table_list(self, cursor: Any) -> Any:
        return [table for table in super().get_table_list(cursor) if not table.name.startswith("sqlite_")]


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that writes only while it holds the gate: for a transaction, or for a statement outside of one.

    OPTIONS may say `gate_seconds`, how long it waits for that. Savepoints are inside a transaction and ask nobody; a
    database in memory has no gate.
    """

    introspection_class = Introspection
    gate: WriteGate | None = None
    gate_seconds = 10.0
    # FULL in programs that give receipts: what they were told is saved outlasts a power cut. `durably` says so.
    synchronous = "NORMAL"
    _turn: Turn | None = None

    def get_connection_params(self) -> dict[str, Any]:
        params: dict[str, Any] = super().get_connection_params()
        self.gate_seconds = params.pop("gate_seconds", self.gate_seconds)
        return params

    def get_new_connection(self, conn_params: dict[str, Any]) -> Connection:
        connection: Connection = super().get_new_connection(conn_params)
        connection.execute(f"PRAGMA synchronous={self.synchronous}")
        path = connection.execute("PRAGMA database_list").fetchone()[2]  # empty for one in memory
        self.gate = gate_of(Path(path)) if path else None
        return connection

    def create_cursor(self, name: str | None = None) -> "GatedCursor":
        del name
        cursor: GatedCursor = self.connection.cursor(factory=GatedCursor)
        cursor.wrapper = self
        return cursor

    @contextmanager
    def alone(self) -> Iterator[None]:
        """For one statement outside of a transaction."""
        turn = None if self.gate is None else self.gate.enter(self.gate_seconds)
        try:
            yield
        finally:
            if self.gate is not None and turn is not None:
                self.gate.leave(turn)

    def _start_transaction_under_autocommit(self) -> None:
        if self._turn is None and self.gate is not None:
            self._turn = self.gate.enter(self.gate_seconds)
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # not in the stubs
        except BaseException:
            self._leave()
            raise

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]  # not in the stubs; one that fails is rolled back
        self._leave()

    def _rollback(self) -> None:
        super()._rollback()  # type: ignore[misc]  # not in the stubs; one that fails is closed
        self._leave()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]  # not in the stubs
        finally:
            self._leave()

    def _leave(self) -> None:
        if self.gate is not None and self._turn is not None:
            self.gate.leave(self._turn)
        self._turn = None


class GatedCursor(base.SQLiteCursorWrapper):
    """A cursor of such a connection."""

    wrapper: DatabaseWrapper

    def execute(self, query: str, params: Any = None) -> Any:
        if self.connection.in_transaction or not WRITES.match(query):
            return super().execute(query, params)
        with self.wrapper.alone():
            return super().execute(query, params)

    def executemany(self, query: str, param_list: Any) -> Any:
        if self.connection.in_transaction:
            return super().executemany(query, param_list)
        with self.wrapper.alone():
            return super().executemany(query, param_list)


def durably() -> None:
    """Let each transaction of this process reach the disk before anybody is told of it."""
    DatabaseWrapper.synchronous = "FULL"
