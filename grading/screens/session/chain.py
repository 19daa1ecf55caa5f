"""The reward chain as tiles, and the grades that the pages show beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grading.models import Grade, JudgeAttempt, Session, Settlement
from grading.reward import calibrating, rewards
from grading.reward.decide import MAX_ADDED, MAX_READINGS, CurrentGrades, GradeView, contests, gap, is_claimed, value_of
from grading.reward.explain import StepState, number, weight
from grading.screens.session import reasons
from grading.screens.session.reasons import NextJudging
from grading.vocabulary import Reason, Source

# A tile that decides nothing and says little is narrow.
NARROW = f"{StepState.SKIPPED} slim"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledGrade:
    """A fallback's grade as `read` on the judge's scale by the category bandit, and how much it `counts` there, or
    would count if it decided.
    """

    read: calibrating.Calibrated
    counts: float


def tiles(
    settlement: Settlement | None,
    *,
    stale: str = "",
    next_judging: NextJudging | None = None,
    scaled: Mapping[int, ScaledGrade] | None = None,
) -> list[dict[str, Any]]:
    """A tile for each stored step of the settlement: the step's keys, its CSS classes as `css`, `stale` and `scaled`.

    `stale` says why the judge's verdict is stale; `next_judging` gives a queued judge's place in the queue; `scaled`
    are the fallbacks' grades on the judge's scale, by the grade's id.
    """
    if settlement is None:
        return []
    shown = [_tile(step, settlement, scaled or {}) for step in settlement.steps]
    if reasons.has_no_reward(settlement):
        return _stopped(settlement.session, shown)
    for tile in shown:
        if tile["source"] == Source.FLOOR and reasons.is_ungraded(settlement):
            tile |= {"value": None, "headline": "–", "why": "Not graded yet; never learned"}
        if tile["source"] == Source.JUDGE:
            tile["stale"] = stale
            if tile["state"] == StepState.FAILED and not _was_judge_called(settlement.session_id):
                tile["headline"] = "Not sent yet"
            if next_judging is not None and next_judging.place and tile["state"] == StepState.WAITING:
                tile["headline"] = f"Queued, {next_judging.place}"
    return shown


def _was_judge_called(session_id: int) -> bool:
    return JudgeAttempt.objects.filter(job__session=session_id).exists()


def _tile(step: Mapping[str, Any], settlement: Settlement, scaled: Mapping[int, ScaledGrade]) -> dict[str, Any]:
    state = StepState(step["state"])
    css = str(state)
    if step["provisional"] and state is StepState.DECIDES:
        css = f"{state} prov"
    is_unlearned_floor = step["source"] == Source.FLOOR and settlement.weight == 0
    if state is StepState.SKIPPED or is_unlearned_floor:
        css = NARROW
    return {**step, "css": css, "stale": "", "scaled": scaled.get(step["grade"])}


def _stopped(session: Session, tiles: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The chain of a session whose outcome allows no reward: a tile for the outcome, then the sources, which were not
    asked. A person can still grade the session.
    """
    outcome = {"source": "", "css": "gate", "state": "", "value": None}
    shown = [{**outcome, "headline": reasons.outcome_title(session), "why": session.outcome_reason}]
    for tile in tiles:
        if tile["source"] == Source.HUMAN:
            shown.append({**tile, "css": str(StepState.SKIPPED), "why": "A person can overrule the outcome"})
        elif tile["value"] is not None:
            shown.append({**tile, "join": ""})
        else:
            not_asked = {"headline": "Not asked", "why": "", "reason": Reason.NONE, "join": ""}
            shown.append({**tile, "state": StepState.SKIPPED, "css": NARROW, **not_asked})
    return shown


