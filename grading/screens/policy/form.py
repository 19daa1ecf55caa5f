"""The form of a bandit's policy: what each number does, in which unit, and how two versions differ."""

from collections.abc import Mapping
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


class FieldWithUnit:
    """A number field. `unit` is shown after it; `empty` says what an empty field means, if it may be empty."""

    kind = "number"

    def __init__(self, *, label: str, unit: str, help_text: str, empty: str = "") -> None:
        super().__init__(label=label, help_text=help_text, required=not empty)  # type: ignore[call-arg] # a mixin
        self.unit, self.empty = unit, empty


class NumberField(FieldWithUnit, forms.FloatField):
    pass


class CountField(FieldWithUnit, forms.IntegerField):
    kind = "whole number"


class SwitchField(forms.TypedChoiceField):
    """An on/off number of the policy, with a word for each state; None if it was not submitted."""

    def __init__(self, *, on: str, off: str, label: str, help_text: str) -> None:
        super().__init__(
            choices=[("True", on), ("False", off)],
            coerce=lambda value: value == "True",
            required=False,
            empty_value=None,
            label=label,
            help_text=help_text,
            error_messages={"invalid_choice": f"{label} are {on}, or not."},
        )
        self.on, self.off = on, off


MEMORY = ("half_life_days", "follows_change", "varies_by_day", "long_run_half_life_days", "evidence_cap")
BELIEF = ("prior_strength", "evidence_scale", "cost_weight", "agent_cap", "agent_cap_alone", "pooling")
CHOOSING = (
    "exploration",
    "sharpness",
    "floor",
    "probation_sessions",
    "probation_per_agent",
    "probation_per_day",
    "open_decisions",
)
READING = (
    "consumption_per_agent",
    "consumption_per_day",
    "consumption_boost",
    "consumption_penalty",
    "consumption_window_days",
    "consumption_min_samples",
)
LESSONS = ("open_decisions", "salience_floor", "holdout", "holdout_decided")
# The cards of the page, for each kind of bandit that has a policy.
GROUPS: dict[str, dict[str, tuple[str, ...]]] = {
    BanditKind.CHOICE: {"Memory": MEMORY, "Belief": BELIEF, "Choosing": CHOOSING, "Reading sessions": READING},
    BanditKind.MANY: {"Memory": MEMORY, "Belief": BELIEF, "Lessons": LESSONS},
}


