"""What an intake asks first, in one statement: what people have set, and whether others touch its things.

look ─► Glance ─► holding (whoever asks for a rule, the rubric or the judge's key meanwhile finds it here)

It is read in the transaction that goes by it, so none of it is ever older than that.
"""

import datetime as dt
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import connection

# Of others' things: logs that name it as their parent, records, what is claimed, and files of the same bytes.
PARENT, ANCHORS, LOOKUPS, FILES = "parent", "anchors", "lookups", "files"
Probes = Mapping[str, Collection[Any]]

# The same columns everywhere: what it is, three texts, three whole numbers, two others.
SET: Final = """
SELECT 'artifact', kind, path_glob, line_pattern, CASE WHEN new_files_only THEN 1 ELSE 0 END, least_characters,
       ROW_NUMBER() OVER (ORDER BY weight DESC, kind), weight, scale
  FROM grading_artifactrule
UNION ALL
SELECT 'category', CAST(conditions AS text), CAST(changed_at AS text), '', id, position, category_id, 0.0, 0.0
  FROM grading_categoryrule WHERE is_on
UNION ALL SELECT 'policy', '', '', '', MAX(id), 0, 0, 0.0, 0.0 FROM grading_judgepolicy
UNION ALL SELECT 'rubric', kind, '', '', id, 0, 0, 0.0, 0.0 FROM grading_rubric WHERE is_active
UNION ALL SELECT 'key', sealed, base_url, '', id, 0, 0, 0.0, 0.0 FROM grading_judgekey
UNION ALL
SELECT 'session', '', '', '', id, 0, 0, 0.0, 0.0 FROM grading_session WHERE agent_id = %s AND external_id = %s
"""
# The key that the next session gets, where that one is not there.
NEXT: Final = {
    "sqlite": "COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'grading_session'), 0) + 1",
    "postgresql": "nextval(pg_get_serial_sequence('grading_session', 'id'))",
}
IF_NEW: Final = "WHERE NOT EXISTS (SELECT 1 FROM grading_session WHERE agent_id = %s AND external_id = %s)"
ELSEWHERE: Final = {
    PARENT: "grading_sessionlog WHERE parent <> '' AND parent IN",
    ANCHORS: "grading_recordanchor WHERE record IN",
    LOOKUPS: "grading_artifact WHERE kind IN ('commit', 'pull_request') AND lookup <> '' AND lookup IN",
    FILES: "grading_evidence WHERE kind IN ('transcript', 'journal', 'patch') AND sha256 IN",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryRuleRow:
    """A rule that is on. `conditions` as JSON."""

    pk: int
    position: int
    conditions: str
    category: int
    changed_at: dt.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """What holds now: `artifact_rules` as the columns of RULE_FIELDS, the heaviest first, and the category rules that
    are on, the first first; the keys of the latest judge policy and of the active rubrics by their kind of work; the
    judge's stored key, sealed, and its address.

    `session` is the key of the agent's session of that name, or `following` the one that it gets. `elsewhere` says of
    which of the things that were asked about somebody else has any, `asked` what these were.
    """

    artifact_rules: tuple[tuple[Any, ...], ...] = ()
    category_rules: tuple[CategoryRuleRow, ...] = ()
    policy: int | None = None
    rubrics: Mapping[str, int] = field(default_factory=dict)
    key: tuple[str, str] | None = None
    session: int | None = None
    following: int | None = None
    asked: Probes = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()

    @property
    def free(self) -> dict[str, frozenset[Any]]:
        """What nobody else has, by what it is."""
        return {what: frozenset(asked) for what, asked in self.asked.items() if what not in self.elsewhere}


_held: ContextVar[Glance | None] = ContextVar("glance", default=None)


def held() -> Glance | None:
    """What the caller's intake saw; None outside of one, and whoever asks is to read for himself."""
    return _held.get()


@contextmanager
def holding(seen: Glance) -> Iterator[None]:
    """For the rest of a transaction: what was seen in it."""
    token = _held.set(seen)
    try:
        yield
    finally:
        _held.reset(token)


def look(agent: int, name: str, probes: Probes | None = None) -> Glance:
    """What holds, and whether the agent has a session of that name. One statement.

    With `probes`, in the transaction that makes the session where there is none: by what they are, things of the
    session that others may have, too.
    """
    sql, params = [SET], list[Any]([agent, name])
    if probes is not None:
        sql.append(f"SELECT 'next', '', '', '', {NEXT[connection.vendor]}, 0, 0, 0.0, 0.0 {IF_NEW}")
        params += [agent, name]
    for what, asked in (probes or {}).items():
        if asked:
            marks = ", ".join(["%s"] * len(asked))
            sql.append(
                f"SELECT 'elsewhere', '{what}', '', '', 0, 0, 0, 0.0, 0.0 "  # noqa: S608 - names
                f"WHERE EXISTS (SELECT 1 FROM {ELSEWHERE[what]} ({marks}))"
            )
            params += asked
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(sql), params)
        return _seen(cursor.fetchall(), probes or {})


def _seen(rows: list[tuple[Any, ...]], asked: Probes) -> Glance:
    found: dict[str, list[tuple[Any, ...]]] = {}
    for what, *columns in rows:
        found.setdefault(what, []).append(tuple(columns))
    artifacts = sorted(found.get("artifact", ()), key=lambda row: row[5])
    categories = sorted(found.get("category", ()), key=lambda row: (row[4], row[3]))
    key, session, following = (found.get(what, [()])[0] for what in ("key", "session", "next"))
    return Glance(
        artifact_rules=tuple(
            (kind, glob, pattern, bool(new_only), weight, scale, least)
            for kind, glob, pattern, new_only, least, _place, weight, scale in artifacts
        ),
        category_rules=tuple(
            CategoryRuleRow(pk=pk, position=position, conditions=said, category=category, changed_at=_moment(changed))
            for said, changed, _text, pk, position, category, *_rest in categories
        ),
        policy=found["policy"][0][3],
        rubrics={row[0]: row[3] for row in found.get("rubric", ())},
        key=(key[0], key[1]) if key else None,
        session=session[3] if session else None,
        following=following[3] if following else None,
        asked=asked,
        elsewhere=frozenset(row[0] for row in found.get("elsewhere", ())),
    )


def _moment(text: str) -> dt.datetime:
    """A column of times as text: SQLite's are in UTC, and do not say so."""
    moment = dt.datetime.fromisoformat(text)
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment
