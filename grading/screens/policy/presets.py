"""Three named policies for people who do not want to choose each number."""

from dataclasses import dataclass, field
from typing import Any

from bandit import policies
from bandit.models import PolicyVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """The numbers of a new site's policy, with `numbers` in place of some of them."""

    name: str
    title: str
    summary: str
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def half_life_days(self) -> float:
        return float(self.numbers.get("half_life_days", policies.NEW_SITE["half_life_days"]))

    @property
    def exploration(self) -> float:
        return float(self.numbers.get("exploration", policies.NEW_SITE["exploration"]))

    def changed_numbers(self, version: PolicyVersion) -> dict[str, Any]:
        """The numbers that this preset would change in that version."""
        numbers = policies.new_site_numbers(version) | self.numbers
        return {name: value for name, value in numbers.items() if getattr(version, name) != value}


PRESETS = (
    Preset(
        name="steady",
        title="Steady",
        summary="Changes slowly. For work whose rewards stay about the same all year.",
        numbers={"half_life_days": 90.0},
    ),
    Preset(
        name="balanced", title="Balanced", summary="The setting of a new site. For work that changes over a few months."
    ),
    Preset(
        name="quick",
        title="Quick",
        summary="Follows recent results. For models and prompts that change every week.",
        numbers={"half_life_days": 14.0, "exploration": 0.03},
    ),
)
