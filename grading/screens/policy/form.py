"""The numbers of a bandit's policy as people read and type them: what each does, in which unit, and what differs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from bandit.core.machine_human import CapAdvice
from bandit.models import BanditKind, PolicyVersion
from bandit.policies import SWITCHES, WEIGHTLESS, numbers_of
from bandit.reading import parts_of, weights_of
from grading.templatetags.gradingsite_tags import plain
from grading.vocabulary import Source

SOURCES = tuple(source.value for source in Source if source.value != WEIGHTLESS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One number: `unit` stands behind its value, `empty` in a field that may be empty. A `switch` has words for on and
    off instead. What is `of_parts` is for bandits whose arms have parts.
    """

    name: str
    label: str
    help: str
    unit: str = ""
    empty: str = ""
    whole: bool = False
    switch: tuple[str, str] | tuple[()] = ()
    of_parts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldGroup:
    """Numbers that do one thing together, for the kinds of bandits that use them."""

    title: str
    numbers: tuple[Number, ...]
    kinds: frozenset[str] = frozenset({BanditKind.CHOICE, BanditKind.MANY})


# A switch as it is sent, on and off.
ON_OFF = ("True", "False")
OPEN = Number(
    name="open_decisions",
    label="Open decisions of an agent",
    unit="at once",
    empty="any",
    whole=True,
    help="Decisions of the last day whose session has not come in. Limited so that nobody can ask again until the "
    "choice looks good. Empty: no limit.",
)
CHOICE, MANY = frozenset({BanditKind.CHOICE}), frozenset({BanditKind.MANY})
GROUPS = (
    FieldGroup(
        title="Memory",
        numbers=(
            Number(name="half_life_days", label="Half-life", unit="days", help="Evidence this old counts half."),
            Number(
                name="follows_change",
                label="Breaks and drift",
                switch=("followed", "not followed"),
                help="Ignores what an arm earned before a sudden change, and forgets sooner where rewards drift.",
            ),
            Number(
                name="varies_by_day",
                label="Good and bad days",
                switch=("estimated", "ignored"),
                help="The more an arm’s days differ from each other, the less each session of one day counts. "
                "Needs breaks and drift to be followed.",
            ),
            Number(
                name="long_run_half_life_days",
                label="Long-run half-life",
                unit="days",
                help="The same for the long-run mean, to which an arm returns without new evidence.",
            ),
            Number(
                name="evidence_cap",
                label="Most evidence of an arm",
                unit="observations",
                empty="no cap",
                help="Only the newest evidence up to this counts, so that an arm with a long record can still move. "
                "Empty: no cap.",
            ),
        ),
    ),
    FieldGroup(
        title="Belief",
        numbers=(
            Number(
                name="prior_strength",
                label="Prior",
                unit="observations",
                help="How many observations the long-run mean counts as, before any evidence. At least 5.",
            ),
            Number(
                name="evidence_scale",
                label="Weight of a grade",
                unit="observations",
                empty="estimated",
                help="What one graded session counts as, 1 to 8. Empty: estimated from how far grades scatter.",
            ),
            Number(
                name="cost_weight",
                label="Price of a dollar",
                unit="reward",
                help="Reward subtracted for each dollar that a session cost. An unknown cost counts as the arm’s mean.",
            ),
            Number(
                name="agent_cap",
                label="Sessions of an agent",
                unit="a day and arm",
                empty="no cap",
                whole=True,
                help="How many sessions that only the agent or its hook vouches for count in full, where other agents "
                "use the arm too. Empty: no cap.",
            ),
            Number(
                name="agent_cap_alone",
                label="Sessions of an arm’s only agent",
                unit="a day and arm",
                empty="as elsewhere",
                whole=True,
                help="The same on an arm that no other agent uses. Empty: as many as elsewhere.",
            ),
            Number(
                name="pooling",
                label="Harness and model",
                switch=("pooled", "not pooled"),
                of_parts=True,
                help="An arm starts where other arms with its harness or its model stand, as far as harness and model "
                "explain what arms earn; its own rewards come on top.",
            ),
        ),
    ),
    FieldGroup(
        title="Choosing",
        kinds=CHOICE,
        numbers=(
            Number(
                name="exploration",
                label="Exploration",
                unit="of 1",
                empty="a floor for each arm",
                help="The share of choices spread evenly over all arms, whatever they earned.",
            ),
            Number(
                name="sharpness",
                label="Sharpness",
                unit="1 to 4",
                help="1 chooses an arm as often as it is probably the best; a higher number prefers the leader.",
            ),
            Number(
                name="floor",
                label="Floor",
                unit="of 1",
                help="The least chance of an arm, where exploration is empty.",
            ),
            Number(
                name="probation_sessions",
                label="Probation ends after",
                unit="rewarded sessions",
                whole=True,
                help="Until then a new arm is used only for low-stakes work.",
            ),
            Number(
                name="probation_per_agent",
                label="Probation, each agent",
                unit="sessions a day",
                empty="any",
                whole=True,
                help="At most, for each arm on probation. Empty: no limit.",
            ),
            Number(
                name="probation_per_day",
                label="Probation, all agents",
                unit="sessions a day",
                empty="any",
                whole=True,
                help="The same for all agents together, without arms that an agent requested. Empty: no limit.",
            ),
            OPEN,
        ),
    ),
    FieldGroup(
        title="Reading sessions",
        kinds=CHOICE,
        numbers=(
            Number(
                name="consumption_per_agent",
                label="Limit for an agent",
                unit="sessions a day",
                empty="any",
                whole=True,
                help="At most. Empty: no limit.",
            ),
            Number(
                name="consumption_per_day",
                label="Limit for all agents",
                unit="sessions a day",
                empty="any",
                whole=True,
                help="The same for all agents together, without arms that an agent requested. Empty: no limit.",
            ),
            Number(
                name="consumption_boost",
                label="Boost",
                unit="× the chance",
                help="If the average reward is .5 or more.",
            ),
            Number(
                name="consumption_penalty",
                label="Penalty",
                unit="× the chance",
                help="If the average reward is below .3.",
            ),
            Number(
                name="consumption_window_days",
                label="Window",
                unit="days",
                whole=True,
                help="The days that the average covers.",
            ),
            Number(
                name="consumption_min_samples",
                label="Penalty needs",
                unit="rewards",
                whole=True,
                help="No penalty with fewer than these.",
            ),
        ),
    ),
    FieldGroup(
        title="Lessons",
        kinds=MANY,
        numbers=(
            OPEN,
            Number(
                name="salience_floor",
                label="Salience floor",
                unit="of 1",
                help="How much a session counts for a lesson that played no part in it.",
            ),
            Number(
                name="holdout",
                label="Holdout",
                unit="of 1",
                help="Chance that a matching lesson is withheld, up to .5. Without it the effect of a lesson cannot be "
                "measured; if it is small, few lessons ever get a verdict.",
            ),
            Number(
                name="holdout_decided",
                label="Holdout once decided",
                unit="of 1",
                empty="as before",
                help="The same for a lesson that has a verdict. Empty: as for any other.",
            ),
        ),
    ),
)