def calibrated_grades(
    session: Session, settlement: Settlement | None, grades: Sequence[Grade], reader: calibrating.CalibrationReader
) -> dict[int, ScaledGrade]:
    """The fallbacks' grades in the chain on the judge's scale, by the grade's id; those that nothing maps are left out.

    For the grade that decides, the value that it was settled at is mapped.
    """
    if settlement is None or session.category is None:
        return {}
    fallback_ids = {
        step["grade"]
        for step in settlement.steps
        if step["source"] in calibrating.SOURCES and step["value"] is not None
    }
    by_id = {}
    for grade in grades:
        if grade.pk not in fallback_ids:
            continue
        settled_value = settlement.value if grade.pk == settlement.grade_id else None
        read = reader.calibrate(session, grade, settled_value)
        if read is not None:
            weight = reader.weight(session.category.current.name, grade.source)
            by_id[grade.pk] = ScaledGrade(read=read, counts=weight * rewards.standing_weight_of(grade))
    return by_id


def latest_grade(grades: Sequence[Grade], source: Source) -> Grade | None:
    """The last grade in the chain with a value from this source. `grades` are ordered by time."""
    for grade in reversed(grades):
        if grade.source == source and grade.value is not None and not grade.parallel:
            return grade
    return None


def find_grade(view: GradeView | None, grades: Sequence[Grade]) -> Grade | None:
    """The row in `grades` of a current grade; None without a current grade, or if it has no value."""
    if view is None:
        return None
    return next((grade for grade in grades if grade.pk == view.id and grade.value is not None), None)


def is_contested(settlement: Settlement | None, current_grades: CurrentGrades) -> bool:
    """Whether the session's artifacts contest its verdict, and the reward is not final."""
    if settlement is None or settlement.source != Source.CONSUMPTION or settlement.final:
        return False
    return contests(current_grades)


def has_stale_verdict(settlement: Settlement | None, current_grades: CurrentGrades) -> bool:
    """Whether the verdict is older than some evidence, and no person has settled the reward."""
    judge = current_grades.get(Source.JUDGE)
    if settlement is None or settlement.final or judge is None:
        return False
    return judge.value is not None and bool(judge.stale)


def consumption_note(settlement: Settlement | None, current_grades: CurrentGrades) -> str:
    """How artifacts that are worth more than the judge's verdict count; empty if they are not worth more."""
    value = value_of(current_grades, Source.CONSUMPTION)
    if is_claimed(current_grades):
        return f"Only the agent itself vouches for this, so its {number(value)} can’t raise a verdict."
    if settlement is None or settlement.source != Source.CONSUMPTION or not contests(current_grades):
        return ""
    if is_contested(settlement, current_grades):
        excess = f"{number(gap(current_grades))} above the judge, which contests it"
        return f"Together {number(value)}: {excess}. Until that is settled it counts {weight(settlement.weight)} of 1."
    return f"Together {number(value)}. Three readings agree, so it adds at most {number(MAX_ADDED)} to their median."


def readings(grades: Sequence[Grade], judge: Grade | None) -> list[dict[str, Any]]:
    """The judge's repeated readings of the session, first to last; empty if it read the session once.

    `judge` is the current verdict. A reading `counts` if it is the median of all three.
    """
    if judge is None:
        return []
    first_id = judge.sample_of_id or judge.pk
    rows = [grade for grade in grades if first_id in (grade.pk, grade.sample_of_id)]
    if len(rows) == 1:
        return []
    is_complete = len(rows) == MAX_READINGS
    return [{"grade": row, "counts": is_complete and row == judge} for row in rows]


def opinions(grades: Sequence[Grade], judge: Grade | None) -> list[dict[str, Any]]:
    """The grades of judges outside the chain, latest first; `gap` is the difference from the verdict, both rounded as
    the page shows them.
    """
    rows = []
    for grade in reversed(grades):
        if not grade.parallel:
            continue
        gap = None
        if grade.value is not None and judge is not None and judge.value is not None:
            gap = round(grade.value, 2) - round(judge.value, 2)
        rows.append({"grade": grade, "gap": gap})
    return rows


def citations(judge: Grade | None) -> list[int]:
    """The numbers of the transcript's events that the verdict cites."""
    return [] if judge is None else list(judge.evidence.get("citations", []))


def dimensions(judge: Grade | None) -> list[tuple[str, float]]:
    """The name and value, in [0, 1], of each of the rubric's dimensions in a verdict."""
    values = {} if judge is None else judge.evidence.get("dimensions", {})
    return [(name.replace("_", " ").capitalize(), value) for name, value in values.items()]
