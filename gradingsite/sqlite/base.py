"""The SQLite backend of `settings.DATABASES`: Django's own, with the write gate."""

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
    """Leaves out SQLite's own tables of statistics, which Django lists."""

    def get_table_list(self, cursor: Any) -> Any:
        return [table for table in super().get_table_list(cursor) if not table.name.startswith("sqlite_")]


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that acquires the write gate for each transaction, and for each write outside of one.

    `gate_seconds` in OPTIONS is how long it waits for the gate. A database in memory has no gate.
    """

    introspection_class = Introspection
    gate: WriteGate | None = None
    gate_seconds = 10.0
    # FULL in programs that give receipts, so that what they confirmed survives a power cut (`use_durable_commits`).
    synchronous = "NORMAL"
    _turn: Turn | None = None

    def get_connection_params(self) -> dict[str, Any]:
        params: dict[str, Any] = super().get_connection_params()
        self.gate_seconds = params.pop("gate_seconds", self.gate_seconds)
        return params

    def get_new_connection(self, conn_params: dict[str, Any]) -> Connection:
        connection: Connection = super().get_new_connection(conn_params)
        connection.execute(f"PRAGMA synchronous={self.synchronous}")
        path = connection.execute("PRAGMA database_list").fetchone()[2]  # empty for a database in memory
        self.gate = gate_of(Path(path)) if path else None
        return connection

    def create_cursor(self, name: str | None = None) -> "GatedCursor":
        del name
        cursor: GatedCursor = self.connection.cursor(factory=GatedCursor)
        cursor.wrapper = self
        return cursor

    @contextmanager
    def write_gate(self) -> Iterator[None]:
        """Hold the gate in this block, for a write outside of a transaction."""
        turn = None if self.gate is None else self.gate.enter(self.gate_seconds)
        try:
            yield
        finally:
            if self.gate is not None and turn is not None:
                self.gate.leave(turn)

    def _start_transaction_under_autocommit(self) -> None:
        """Begin a transaction once the gate is acquired. It is released when the transaction or the connection ends."""
        if self._turn is None and self.gate is not None:
            self._turn = self.gate.enter(self.gate_seconds)
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # not in the stubs
        except BaseException:
            self._leave_gate()
            raise

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]  # not in the stubs; after a failure Django rolls back
        self._leave_gate()

    def _rollback(self) -> None:
        super()._rollback()  # type: ignore[misc]  # not in the stubs; after a failure Django closes
        self._leave_gate()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]  # not in the stubs
        finally:
            self._leave_gate()

    def _leave_gate(self) -> None:
        if self.gate is not None and self._turn is not None:
            self.gate.leave(self._turn)
        self._turn = None


class GatedCursor(base.SQLiteCursorWrapper):
    """A cursor that acquires the gate for each write outside of a transaction."""

    wrapper: DatabaseWrapper

    def execute(self, query: str, params: Any = None) -> Any:
        if self.connection.in_transaction or not WRITES.match(query):
            return super().execute(query, params)
        with self.wrapper.write_gate():
            return super().execute(query, params)

    def executemany(self, query: str, param_list: Any) -> Any:
        if self.connection.in_transaction:
            return super().executemany(query, param_list)
        with self.wrapper.write_gate():
            return super().executemany(query, param_list)


def use_durable_commits() -> None:
    """Make each commit of this process wait until it is on the disk."""
    DatabaseWrapper.synchronous = "FULL"
