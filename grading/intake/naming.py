"""Naming models: a model text from a transcript names a model only through an arm or an alias of one.

No arm is made from a text, so that nobody who submits sessions can add one.
"""

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
# Sessions that get their model within a request, and in one run of the worker.
SYNC_LIMIT, BATCH_SIZE = 20, 500
# A date at the end of a model text, which people leave out of the model's name.
DATE_SUFFIX = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")
# Sessions with one text are counted up to here.
MAX_COUNT = 1000
# Each model text of sessions without a model, with the number of these sessions up to a limit and the latest of them.
# Takes one index lookup for each text.
WITHOUT_MODEL = """
grading_session WHERE model_arm_id IS NULL AND NOT (model = '')
    AND id NOT IN (SELECT id FROM grading_session WHERE is_sample)
"""
MODEL_TEXTS = f"""
WITH RECURSIVE seen(text) AS (
    SELECT (SELECT MIN(model) FROM {WITHOUT_MODEL})
    UNION ALL
    SELECT (SELECT MIN(model) FROM {WITHOUT_MODEL} AND model > seen.text) FROM seen WHERE seen.text IS NOT NULL
)
SELECT text,
    (SELECT COUNT(*) FROM (SELECT 1 FROM {WITHOUT_MODEL} AND model = seen.text LIMIT %s) AS counted),
    (SELECT id FROM {WITHOUT_MODEL} AND model = seen.text ORDER BY ended_at DESC LIMIT 1)
FROM seen WHERE text IS NOT NULL
"""  # noqa: S608 - no input in it


@dataclass(frozen=True, slots=True, kw_only=True)
class UnnamedText:
    """A model text that names no model yet, the number of sessions with it (MAX_COUNT + 1 for any more than that), the
    end of the latest, and a suggested name.
    """

    text: str
    sessions: int
    last: dt.datetime
    suggestion: str

    @property
    def is_counted(self) -> bool:
        return self.sessions <= MAX_COUNT

    @property
    def count(self) -> str:
        """The number of sessions as text."""
        return f"{self.sessions:,}" if self.is_counted else f"more than {MAX_COUNT:,}"


def unnamed_texts() -> list[UnnamedText]:
    """The model texts that name no model: those with more than MAX_COUNT sessions first, the latest of them first; then
    the others, the most frequent first. Three queries.
    """
    models = _models_by_name()
    texts = [row for row in _model_texts() if canonical(row[0]) not in models]
    latest_keys = [latest for _text, _count, latest in texts]  # of each text's latest session
    ended_at = dict(Session.objects.filter(pk__in=latest_keys).values_list("pk", "ended_at"))
    rows = [
        UnnamedText(text=text, sessions=count, last=ended_at[latest], suggestion=DATE_SUFFIX.sub("", canonical(text)))
        for text, count, latest in texts
        if latest in ended_at
    ]
    uncounted = [row for row in rows if not row.is_counted]
    counted = [row for row in rows if row.is_counted]
    uncounted.sort(key=lambda row: (-row.last.timestamp(), row.text))
    counted.sort(key=lambda row: (-row.sessions, row.text))
    return uncounted + counted


def name_model(text: str, *, by: str, name: str = "", arm: Arm | None = None) -> Arm:
    """Make `text` an alias of `arm`, or of a new model called `name`, and give the sessions with this text that model:
    some at once, the rest by a worker. Raises ValueError for a name that is invalid or taken.
    """
    with transaction.atomic():
        model = arm or arms.add(BANDIT, name or text, by=by, why=f"Seen as {text}.")
        if canonical(text) != model.name:
            arms.add_alias(model, text, by=by)
    if assign_models(SYNC_LIMIT) == SYNC_LIMIT:
        wakeup.publish("grading.tasks.name_models")
    return model


def count_waiting() -> int:
    """The number of sessions without a model whose model text now names one."""
    return _sessions_without_model().filter(model__in=_models_by_text()).count()


def assign_models(limit: int = BATCH_SIZE) -> int:
    """Assign a model to up to `limit` sessions whose model text now names one, and settle them under it.

    Each session has its own transaction. Returns how many sessions were found, also if another process was faster.
    """
    texts = _models_by_text()
    rows = list(_sessions_without_model().filter(model__in=texts).order_by("-ended_at")[:limit])
    for session in rows:
        with transaction.atomic():
            if Session.objects.filter(pk=session.pk, model_arm=None).update(model_arm=texts[session.model]):
                settle(session)  # loads the row again, with its model
    return len(rows)


def unmerge(arm: Arm, *, by: str, why: str = "") -> Unmerged:
    """Undo a merge, and settle the sessions whose reward changed since the merge.

    Raises what `bandit.merging.unmerge` raises.
    """
    unmerged = merging.unmerge(arm, by=by, why=why)
    changed_sessions = Session.objects.by_observation(unmerged.to_settle)
    for session in changed_sessions.values():
        settle(session)
    return unmerged


def _sessions_without_model() -> SessionQuerySet:
    return Session.objects.yours().filter(model_arm=None).exclude(model="")


def _model_texts() -> list[tuple[str, int, int]]:
    """The rows of MODEL_TEXTS: each text, its number of sessions up to MAX_COUNT + 1, and the key of the latest one."""
    with connection.cursor() as cursor:
        cursor.execute(MODEL_TEXTS, [MAX_COUNT + 1])
        return list(cursor.fetchall())


def _models_by_text() -> Mapping[str, Arm]:
    """The model that each text of sessions without a model now names; texts that name none are left out."""
    models = _models_by_name()
    texts = [text for text, *_ in _model_texts()]
    return {text: models[canonical(text)] for text in texts if canonical(text) in models}


def _models_by_name() -> dict[str, Arm]:
    """Every model by its name and its aliases."""
    rows = Arm.objects.in_bandit(BANDIT).select_related("merged_into")
    aliases = ArmAlias.objects.filter(bandit__name=BANDIT).select_related("arm__merged_into")
    return {arm.name: arm.current for arm in rows} | {each.alias: each.arm.current for each in aliases}
