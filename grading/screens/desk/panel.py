"""The panel of the desk: the answer's form, and the effect of the grade being typed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.safestring import SafeString

from bandit.core.moves import ArmMove, moves
from grading.models import Rubric, Session, Settlement
from grading.models.review import Answer
from grading.review import promises
from grading.review.corrections import REASON_NEEDED_ABOVE
from grading.reward import rewards
from grading.reward.explain import number
from grading.screens.bandit.samples import sample_outlooks
from grading.screens.charts import bars, posteriors
from grading.screens.charts.posteriors import Beta
from grading.screens.desk.verdict_form import VerdictForm
from grading.screens.session.open_answers import DESK_GRADES, OpenAnswer, at_issue, open_answers

LONGEST_SECONDS = 86_400.0
STOPS = ("0", *(f".{tenth}0" for tenth in range(1, 10)), "1")
HUNDREDTHS = re.compile(r"\d\d", re.ASCII)
ANSWERS = [(str(answer), str(answer)) for answer in Answer if answer is not Answer.UNDO]


class AnswerForm(VerdictForm):
    """A person's answer: its kind, a grade if it is one, a reason, and what the page showed."""

    answer = forms.ChoiceField(choices=ANSWERS, required=False)
    seen_revision = forms.IntegerField(required=False, min_value=0)
    seen_evidence = forms.CharField(required=False, max_length=64)
    opened = forms.FloatField(required=False)

    def __init__(self, data: Mapping[str, Any]) -> None:
        super().__init__({**{name: data[name] for name in data}, "value": typed_grade(data)})

    def clean_answer(self) -> str:
        return self.cleaned_data["answer"] or Answer.GRADE

    @property
    def seconds(self) -> float | None:
        """Seconds from opening the page to answering; None if the page sent no time or an invalid one."""
        opened = self.cleaned_data.get("opened")
        if opened is None:
            return None
        elapsed = timezone.now().timestamp() - opened
        return elapsed if 0 <= elapsed <= LONGEST_SECONDS else None

    @property
    def problem(self) -> str:
        return next((str(error) for errors in self.errors.values() for error in errors), "")


def typed_grade(data: Mapping[str, Any]) -> str:
    """The grade as text: `value` if it differs from the `typed` value that the page was rendered with, else the chosen
    `stop` of the scale. Two digits such as 85 mean .85.
    """
    text, stop = str(data.get("value", "")).strip(), str(data.get("stop", ""))
    if stop and text == str(data.get("typed", "")):
        text = stop
    return f".{text}" if HUNDREDTHS.fullmatch(text) else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A stop of the scale: what it sends, how it is written, and whether it is the grade being given."""

    value: str
    label: str
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeEffect:
    """The preview of a grade, whose `value` is None without a valid one; `problem` says what is wrong with it.

    `mark` is the current reward above the scale, `bands` the bands' names below it. `arms` are the effects on each
    learning arm, with curves; with `of_samples` they are arms of the preview bandit. `learners` is how many bandits
    learn from the session, so that the panel reserves room for them. Until a grade is typed, `answers` are a few
    possible ones with their effects.
    """

    bands: SafeString
    mark: SafeString
    value: float | None = None
    current: float | None = None
    band: Mapping[str, Any] | None = None
    problem: str = ""
    blind: bool = False
    learners: int = 0
    of_samples: bool = False
    arms: tuple[tuple[ArmMove, SafeString], ...] = ()
    answers: tuple[OpenAnswer, ...] = ()

    @property
    def stops(self) -> list[Stop]:
        labels = [value[:2] for value in STOPS]  # ".1" for ".10"
        return [
            Stop(value=value, label=label, chosen=self.value is not None and float(value) == round(self.value, 2))
            for value, label in zip(STOPS, labels, strict=True)
        ]

    @property
    def button(self) -> str:
        return "Submit" if self.value is None else f"Submit {number(self.value)}"

    @property
    def moves(self) -> float | None:
        """The change of the reward, as both are shown; None without a grade, or if the reward is hidden."""
        if self.value is None or self.current is None:
            return None
        return round(self.value, 2) - round(self.current, 2)

    @property
    def needs_reason(self) -> bool:
        """Whether the grade is so far from the current reward that it needs a reason. False while the reward is hidden,
        because the question would give it away.
        """
        if self.value is None or self.current is None:
            return False
        return abs(self.value - self.current) > REASON_NEEDED_ABOVE


def bands(session: Session) -> Sequence[Mapping[str, Any]]:
    """The bands of the rubric by which the judge grades such sessions."""
    rubric = Rubric.objects.active(session.work)
    rows: Sequence[Mapping[str, Any]] = rubric.bands if rubric else ()
    return rows


def effect(session: Session, settlement: Settlement | None, form: AnswerForm | None, *, blind: bool) -> GradeEffect:
    """What submitting the form would do. While `blind`, the current reward is left out."""
    rows = bands(session)
    visible_value = None if blind else rewards.graded_value(settlement)
    mark = SafeString("")
    if settlement is not None and visible_value is not None:
        mark = bars.reward_mark(visible_value, settlement.source)
    of_samples = is_preview(session)
    learners = len(rewards.arms_of(session) if of_samples else rewards.learners(session))
    value = form.grade if form is not None and form.is_valid() else None
    grade_effect = GradeEffect(
        bands=bars.bands(rows, value),
        mark=mark,
        value=value,
        current=visible_value,
        blind=blind,
        learners=learners,
        of_samples=of_samples,
    )
    if value is not None:
        arms = tuple(effects(session, value, blind=blind))
        return replace(grade_effect, band=bars.band_of(rows, value), arms=arms)
    if form is not None and str(form.data.get("value", "")).strip():
        return replace(grade_effect, problem=form.problem)
    named = at_issue(rewards.current_grades(session), hides=blind)
    return replace(grade_effect, answers=tuple(open_answers(session, named, DESK_GRADES)))


def is_preview(session: Session) -> bool:
    """Whether only the preview bandit learns from the session: a sample that no bandit has learned from."""
    return session.is_sample and not rewards.learners(session)


def effects(session: Session, value: float, *, blind: bool) -> list[tuple[ArmMove, SafeString]]:
    """The effect of a person's `value` in [0, 1] on each arm that learns from this session, or for a sample on those of
    the preview bandit, with curves. While `blind`, the curve before is left out, and the template hides the figures.
    """
    outlooks = promises.outlooks([(session, value)])
    if is_preview(session):
        outlooks = sample_outlooks(session, value, timezone.now())
    arm_effects = []
    for bandit, before, after, ran in outlooks:
        for move in moves(bandit, before, after, touched=ran):
            if not move.touched:
                continue
            posterior_before, posterior_after = (
                Beta(alpha=arm.alpha, beta=arm.beta) for arm in (before.arms[move.arm], after.arms[move.arm])
            )
            curves = posteriors.before_after(None if blind else posterior_before, posterior_after)
            arm_effects.append((move, curves))
    return arm_effects