def groups_of(held: PolicyVersion) -> list[FieldGroup]:
    shares = held.pooling or bool(parts_of(held.bandit))
    return [
        replace(group, numbers=tuple(number for number in group.numbers if shares or not number.of_parts))
        for group in GROUPS
        if held.bandit.kind in group.kinds
    ]


class BanditPolicyForm(forms.Form):
    """The numbers of one bandit's policy. What they may be, `bandit.policies` says."""

    note = forms.CharField(max_length=500, required=False)

    def __init__(self, data: Mapping[str, Any] | None, *, held: PolicyVersion) -> None:
        super().__init__(data, initial=typed(held))
        self.groups = groups_of(held)
        for group in self.groups:
            for number in group.numbers:
                if number.switch:
                    self.fields[number.name] = forms.TypedChoiceField(
                        choices=list(zip(ON_OFF, number.switch, strict=True)),
                        coerce=lambda said: said == ON_OFF[0],
                        required=False,
                        empty_value=None,
                        label=number.label,
                        help_text=number.help,
                        error_messages=_errors(f"{number.label} are {number.switch[0]}, or not."),
                    )
                    continue
                usual = getattr(PolicyVersion(), number.name)
                example = "for example 500" if usual is None else f"usually {plain(usual)}"
                kind = "whole number" if number.whole else "number"
                wrong = f"{number.label} is a {kind} ({number.unit}), {example}."
                self.fields[number.name] = (forms.IntegerField if number.whole else forms.FloatField)(
                    required=not number.empty,
                    label=number.label,
                    help_text=number.help,
                    error_messages=_errors(wrong),
                )
        for source in SOURCES:
            wrong = f"The weight of {source} is a share from 0 to 1, for example .3."
            self.fields[f"weight_{source}"] = forms.FloatField(error_messages=_errors(wrong))
            wrong = f"The cap of {source} is a number of observations above 0, or empty for none."
            self.fields[f"cap_{source}"] = forms.FloatField(required=False, error_messages=_errors(wrong))

    def numbers(self) -> dict[str, Any]:
        """What was typed, as `bandit.policies` takes it. Of a valid form."""
        said = dict(self.cleaned_data)
        said.pop("note")
        # A switch that was not sent stays as it is.
        said = {name: value for name, value in said.items() if value is not None or name not in SWITCHES}
        weights = {source: said.pop(f"weight_{source}") for source in SOURCES}
        caps = {source: said.pop(f"cap_{source}") for source in SOURCES}
        return said | {"weights": weights, "caps": {name: cap for name, cap in caps.items() if cap is not None}}

    def refuse(self, error: ValidationError) -> None:
        """Show what `bandit.policies` says of the numbers, each at its field where there is one."""
        said = error.message_dict if hasattr(error, "error_dict") else {"": error.messages}
        for name, messages in said.items():
            self.add_error(name if name in self.fields else None, messages)

    def grouped(self) -> Iterator[tuple[FieldGroup, list[tuple[Number, forms.BoundField]]]]:
        for group in self.groups:
            yield group, [(number, self[number.name]) for number in group.numbers]

    def by_source(self, advice: Mapping[str, CapAdvice | None]) -> list[dict[str, Any]]:
        """A row for each source: its weight, its cap, and the cap that its pairs suggest."""
        return [
            {"source": each, "weight": self[f"weight_{each}"], "cap": self[f"cap_{each}"], "advice": advice.get(each)}
            for each in SOURCES
        ]