class BanditPolicyForm(forms.Form):
    """The numbers of one bandit's policy. `bandit.policies` validates them."""

    half_life_days = NumberField(label="Half-life", unit="days", help_text="Evidence this old counts half.")
    follows_change = SwitchField(
        on="followed",
        off="not followed",
        label="Breaks and drift",
        help_text="Ignores what an arm earned before a sudden change, and forgets faster where rewards drift.",
    )
    varies_by_day = SwitchField(
        on="estimated",
        off="ignored",
        label="Good and bad days",
        help_text="The more an arm’s daily results vary, the less each session of a day counts. Works only if breaks "
        "and drift are followed.",
    )
    long_run_half_life_days = NumberField(
        label="Long-run half-life",
        unit="days",
        help_text=(
            "The age at which evidence for the long-run mean counts half. Without new evidence, an arm returns to "
            "this mean."
        ),
    )
    evidence_cap = NumberField(
        label="Most evidence of an arm",
        unit="observations",
        empty="no cap",
        help_text="Only the newest evidence up to this amount counts, so that an arm with a long record can still "
        "change. Empty: no cap.",
    )
    prior_strength = NumberField(
        label="Prior",
        unit="observations",
        help_text="How many observations the long-run mean counts as. At least 5.",
    )
    evidence_scale = NumberField(
        label="Weight of a grade",
        unit="observations",
        empty="estimated",
        help_text=(
            "How many observations one graded session counts as, from 1 to 8. Empty: estimated from the spread of "
            "grades."
        ),
    )
    cost_weight = NumberField(
        label="Price of a dollar",
        unit="reward",
        help_text="Reward subtracted for each dollar that a session cost. An unknown cost counts as the arm’s mean.",
    )
    agent_cap = CountField(
        label="Sessions of an agent",
        unit="a day and arm",
        empty="no cap",
        help_text="How many sessions count in full if only the agent or its hook vouches for them and other agents use "
        "the arm too. Empty: no cap.",
    )
    agent_cap_alone = CountField(
        label="Sessions of an arm’s only agent",
        unit="a day and arm",
        empty="as elsewhere",
        help_text="The same cap on an arm that no other agent uses. Empty: the same number as on other arms.",
    )
    pooling = SwitchField(
        on="pooled",
        off="not pooled",
        label="Harness and model",
        help_text="A new arm starts at the level of other arms with the same harness or model, as far as these explain "
        "rewards. Its own rewards then count on top of that.",
    )
    exploration = NumberField(
        label="Exploration",
        unit="of 1",
        empty="a floor for each arm",
        help_text="The share of choices that is spread evenly over all arms, regardless of their rewards.",
    )
    sharpness = NumberField(
        label="Sharpness",
        unit="1 to 4",
        help_text=(
            "With 1, each arm is chosen with the probability that it is the best. A higher number prefers the leader."
        ),
    )
    floor = NumberField(
        label="Floor",
        unit="of 1",
        help_text="The minimum probability of each arm. Used only if exploration is empty.",
    )
    probation_sessions = CountField(
        label="Probation ends after",
        unit="rewarded sessions",
        help_text="Until it has this many rewards, a new arm is used only for low-stakes work.",
    )
    probation_per_agent = CountField(
        label="Probation, each agent",
        unit="sessions a day",
        empty="any",
        help_text="The maximum for each arm on probation. Empty: no limit.",
    )
    probation_per_day = CountField(
        label="Probation, all agents",
        unit="sessions a day",
        empty="any",
        help_text="The maximum for all agents together, not counting arms that an agent requested. Empty: no limit.",
    )
    open_decisions = CountField(
        label="Open decisions of an agent",
        unit="at once",
        empty="any",
        help_text="Decisions of the last day whose session has not arrived. Limited so that nobody can ask again until "
        "the choice looks good. Empty: no limit.",
    )
    consumption_per_agent = CountField(
        label="Limit for an agent",
        unit="sessions a day",
        empty="any",
        help_text="The maximum for each agent. Empty: no limit.",
    )
    consumption_per_day = CountField(
        label="Limit for all agents",
        unit="sessions a day",
        empty="any",
        help_text="The maximum for all agents together, not counting arms that an agent requested. Empty: no limit.",
    )
    consumption_boost = NumberField(
        label="Boost", unit="× the chance", help_text="If the average reward is .5 or more."
    )
    consumption_penalty = NumberField(
        label="Penalty",
        unit="× the chance",
        help_text="If the average reward is below .3.",
    )
    consumption_window_days = CountField(
        label="Window", unit="days", help_text="The number of days that the average covers."
    )
    consumption_min_samples = CountField(
        label="Penalty needs",
        unit="rewards",
        help_text="With fewer rewards, there is no penalty.",
    )
    salience_floor = NumberField(
        label="Salience floor",
        unit="of 1",
        help_text="The weight of a session for a lesson that played no part in it.",
    )
    holdout = NumberField(
        label="Holdout",
        unit="of 1",
        help_text="Probability that a matching lesson is withheld, up to .5. Without a holdout, a lesson’s effect "
        "cannot be measured. With a small holdout, few lessons ever get a verdict.",
    )
    holdout_decided = NumberField(
        label="Holdout once decided",
        unit="of 1",
        empty="as before",
        help_text="The holdout of a lesson that has a verdict. Empty: the same as for other lessons.",
    )

    note = forms.CharField(max_length=500, required=False)
    # The version that the posted numbers become.
    version = forms.IntegerField(required=False, min_value=1, max_value=999_999_999)

    def __init__(self, data: Mapping[str, Any] | None, *, current: PolicyVersion) -> None:
        super().__init__(data, initial=form_values(current))
        if not current.pooling and not parts_of(current.bandit):  # pooling would change nothing
            del self.fields["pooling"]
        groups = GROUPS[current.bandit.kind]
        used = {"note", "version", *(name for names in groups.values() for name in names)}
        for name in self.fields.keys() - used:
            del self.fields[name]
        self.groups = {title: [name for name in names if name in self.fields] for title, names in groups.items()}
        usual = numbers_of(PolicyVersion())
        for name, field in self.fields.items():
            if isinstance(field, FieldWithUnit):
                example = "for example 500" if usual[name] is None else f"usually {plain(usual[name])}"
                wrong = f"{field.label} is a {field.kind} ({field.unit}), {example}."
                field.error_messages |= {"required": wrong, "invalid": wrong}
        for source in SOURCES:
            wrong = f"The weight of {source} is a share from 0 to 1, for example .3."
            self.fields[f"weight_{source}"] = forms.FloatField(error_messages={"required": wrong, "invalid": wrong})
            wrong = f"The cap of {source} is a number of observations above 0, or empty for none."
            self.fields[f"cap_{source}"] = forms.FloatField(required=False, error_messages={"invalid": wrong})

    def numbers(self) -> dict[str, Any]:
        """What was typed, as `bandit.policies` takes it. Of a valid form."""
        # A switch that was not sent stays as it is.
        values = {name: value for name, value in self.cleaned_data.items() if value is not None or name not in SWITCHES}
        del values["note"], values["version"]
        weights = {source: values.pop(f"weight_{source}") for source in SOURCES}
        caps = {source: values.pop(f"cap_{source}") for source in SOURCES}
        return values | {"weights": weights, "caps": {name: cap for name, cap in caps.items() if cap is not None}}

    def refuse(self, error: ValidationError) -> None:
        """Show the validation errors of `bandit.policies`, each at its field if it has one."""
        by_field = error.message_dict if hasattr(error, "error_dict") else {"": error.messages}
        for name, messages in by_field.items():
            self.add_error(name if name in self.fields else None, messages)

    def grouped(self) -> dict[str, list[forms.BoundField]]:
        return {title: [self[name] for name in names] for title, names in self.groups.items()}

    def by_source(self, advice: Mapping[str, CapAdvice | None]) -> list[dict[str, Any]]:
        """A row for each source: its weight, its cap, and the cap that its pairs suggest."""
        return [
            {"source": each, "weight": self[f"weight_{each}"], "cap": self[f"cap_{each}"], "advice": advice.get(each)}
            for each in SOURCES
        ]


