"""The rows of a session that is locked, each kind of them read once: while it is taken in, many ask for the same.

hold ─► session.grades.all(), session.log, …  (asked for without a query) ─► let_go

Of a session that was made in this transaction it is known that it has none. Whoever writes rows of a session that may
be held says so, by `wrote` or `forget`; to one that is not held both mean nothing.
"""

from collections.abc import Iterable
from typing import Any

from django.db.models import Model, prefetch_related_objects

from grading.models.sessions import Session

HELD, NEW = "_is_held", "_is_new"
# What is read of a session that was there before; and what it is known besides that a new one has none of.
READ = ("evidence", "grades", "artifacts", "flags", "judge_jobs", "sketches", "proposals", "lessons__arm__merged_into")
NONE = (*(name.partition("__")[0] for name in READ), "anchors", "parts", "settlements", "category_words")
SINGLE = ("log", "state", "extracted", "shares", "review_item", "traits")


def hold(session: Session, *, is_new: bool) -> None:
    """From now on the session, which the caller has locked, has its rows at hand. `is_new`: it has none yet."""
    setattr(session, HELD, True)
    setattr(session, NEW, is_new)
    if not is_new:
        prefetch_related_objects([session], *READ)
        return
    for name in SINGLE:
        session._state.fields_cache[name] = None  # noqa: SLF001 - as Django's own select_related does
    for name in NONE:
        none = getattr(session, name).all()
        none._result_cache = []  # noqa: SLF001 - as Django's own prefetching does
        _read(session)[name] = none


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


def forget(session: Session, *names: str) -> None:
    """Other rows of these names changed: they are read again, at once."""
    if is_held(session):
        for name in names:
            _read(session).pop(name, None)
            session._state.fields_cache.pop(name, None)  # noqa: SLF001 - as above
        prefetch_related_objects([session], *names)


def _read(session: Session) -> dict[str, Any]:
    found: dict[str, Any] = session.__dict__.setdefault("_prefetched_objects_cache", {})
    return found
