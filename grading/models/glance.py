"""What an intake asks before anything else, in one statement: what people have set, and who else has its things.

look ─► Glance ─► holding (whoever asks for a rule, the rubric or the judge's key meanwhile finds it here)

It is read in the transaction that goes by it, so none of it is ever older than that.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import connection

# Of others' things: logs that name it as their parent, records, what is claimed, and files of the same bytes.
PARENT, ANCHORS, LOOKUPS, FILES = "parent", "anchors", "lookups", "files"
Probes = Mapping[str, Collection[Any]]
Row = tuple[list[Any], list[Any], list[Any]]

# Every part has the same columns: what it is, then so many texts, whole numbers and others.
TEXTS, WHOLES, OTHERS = 5, 5, 2


def _part(what: str, source: str, *, texts: str = "", wholes: str = "", others: str = "") -> str:
    """A part of the statement. What it does not say is blank, and 0."""
    said = [
        column.strip() or blank
        for columns, count, blank in ((texts, TEXTS, "''"), (wholes, WHOLES, "0"), (others, OTHERS, "0.0"))
        for column in (*columns.split(";"), *[""] * count)[:count]
    ]
    return f"SELECT '{what}', {', '.join(said)} {source}"


SET: Final = (
    _part(
        "artifact",
        "FROM grading_artifactrule",
        texts="kind; path_glob; line_pattern",
        wholes="ROW_NUMBER() OVER (ORDER BY weight DESC, kind); CASE WHEN new_files_only THEN 1 ELSE 0 END;"
        "least_characters",
        others="weight; scale",
    ),
    _part(
        "category",
        "FROM grading_categoryrule WHERE is_on AND NOT is_deleted",
        texts="CAST(conditions AS text); CAST(changed_at AS text)",
        wholes="position; id; category_id",
    ),
    _part("policy", "FROM grading_judgepolicy", wholes="MAX(id)"),
    _part("rubric", "FROM grading_rubric WHERE is_active", texts="kind", wholes="id"),
    _part("key", "FROM grading_judgekey", texts="sealed; base_url"),
    _part("session", "FROM grading_session WHERE agent_id = %s AND external_id = %s", wholes="id"),
)
# The bits of an arm's `flags`.
CONSUMPTION, LOOKING = 1, 2
_ARM = {
    "wholes": "arm.id; bandit.id; bandit.revision; bandit.history;"
    "CASE WHEN arm.is_consumption THEN 1 ELSE 0 END + CASE WHEN arm.is_looking THEN 2 ELSE 0 END",
    "others": "CASE WHEN arm.merged_into_id IS NULL THEN 0.0 ELSE 1.0 END",
}
_OF = "JOIN bandit_bandit bandit ON bandit.id = arm.bandit_id WHERE bandit.name = %s AND"
_ALIASES = "FROM bandit_armalias alias JOIN bandit_arm arm ON arm.id = alias.arm_id"
# By their names, and by their aliases.
ARMS: Final = (
    _part(
        "arm",
        f"FROM bandit_arm arm {_OF} arm.name = %s",
        texts="bandit.name; arm.name; arm.name; arm.title; bandit.kind",
        **_ARM,
    ),
    _part(
        "alias",
        f"{_ALIASES} {_OF} alias.alias = %s",
        texts="bandit.name; alias.alias; arm.name; arm.title; bandit.kind",
        **_ARM,
    ),
)
# The key that the next session gets, where that one is not there.
NEXT: Final = {
    "sqlite": "COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'grading_session'), 0) + 1",
    "postgresql": "nextval(pg_get_serial_sequence('grading_session', 'id'))",
}
IF_NEW: Final = "WHERE NOT EXISTS (SELECT 1 FROM grading_session WHERE agent_id = %s AND external_id = %s)"
# In the words of the indexes that leave rows out: to SQLite, `<> ''` is something else, and it reads all rows.
ELSEWHERE: Final = {
    PARENT: "grading_sessionlog WHERE NOT parent = '' AND parent IN",
    ANCHORS: "grading_recordanchor WHERE record IN",
    LOOKUPS: "grading_artifact WHERE kind IN ('commit', 'pull_request') AND NOT lookup = '' AND lookup IN",
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
class ArmRow:
    """An arm with its bandit, as far as an intake goes by them; one that was merged is left to who asks for it."""

    pk: int
    name: str
    title: str
    flags: int
    bandit: int
    kind: str
    revision: int
    history: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """What holds now: `artifact_rules` as the columns of RULE_FIELDS, the heaviest first, and the category rules that
    are on, the first first; the keys of the latest judge policy and of the active rubrics by their kind of work; the
    judge's stored key, sealed, and its address.

    `arms` are those named, by bandit and text; None stands for one that nothing was found for.

    `session` is the key of the agent's session of that name, or `following` the one that it gets. `elsewhere` says of
    which of the things that were asked about somebody else has any, `asked` what these were.
    """

    artifact_rules: tuple[tuple[Any, ...], ...] = ()
    category_rules: tuple[CategoryRuleRow, ...] = ()
    policy: int | None = None
    rubrics: Mapping[str, int] = field(default_factory=dict)
    key: tuple[str, str] | None = None
    arms: Mapping[tuple[str, str], ArmRow | None] = field(default_factory=dict)
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


def look(agent: int, name: str, probes: Probes | None = None, arms: Collection[tuple[str, str]] = ()) -> Glance:
    """What holds, whether the agent has a session of that name, and the arms of these names, each with its bandit's and
    spelt as names are kept. One statement.

    With `probes`, in the transaction that makes the session where there is none: by what they are, things of the
    session that others may have, too.
    """
    sql, params = [*SET], list[Any]([agent, name])
    for arm in arms:
        sql += ARMS
        params += [*arm, *arm]
    if probes is not None:
        sql.append(_part("next", IF_NEW, wholes=NEXT[connection.vendor]))
        params += [agent, name]
    for what, asked in (probes or {}).items():
        if asked:
            marks = ", ".join(["%s"] * len(asked))
            there = f"WHERE EXISTS (SELECT 1 FROM {ELSEWHERE[what]} ({marks}))"  # noqa: S608 - names
            sql.append(_part("elsewhere", there, texts=f"'{what}'"))
            params += map(bytes.fromhex, asked) if what == FILES else asked
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(sql), params)
        return _seen(cursor.fetchall(), probes or {}, arms)


def _seen(rows: Iterable[tuple[Any, ...]], asked: Probes, names: Collection[tuple[str, str]]) -> Glance:
    found = defaultdict[str, list[Row]](list)
    for what, *columns in rows:
        found[what].append((columns[:TEXTS], columns[TEXTS : TEXTS + WHOLES], columns[TEXTS + WHOLES :]))
    key = next((texts for texts, _wholes, _others in found["key"]), None)
    return Glance(
        artifact_rules=tuple(
            (kind, glob, pattern, bool(new_only), weight, scale, least)
            for (kind, glob, pattern, *_), (_place, new_only, least, *_rest), (weight, scale) in sorted(
                found["artifact"], key=_by_place
            )
        ),
        category_rules=tuple(
            CategoryRuleRow(pk=pk, position=position, conditions=said, category=category, changed_at=_moment(changed))
            for (said, changed, *_), (position, pk, category, *_rest), _others in sorted(
                found["category"], key=_by_place
            )
        ),
        policy=_number(found["policy"]),
        rubrics={texts[0]: wholes[0] for texts, wholes, _others in found["rubric"]},
        key=None if key is None else (key[0], key[1]),
        arms=_arms([*found["alias"], *found["arm"]], names),
        session=_number(found["session"]),
        following=_number(found["next"]),
        asked=asked,
        elsewhere=frozenset(texts[0] for texts, _wholes, _others in found["elsewhere"]),
    )


def _by_place(row: Row) -> list[Any]:
    return row[1][:2]


def _number(rows: Sequence[Row]) -> int | None:
    """The first whole number of the only row, if it is there."""
    return rows[0][1][0] if rows else None


def _arms(rows: Sequence[Row], names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], ArmRow | None]:
    """The arms by these names, those that were merged left out; of two the last counts, which its own name names."""
    found: dict[tuple[str, str], ArmRow | None] = dict.fromkeys(names)
    for (bandit, text, name, title, kind), (pk, own, revision, history, flags), _others in rows:
        found[bandit, text] = ArmRow(
            pk=pk, name=name, title=title, flags=flags, bandit=own, kind=kind, revision=revision, history=history
        )
    merged = {(texts[0], texts[1]) for texts, _wholes, others in rows if others[0]}
    return {name: arm for name, arm in found.items() if name not in merged}


def _moment(text: str) -> dt.datetime:
    """A column of times as text: SQLite's are in UTC, and do not say so."""
    moment = dt.datetime.fromisoformat(text)
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment
