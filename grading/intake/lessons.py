"""The lessons that a session was given or that were held out from it, by its draws and by its metadata."""

from bandit import holdout
from bandit.models import Arm, UnknownArm
from grading.intake.submission import Problem, SubmittedSession, unknown_arm
from grading.models import Session, SessionLesson

BANDIT = "lesson"
Rows = dict[Arm, SessionLesson]


def record(session: Session, metadata: SubmittedSession) -> tuple[bool, list[Problem]]:
    """Add the session's lessons. Returns whether anything changed, and the problems. No recorded lesson is removed.

    The draw says whether a drawn lesson was given; the submitted list adds the salience of each lesson. A lesson that
    was held out but is in the list counts as given, and isn't evidence of the lesson's effect.
    """
    if not metadata.lessons and not metadata.lessons_decision_id:
        return False, []
    recorded = session.lessons.select_related("arm__merged_into", "assignment")
    rows: Rows = {row.arm.current: row for row in recorded}
    before = {row.pk: _state(row) for row in rows.values()}
    problems = [*_add_drawn(session, metadata, rows), *_add_submitted(session, metadata, rows)]
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
        if row.pk is not None:  # a new row tells the worker that something changed (`reward.lessons.overview`)
            row.delete()
        row.save(force_insert=True)
    return bool(changed), problems


def would_change(session: Session, metadata: SubmittedSession) -> bool:
    """Whether `record` would change something, or would not know one of the lessons."""
    rows = {row.arm.current: row for row in session.lessons.select_related("arm__merged_into")}
    for lesson in metadata.lessons:
        try:
            row = rows.get(Arm.objects.resolve(BANDIT, lesson.name))
        except UnknownArm:
            return True
        if row is None or not row.taken or (row.salience is None and lesson.salience is not None):
            return True
    decision = metadata.lessons_decision_id
    return bool(decision) and not session.lessons.filter(assignment__decision_id=decision).exists()


def _state(row: SessionLesson) -> tuple[object, ...]:
    return row.taken, row.salience, row.assignment_id


def _add_drawn(session: Session, metadata: SubmittedSession, rows: Rows) -> list[Problem]:
    """Close the draws of the assignment and add each drawn lesson, given or held out, to `rows`. Returns problems."""
    if not metadata.lessons_decision_id:
        return []
    try:
        draws = holdout.close(
            BANDIT, metadata.lessons_decision_id, observation=session.observation, agent=session.agent.name
        )
    except holdout.Taken as error:
        return [_assignment_problem("assignment_completed", "draws that no other session completed", str(error))]
    problems = []
    if not draws:
        expected = "the decision_id of draws that were made for this agent"
        problems.append(_assignment_problem("unknown_assignment", expected, repr(metadata.lessons_decision_id)))
    late = [draw for draw in draws if draw.created > session.ended_at]
    if late:
        names = ", ".join(draw.arm.name for draw in late)
        expected = f"draws from before the session ended, {session.ended_at:%F %T %Z}"
        problems.append(_assignment_problem("drawn_afterwards", expected, names))
    for draw in draws:
        if draw not in late:
            row = rows.setdefault(draw.arm.current, SessionLesson(session=session, arm=draw.arm, taken=draw.taken))
            row.assignment = row.assignment or draw
    return problems


def _add_submitted(session: Session, metadata: SubmittedSession, rows: Rows) -> list[Problem]:
    """Add each submitted lesson to `rows` as given, with the salience submitted first. Returns the unknown ones."""
    problems = []
    for lesson in metadata.lessons:
        try:
            arm = Arm.objects.resolve(BANDIT, lesson.name)
        except UnknownArm as error:
            problems.append(unknown_arm(BANDIT, lesson.name, error))
            continue
        row = rows.setdefault(arm, SessionLesson(session=session, arm=arm))
        row.taken = True
        if row.salience is None:
            row.salience = lesson.salience
    return problems


def _assignment_problem(code: str, expected: str, got: str) -> Problem:
    return Problem(
        part="lessons_decision_id",
        code=code,
        expected=expected,
        got=got,
        todo="send the decision_id that POST /api/v1/assignments was called with before the session, or leave it out",
    )
