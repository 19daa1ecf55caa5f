"""The lessons that a session was given or that were held out from it: by its draws, and by what the caller says."""

from collections.abc import Iterator

from bandit import holdout
from bandit.models import Arm, UnknownArm
from grading.intake.describing import unknown
from grading.intake.submission import Problem, SubmittedSession
from grading.models import Session, SessionLesson

BANDIT = "lesson"
Rows = dict[Arm, SessionLesson]


def record(session: Session, said: SubmittedSession) -> tuple[bool, list[Problem]]:
    """Add the session's lessons; whether anything changed, and what was wrong. Nothing that was said is taken back.

    A lesson that was drawn is as the draw says; the caller's list says how much each had to do with the session. One
    that was held out and given all the same is taken for what happened, and is no evidence of what it causes.
    """
    if not said.lessons and not said.lessons_decision_id:
        return False, []
    held = session.lessons.select_related("arm__merged_into", "assignment")
    rows: Rows = {row.arm.current: row for row in held}
    before = {row.pk: _state(row) for row in rows.values()}
    problems = [*_drawn(session, said, rows), *_given(session, said, rows)]
    problems += [
        Problem(
            part="lessons",
            code="held_out_but_given",
            expected=f"{arm.name} to be left out, as {row.assignment.decision_id} drew it",
            got="the session with it",
            todo="nothing: it counts as given, and not for what the lesson causes; else heed the draw next time",
            is_error=False,
        )
        for arm, row in rows.items()
        if row.taken and row.assignment is not None and not row.assignment.taken
    ]
    changed = [row for row in rows.values() if row.pk is None or before[row.pk] != _state(row)]
    for row in changed:
        if row.pk is not None:  # a new row tells the worker that something changed (`reward.lessons.shown`)
            row.delete()
        row.save(force_insert=True)
    return bool(changed), problems


def _state(row: SessionLesson) -> tuple[object, ...]:
    return row.taken, row.salience, row.assignment_id


def _drawn(session: Session, said: SubmittedSession, rows: Rows) -> Iterator[Problem]:
    """Each lesson of the assignment, taken or held out; the draws are closed by this session."""
    if not said.lessons_decision_id:
        return
    try:
        draws = holdout.close(
            BANDIT, said.lessons_decision_id, observation=session.observation, agent=session.agent.name
        )
    except holdout.Taken as error:
        yield _wrong("assignment_completed", "draws that no other session completed", str(error))
        return
    if not draws:
        expected = "the decision_id of draws that were made for this agent"
        yield _wrong("unknown_assignment", expected, repr(said.lessons_decision_id))
    late = [draw for draw in draws if draw.created > session.ended_at]
    if late:
        names = ", ".join(draw.arm.name for draw in late)
        yield _wrong("drawn_afterwards", f"draws from before the session ended, {session.ended_at:%F %T %Z}", names)
    for draw in draws:
        if draw not in late:
            row = rows.setdefault(draw.arm.current, SessionLesson(session=session, arm=draw.arm, taken=draw.taken))
            row.assignment = row.assignment or draw


def _given(session: Session, said: SubmittedSession, rows: Rows) -> Iterator[Problem]:
    """Each lesson that the caller says it gave, with the salience that it says first."""
    for each in said.lessons:
        try:
            arm = Arm.objects.resolve(BANDIT, each.name)
        except UnknownArm as error:
            yield unknown(BANDIT, each.name, error)
            continue
        row = rows.setdefault(arm, SessionLesson(session=session, arm=arm))
        row.taken = True
        if row.salience is None:
            row.salience = each.salience


def _wrong(code: str, expected: str, got: str) -> Problem:
    return Problem(
        part="lessons_decision_id",
        code=code,
        expected=expected,
        got=got,
        todo="send the decision_id that POST /api/v1/assignments was called with before the session, or leave it out",
    )
