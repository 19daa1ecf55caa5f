"""What a person is saying of a session, and what that would do: the form, and the effect of a grade being typed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.safestring import SafeString

from bandit.core.moves import ArmMove, moves
from grading import review
from grading.models import Rubric, Session, Settlement
from grading.models.review import Answer
from grading.review import promises
from grading.reward import rewards
from grading.reward.explain import number
from grading.screens import charts
from grading.screens.bandit.samples import sample_outlooks
from grading.screens.desk.verdict_form import VerdictForm

LONGEST_SECONDS = 86_400.0
STOPS = ("0", *(f".{tenth}0" for tenth in range(1, 10)), "1")
HUNDREDTHS = re.compile(r"\d\d", re.ASCII)
GIVEN = [(str(answer), str(answer)) for answer in Answer if answer is not Answer.UNDO]


class AnswerForm(VerdictForm):
    """A person's answer: its kind, a grade if it is one, a reason, and what the page showed."""

    answer = forms.ChoiceField(choices=GIVEN, required=False)
    seen_revision = forms.IntegerField(required=False, min_value=0)
    seen_evidence = forms.CharField(required=False, max_length=64)
    opened = forms.FloatField(required=False)

    def __init__(self, data: Mapping[str, Any]) -> None:
        super().__init__({**{name: data[name] for name in data}, "value": meant(data)})

    def clean_answer(self) -> str:
        return self.cleaned_data["answer"] or Answer.GRADE

    @property
    def seconds(self) -> float | None:
        """Seconds from opening the page to answering; None if the page sent no time or an invalid one."""
        opened = self.cleaned_data.get("opened")
        since = None if opened is None else timezone.now().timestamp() - opened
        return since if since is not None and 0 <= since <= LONGEST_SECONDS else None

    @property
    def problem(self) -> str:
        return next((str(error) for errors in self.errors.values() for error in errors), "")


def meant(data: Mapping[str, Any]) -> str:
    """The grade as text: the typed number if it differs from the one that the page came with, else the stop of the
    scale. 85 means .85.
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
    """The panel that previews a grade. `say` is the message if there is none; `moves` is None if the grade moves
    nothing or is hidden. `mark` is the current reward over the scale, `bands` their names below it. `arms` are the
    effects on each learning arm, with curves; with `of_samples` they are arms of the preview bandit. `learners` is how
    many bandits learn from the session, so that the panel reserves room for them.
    """

    bands: SafeString
    mark: SafeString
    value: float | None = None
    current: float | None = None
    band: Mapping[str, Any] | None = None
    say: str = ""
    blind: bool = False
    learners: int = 0
    of_samples: bool = False
    arms: tuple[tuple[ArmMove, SafeString], ...] = ()

    @property
    def stops(self) -> list[Stop]:
        labels = [value[: len(".1")] for value in STOPS]
        return [
            Stop(value=value, label=label, chosen=self.value is not None and float(value) == round(self.value, 2))
            for value, label in zip(STOPS, labels, strict=True)
        ]

    @property
    def names(self) -> str:
        return "Submit" if self.value is None else f"Submit {number(self.value)}"

    @property
    def moves(self) -> float | None:
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
        return abs(self.value - self.current) > review.REASON_NEEDED_ABOVE


def bands(session: Session) -> Sequence[Mapping[str, Any]]:
    """The bands of the rubric in force for such sessions, so that people and the judge grade by the same words."""
    rubric = Rubric.objects.active(session.work)
    rows: Sequence[Mapping[str, Any]] = rubric.bands if rubric else ()
    return rows


def effect(session: Session, settlement: Settlement | None, form: AnswerForm | None, *, blind: bool) -> GradeEffect:
    """What submitting would do, before anything is saved. While `blind`, nothing of the reward as it is."""
    current, source, rows = rewards.graded_value(settlement), settlement.source if settlement else "", bands(session)
    visible_value = None if blind else current
    of_samples = is_preview(session)
    learners = len(rewards.arms_of(session) if of_samples else rewards.learners(session))
    valid = form is not None and form.is_valid()
    value = form.grade if form is not None and valid else None
    bands_shown = charts.bands(rows, value)
    mark = SafeString("") if visible_value is None else charts.reward_mark(visible_value, source)
    if value is None:
        typed = form is not None and bool(str(form.data.get("value", "")).strip())
        say = form.problem if form is not None and typed else ""
        return GradeEffect(bands=bands_shown, mark=mark, current=visible_value, say=say, blind=blind, learners=learners)
    return GradeEffect(
        bands=bands_shown,
        mark=mark,
        value=value,
        current=visible_value,
        band=charts.band_of(rows, value),
        blind=blind,
        learners=learners,
        of_samples=of_samples,
        arms=tuple(effects(session, value, blind=blind)),
    )


def is_preview(session: Session) -> bool:
    """Whether only the preview bandit learns from the session: a sample that no bandit has learned from."""
    return session.is_sample and not rewards.learners(session)


def effects(session: Session, value: float, *, blind: bool) -> list[tuple[ArmMove, SafeString]]:
    """What a person's `value` in [0, 1] would do to each arm that learns from this session, with curves. For a sample:
    to the preview bandit. While `blind`, the curve before is left out, and the template hides the figures before.
    """
    arm_moves = []
    outlooks = promises.outlooks([(session, value)])
    if is_preview(session):
        outlooks = sample_outlooks(session, value, timezone.now())
    for bandit, before, after, ran in outlooks:
        for move in moves(bandit, before, after, touched=ran):
            if move.touched:
                beliefs = (outlook.arms[move.arm] for outlook in (before, after))
                was, will = (charts.Beta(alpha=arm.alpha, beta=arm.beta) for arm in beliefs)
                arm_moves.append((move, charts.before_after(None if blind else was, will)))
    return arm_moves