def typed(version: PolicyVersion) -> dict[str, Any]:
    """A version's numbers under the names of the form's fields."""
    said = {name: value for name, value in numbers_of(version).items() if name not in {"weights", "caps"}}
    said |= {name: str(said[name]) for name in SWITCHES}
    weights = weights_of(version)
    said |= {f"weight_{source}": weights[source] for source in SOURCES}
    return said | {f"cap_{source}": version.caps.get(source) for source in SOURCES}


def _errors(wrong: str) -> dict[str, str]:
    return dict.fromkeys(("required", "invalid", "invalid_choice"), wrong)


def changes(before: PolicyVersion, after: PolicyVersion) -> list[str]:
    """What differs between two versions, in words: "half-life 21 → 14 days"."""
    was, will = typed(before), typed(after)
    named = {number.name: number for group in GROUPS for number in group.numbers}
    found = []
    for name in was:
        number = named.get(name)
        if was[name] == will[name]:
            continue
        if number is None:
            kind, _, source = name.partition("_")
            found.append(f"{kind} of {source} {_said(was[name], 'none')} → {_said(will[name], 'none')}")
        elif number.switch:
            words = dict(zip(ON_OFF, number.switch, strict=True))
            label = number.label[0].lower() + number.label[1:]
            found.append(f"{label} {words[was[name]]} → {words[will[name]]}")
        else:
            label = number.label[0].lower() + number.label[1:]
            moved = f"{_said(was[name], number.empty)} → {_said(will[name], number.empty)}"
            found.append(f"{label} {moved} {number.unit}".rstrip())
    return found


def _said(value: float | None, empty: str) -> str:
    return empty if value is None else plain(value)