def form_values(version: PolicyVersion) -> dict[str, Any]:
    """A version's numbers under the names of the form's fields."""
    numbers = numbers_of(version)
    values = {name: value for name, value in numbers.items() if name not in {"weights", "caps"}}
    values |= {name: str(values[name]) for name in SWITCHES}
    weights = weights_of(version)
    values |= {f"weight_{source}": weights[source] for source in SOURCES}
    return values | {f"cap_{source}": version.caps.get(source) for source in SOURCES}


def changes(before: PolicyVersion, after: PolicyVersion) -> list[str]:
    """What differs between two versions, in words: "half-life 21 → 14 days"."""
    old, new = form_values(before), form_values(after)
    return [_change(name, old[name], new[name]) for name in old if old[name] != new[name]]


def _change(name: str, old: Any, new: Any) -> str:
    field = BanditPolicyForm.base_fields.get(name)
    if isinstance(field, SwitchField):
        labels = {"True": field.on, "False": field.off}
        return f"{_in_sentence(field)} {labels[old]} → {labels[new]}"
    if isinstance(field, FieldWithUnit):
        values = [field.empty if value is None else plain(value) for value in (old, new)]
        return f"{_in_sentence(field)} {' → '.join(values)} {field.unit}"
    kind, _, source = name.partition("_")  # such as weight_judge or cap_human
    values = ["none" if value is None else plain(value) for value in (old, new)]
    return f"{kind} of {source} {' → '.join(values)}"


def _in_sentence(field: forms.Field) -> str:
    label = str(field.label)
    return label[0].lower() + label[1:]
