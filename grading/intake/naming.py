"""Models by the names people gave them: a transcript's text is a name only through an arm or an alias of one (L13)."""

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.db import connection, transaction

from bandit import arms, merging
from bandit.merging import Unmerged
from bandit.models import Arm, ArmAlias
from bandit.names import canonical
from grading import wakeup
from grading.models import Session
from grading.models.sessions import SessionQuerySet
from grading.reward.rewards import settle

BANDIT = "model"
# So many sessions get their name while somebody waits for the page, and so many in one go of the worker.
SYNC_LIMIT, BATCH_SIZE = 20, 500
# A date at the end of a model's name, which people leave out of the name that they give it.
DATED = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")


# Where there are more, nobody counts them.
COUNTED = 1000
# Each text that sessions without a model show, by one step in an index for each: how many do, up to a limit, and which
# of them is the latest.
NAMELESS = """
grading_session WHERE model_arm_id IS NULL AND NOT (model = '')
    AND id NOT IN (SELECT id FROM grading_session WHERE is_sample)
"""
SEEN = f"""
WITH RECURSIVE seen(text) AS (
    SELECT (SELECT MIN(model) FROM {NAMELESS})
    UNION ALL
    SELECT (SELECT MIN(model) FROM {NAMELESS} AND model > seen.text) FROM seen WHERE seen.text IS NOT NULL
)
SELECT text,
    (SELECT COUNT(*) FROM (SELECT 1 FROM {NAMELESS} AND model = seen.text LIMIT %s) AS counted),
    (SELECT id FROM {NAMELESS} AND model = seen.text ORDER BY ended_at DESC LIMIT 1)
FROM seen WHERE text IS NOT NULL
"""  # noqa: S608 - of our own words


@dataclass(frozen=True, slots=True, kw_only=True)
class Unnamed:
    """A model's text that is nobody's name yet: in how many sessions, COUNTED + 1 for more than that, when last, and
    what it might be called.
    """

    text: str
    sessions: int
    last: dt.datetime
    suggestion: str

    @property
    def is_counted(self) -> bool:
        return self.sessions <= COUNTED

    @property
    def count(self) -> str:
        """In how many sessions, in words."""
        return f"{self.sessions:,}" if self.is_counted else f"more than {COUNTED:,}"


def unnamed() -> list[Unnamed]:
    """The models that were seen and have no name, the most frequent first; of more than COUNTED each, the latest. Three
    queries.
    """
    known = _names()
    seen = [row for row in _seen() if canonical(row[0]) not in known]
    latest = dict(Session.objects.filter(pk__in=[pk for *_, pk in seen]).values_list("pk", "ended_at"))
    found = [
        Unnamed(text=text, sessions=n, last=latest[pk], suggestion=DATED.sub("", canonical(text)))
        for text, n, pk in seen
        if pk in latest
    ]
    found.sort(key=lambda each: (-each.sessions, each.text))
    # How many more than COUNTED, nobody knows.
    return sorted(found, key=lambda each: 0.0 if each.is_counted else -each.last.timestamp())


def name_it(text: str, *, by: str, name: str = "", arm: Arm | None = None) -> Arm:
    """Make `text` an alias of `arm`, or of a new model called `name`; then the sessions that showed it have that model.

    Some at once, the rest by a worker. Raises ValueError for a name that cannot be, or is taken.
    """
    with transaction.atomic():
        found = arm or arms.add(BANDIT, name or text, by=by, why=f"Seen as {text}.")
        if canonical(text) != found.name:
            arms.add_alias(found, text, by=by)
    if catch_up(SYNC_LIMIT) == SYNC_LIMIT:
        wakeup.publish("grading.tasks.name_models")
    return found


def waiting() -> int:
    """How many sessions show a model that has a name by now, and have not been given it yet."""
    return _nameless().filter(model__in=_nameable()).count()


def catch_up(limit: int = BATCH_SIZE) -> int:
    """Give sessions the model that their text names by now and settle them, so that their reward is the right pair's.

    Up to `limit`, each in a transaction of its own. Returns how many.
    """
    texts = _nameable()
    rows = list(_nameless().filter(model__in=texts).order_by("-ended_at")[:limit])
    for session in rows:
        with transaction.atomic():
            if Session.objects.filter(pk=session.pk, model_arm=None).update(model_arm=texts[session.model]):
                settle(session)
    return len(rows)


def unmerge(arm: Arm, *, by: str, why: str = "") -> Unmerged:
    """Undo a merge, and settle the sessions whose reward was changed since. Raises as `bandit.merging.part`."""
    unmerged = merging.unmerge(arm, by=by, why=why)
    for session in Session.objects.by_observation(unmerged.again).values():
        settle(session)
    return unmerged


def _nameless() -> SessionQuerySet:
    return Session.objects.yours().filter(model_arm=None).exclude(model="")


def _seen() -> list[tuple[str, int, int]]:
    with connection.cursor() as cursor:
        cursor.execute(SEEN, [COUNTED + 1])
        return list(cursor.fetchall())


def _nameable() -> Mapping[str, Arm]:
    """The texts of sessions without a model that name one by now."""
    known = _names()
    texts = [text for text, *_ in _seen()]
    return {text: known[canonical(text)] for text in texts if canonical(text) in known}


def _names() -> dict[str, Arm]:
    """Every model by its name and its aliases."""
    rows = Arm.objects.of(BANDIT).select_related("merged_into")
    aliases = ArmAlias.objects.filter(bandit__name=BANDIT).select_related("arm__merged_into")
    return {arm.name: arm.current for arm in rows} | {each.alias: each.arm.current for each in aliases}
