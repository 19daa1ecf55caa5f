"""The rows of a session that is locked, each kind of them read once: while it is taken in, many ask for the same.

hold ─► session.grades.all(), session.log, …  (asked for without a query) ─► let_go

Of a session that was made in this transaction it is known that it has none. Whoever writes rows of a session that may
be held says so, by `wrote` or `forget`; to one that is not held both mean nothing.
"""

from collections.abc import Iterable
from functools import cache
from itertools import chain, groupby
from typing import Any

from django.db import connection
from django.db.models import Model, prefetch_related_objects
from django.db.models.sql import InsertQuery

from bandit.prepared import Prepared
from grading.models.sessions import Session
from gradingsite.sqlite import together

HELD, NEW = "_is_held", "_is_new"
# What is read of a session that was there before; and what it is known besides that a new one has none of.
READ = (
    "evidence",
    "grades",
    "artifacts",
    "flags",
    "judge_jobs",
    "sketches",
    "proposals",
    "parts",
    "lessons__arm__merged_into",
)
NONE = (*(name.partition("__")[0] for name in READ), "anchors", "settlements", "category_words")
SINGLE = ("log", "state", "extracted", "shares", "review_item", "traits")


def hold(session: Session, *, is_new: bool, read: Iterable[str] = READ) -> None:
    """From now on the session, which the caller has locked, has its rows at hand: those that are `read`. `is_new`: it
    has none yet.
    """
    setattr(session, HELD, True)
    setattr(session, NEW, is_new)
    if is_new:
        for name in SINGLE:
            session._state.fields_cache[name] = None  # noqa: SLF001 - as Django's own select_related does
        _has_none(session, NONE)
        return
    names = tuple(read)
    with connection.cursor() as cursor:
        cursor.execute(_which(names), [session.pk] * len(names))
        some = dict(zip(names, cursor.fetchone(), strict=True))
    _has_none(session, (name.partition("__")[0] for name in names if not some[name]))
    _ask(session, [name for name in names if some[name]])


def let_go(session: Session) -> None:
    """The caller's transaction ends, and what the session has is asked for again."""
    setattr(session, HELD, False)
    setattr(session, NEW, False)
    _read(session).clear()
    for name in SINGLE:
        session._state.fields_cache.pop(name, None)  # noqa: SLF001 - as above


def is_held(session: Session) -> bool:
    """Whether the session is locked, and its columns and rows are those that it has."""
    return bool(getattr(session, HELD, False))


def is_new(session: Session) -> bool:
    """Whether the session is held, and was made in this transaction."""
    return bool(getattr(session, NEW, False))


def rows(session: Session, name: str) -> list[Any] | None:
    """The session's rows of that name, where they are at hand; else None, and they are to be asked for."""
    found = _read(session).get(name)
    return None if found is None else list(found)


def wrote(session: Session, name: str, rows: Iterable[Model]) -> None:
    """These rows were added to the session, as the last ones."""
    if name in _read(session):
        _read(session)[name]._result_cache.extend(rows)  # noqa: SLF001 - as above


def add(session: Session, name: str, rows: Iterable[Model]) -> None:
    """Insert these rows of the session, with those of that name that were kept back, as the last ones."""
    new = [*_kept_back(session).pop(name, []), *rows]
    if new:
        wrote(session, name, type(new[0])._default_manager.bulk_create(new))  # noqa: SLF001 - Django's documented API


def keep_back(session: Session, name: str, rows: Iterable[Model]) -> None:
    """Insert these rows of the session: those of a new one together with the next of that name, or by `add` of none.
    Until then nobody finds them.
    """
    _kept_back(session).setdefault(name, []).extend(rows)
    if not is_new(session):
        add(session, name, ())


def put(session: Session, *rows: Model) -> None:
    """Insert rows of the session, all that it has of one kind, of which nobody asks the keys or looks them up: of a new
    one, before it is let go, and in place of what was put before.
    """
    if is_new(session):
        _kept_back(session)[type(rows[0]).__name__] = [*rows]
    else:
        type(rows[0])._default_manager.bulk_create(rows)  # noqa: SLF001 - Django's documented API


def write(session: Session) -> None:
    """Insert what was `put`, in one statement."""
    rows = list(chain(*_kept_back(session).values()))
    _kept_back(session).clear()
    if rows:
        _insert([list(alike) for _type, alike in groupby(rows, type)])
    for row in rows:
        row._state.adding, row._state.db = False, connection.alias  # noqa: SLF001 - as Django's own bulk_create does
    # Those whose keys the database gave are asked for where somebody wants them after all.
    single, several = session._state.fields_cache, _read(session)  # noqa: SLF001 - as above
    for name in SINGLE:
        if (held := single.get(name)) is not None and held.pk is None:
            del single[name]
    for name in [name for name, held in several.items() if any(row.pk is None for row in held)]:
        del several[name]


def _insert(alike: Iterable[list[Any]]) -> None:
    """Insert these rows, of each model those that stand together, in one statement."""
    parts, params, tables = list[str](), list[Any](), list[together.Rows]()
    for rows in alike:
        meta, has_key = rows[0]._meta, rows[0].pk is not None  # noqa: SLF001 - Django's documented API
        fields = [field for field in meta.concrete_fields if has_key or not field.primary_key]
        query = InsertQuery(type(rows[0]))
        query.insert_values(fields, rows)
        ((sql, values),) = query.get_compiler(connection=connection).as_sql()
        if connection.vendor == "sqlite":
            columns, width = tuple(field.column for field in fields), len(fields)
            each = [values[start : start + width] for start in range(0, len(values), width)]
            tables.append(together.Rows(table=meta.db_table, columns=columns, values=each))
        else:
            parts.append(f"part{len(parts)} AS ({sql})")
            params += values
    if tables:
        together.insert(connection, tables)
    else:
        with connection.cursor() as cursor:
            cursor.execute(f"WITH {', '.join(parts)} SELECT 1", params)


def _kept_back(session: Session) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = session.__dict__.setdefault("_kept_back", {})
    return found


def forget(session: Session, *names: str) -> None:
    """Other rows of these names changed: they are read again, at once."""
    if is_held(session):
        for name in names:
            _read(session).pop(name, None)
            session._state.fields_cache.pop(name, None)  # noqa: SLF001 - as above
        _ask(session, names)


def _ask(session: Session, names: Iterable[str]) -> None:
    """Read the session's rows of these names. To prefetch them would cost three times as much: a statement for any
    number of sessions, built anew each time.
    """
    plain = [name for name in names if name not in SINGLE and "__" not in name]
    for name in plain:
        found = _rows_of(name).rows(session.pk)
        for row in found:
            _relation(name).field.set_cached_value(row, session)
        rows = getattr(session, name).all()
        rows._result_cache = found  # noqa: SLF001 - as Django's own prefetching does
        _read(session)[name] = rows
    prefetch_related_objects([session], *(name for name in names if name not in plain))


@cache
def _rows_of(name: str) -> Prepared[Any]:
    """The query for a session's rows of that name, by the session's key."""
    relation = _relation(name)
    return Prepared(lambda key: relation.related_model.objects.filter(**{relation.field.name: key}), int)


def _relation(name: str) -> Any:
    return Session._meta.get_field(name)  # noqa: SLF001 - Django's documented API


@cache
def _which(names: tuple[str, ...]) -> str:
    """The query for which of these a session has any rows of, whose key it is to be given once for each."""
    found, quoted = [], connection.ops.quote_name
    for name in names:
        relation = _relation(name.partition("__")[0])
        table, column = relation.related_model._meta.db_table, relation.field.column  # noqa: SLF001
        found.append(f"EXISTS(SELECT 1 FROM {quoted(table)} WHERE {quoted(column)} = %s)")  # noqa: S608 - names
    return f"SELECT {', '.join(found)}"


def _has_none(session: Session, names: Iterable[str]) -> None:
    """It is known that the session has none of these."""
    for name in names:
        none = getattr(session, name).all()
        none._result_cache = []  # noqa: SLF001 - as Django's own prefetching does
        _read(session)[name] = none


def _read(session: Session) -> dict[str, Any]:
    found: dict[str, Any] = session.__dict__.setdefault("_prefetched_objects_cache", {})
    return found
