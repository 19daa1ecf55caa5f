import itertools
import os
import sqlite3
from collections.abc import Callable, Iterator

import psycopg
import pytest
from django.db import connection

from tests.backups.places import Place, binaries


@pytest.fixture
def new_place(tmp_path, transactional_db, django_db_blocker) -> Iterator[Callable[..., Place]]:
    """Makes places on the kind of database that the tests run on; `ready=False`: with nothing in them yet."""
    numbers, made = itertools.count(), []

    def make(*, ready: bool = True, **environment: str) -> Place:
        place = Place(tmp_path / f"place-{next(numbers)}", environment=environment)
        place.state.mkdir(parents=True, mode=0o700)
        if connection.vendor == "postgresql":
            name = f"{connection.settings_dict['NAME']}_place_{os.getpid()}_{next(numbers)}"
            template = f'TEMPLATE "{connection.settings_dict["NAME"]}"' if ready else "TEMPLATE template0"
            execute(f'CREATE DATABASE "{name}" {template}')
            made.append(name)
            server, _, options = os.environ["DATABASE_URL"].partition("?")
            place.database = f"{server.rpartition('/')[0]}/{name}?{options}"
            place.environment["PG_BIN"] = str(binaries())
        elif ready:
            with django_db_blocker.unblock(), sqlite3.connect(connection.settings_dict["NAME"]) as database:
                database.execute("VACUUM INTO ?", [str(place.state / "db.sqlite3")])
        return place

    def execute(statement: str) -> None:
        with django_db_blocker.unblock():
            connection.close()
            with psycopg.connect(**server_of(), autocommit=True) as server:
                server.execute(statement)

    yield make
    for name in made:
        execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def server_of() -> dict:
    said = connection.settings_dict
    return {"host": said["HOST"] or said["OPTIONS"].get("host"), "user": said["USER"], "dbname": "postgres"}
