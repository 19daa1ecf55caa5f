"""Writes simulated sessions into the site's tables: sessions, their facts, verdicts, settlements and reward columns.

A session's intake and settling take 50 ms, and a run has thousands. So the rows that they would leave are written
directly; `check` compares the reward columns with what the site derives from the other rows.
"""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.compared.world import CATEGORIES, Sessions

START = dt.date(2026, 1, 5)  # a Monday
RUBRICS = tuple(f"{number}" * 64 for number in "ab")
JUDGE, DIGEST = "judge-1", "digest-1"
HARNESSES = ("claude-code", "codex")
FIRST_KEY = 1_000_000


def day_of(number: int) -> dt.date:
    return START + dt.timedelta(days=number)


def end_of(number: int) -> dt.datetime:
    return dt.datetime.combine(day_of(number), dt.time(23, 59), dt.UTC)


@contextmanager
def stored(sessions: Sessions, rng: np.random.Generator, *, reread: int = 0) -> Iterator[None]:
    """Store the sessions, and `reread` verdicts by the last rubric of those that the first one judged. Undone at the
    end.
    """
    from django.db import transaction

    with transaction.atomic():
        write(sessions, rng, reread)
        yield
        transaction.set_rollback(True)


def write(sessions: Sessions, rng: np.random.Generator, reread: int) -> None:
    from bandit.models import Arm
    from grading.models import Agent, JudgeJob, Rubric, Session, SessionFacts, Settlement
    from grading.models.grades import question_of
    from grading.models.judging import JobState, Purpose

    agent, _ = Agent.objects.get_or_create(name="sim")
    categories = [Arm.objects.resolve("category", name).pk for name in CATEGORIES]
    harnesses = [Arm.objects.resolve("harness", name).pk for name in HARNESSES]
    count = len(sessions.day)
    keys = list(range(FIRST_KEY, FIRST_KEY + count))
    seconds = rng.integers(0, 86_400, count).tolist()
    ended = [
        dt.datetime.combine(day_of(day), dt.time(), dt.UTC) + dt.timedelta(seconds=second)
        for day, second in zip(sessions.day.tolist(), seconds, strict=True)
    ]
    is_graded = ~np.isnan(sessions.reward)
    graded = is_graded.tolist()
    rewards = {
        "value": [float(value) if good else 0.3 for value, good in zip(sessions.reward, graded, strict=True)],
        "source": ["judge" if good else "floor" for good in graded],
        "final": graded,
        "weight": [float(good) for good in graded],
        "reason": ["" if good else "no_evidence" for good in graded],
    }
    verdicts = [key if good else None for key, good in zip(keys, graded, strict=True)]
    questions = [question_of(rubric, DIGEST) for rubric in RUBRICS]
    asked = [questions[rubric] if good else None for rubric, good in zip(sessions.rubric.tolist(), graded, strict=True)]
    insert(
        Session(agent=agent, model="model-1", cost_unknown=""),
        id=keys,
        external_id=[f"sim-{key}" for key in keys],
        category_id=[categories[each] for each in sessions.category],
        harness_id=[harnesses[each] for each in sessions.harness],
        task=["" if task < 0 else f"task-{task}" for task in sessions.task],
        ended_at=ended,
        received_at=ended,
        cost_micro=sessions.cost.tolist(),
        settlement_id=keys,
        verdict_id=verdicts,
        verdict_question=asked,
        **{f"reward_{name}": values for name, values in rewards.items()},
    )
    versions = ["2.0" if each else "1.0" for each in sessions.is_new]
    insert(SessionFacts(), session_id=keys, harness_version=versions, minutes=sessions.minutes.tolist())
    insert(Settlement(revision=1, steps=[]), id=keys, session_id=keys, grade_id=verdicts, created_at=ended, **rewards)
    insert_verdicts(
        sessions=np.array(keys)[is_graded].tolist(),
        values=sessions.reward[is_graded].tolist(),
        rubrics=[RUBRICS[rubric] for rubric in sessions.rubric[is_graded]],
        first_key=None,
    )
    judged_before = np.flatnonzero((sessions.rubric == 0) & is_graded)
    again = rng.choice(judged_before, min(reread, len(judged_before)), replace=False)
    insert_verdicts(
        sessions=(again + FIRST_KEY).tolist(),
        values=sessions.reread[again].tolist(),
        rubrics=[RUBRICS[1]] * len(again),
        first_key=FIRST_KEY + count,
    )
    trial = JudgeJob(rubric=Rubric.objects.active(), purpose=Purpose.TRIAL, state=JobState.DONE, reason="")
    trial.created_at = trial.finished_at = end_of(int(sessions.day.max()))
    insert(trial, id=(again + FIRST_KEY).tolist(), session_id=(again + FIRST_KEY).tolist())


def insert_verdicts(*, sessions: list[int], values: list[float], rubrics: list[str], first_key: int | None) -> None:
    """Verdicts that the chain reads, with the keys of their sessions; or parallel ones, with keys from `first_key`."""
    from grading.models import Grade
    from grading.vocabulary import Source, Status

    is_parallel = first_key is not None
    keys = list(range(first_key, first_key + len(sessions))) if first_key is not None else sessions
    prototype = Grade(
        source=Source.JUDGE,
        status=Status.SCORED,
        model=JUDGE,
        version=DIGEST,
        parallel=is_parallel,
        evidence={"purpose": "trial"} if is_parallel else {},
        created_at=end_of(0),
    )
    insert(
        prototype,
        id=keys,
        session_id=sessions,
        value=values,
        rubric=rubrics,
        inputs_sha256=[f"{key:064x}" for key in keys],
        identity=keys,
    )


def insert(prototype: Any, **columns: list[Any]) -> None:
    """Insert copies of a row that differ in these columns. Django's `bulk_create` takes ten times as long."""
    from django.db import connection

    if not next(iter(columns.values())):
        return

    fields = prototype._meta.concrete_fields  # noqa: SLF001 - public by Django's documentation
    count = len(next(iter(columns.values())))
    values = []
    for field in fields:
        given = columns.get(field.attname)
        if given is None:
            value = field.get_db_prep_save(getattr(prototype, field.attname), connection)
            values.append([value] * count)
        else:
            values.append([field.get_db_prep_save(value, connection) for value in given])
    names = ", ".join(f'"{field.column}"' for field in fields)
    marks = ", ".join(["%s"] * len(fields))
    table = prototype._meta.db_table  # noqa: SLF001
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(zip(*values, strict=True)))  # noqa: S608


def check() -> None:
    """Compare the reward columns of all sessions with what the site derives from their other rows."""
    from grading.reward import state

    wrong = [str(mismatch) for _count, mismatches in state.rebuild() for mismatch in mismatches]
    if wrong:
        raise SystemExit(f"expected reward columns as the site derives them; got {wrong[:3]}")
