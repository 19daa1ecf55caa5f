"""What the simulator has let through, second by second: enough to work out the share of an allowance that was used."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Counters:
    """Counts since `start` (monotonic seconds). Tokens in count when a call is let in, tokens out when it is answered.

    `seconds` maps whole seconds since `start` to counts of: calls, requests (let in), served,
    answered_429, input-tokens, output-tokens.
    """

    start: float
    answered_429: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, now: float, **counts: int) -> None:
        """Add counts (`input_tokens=900` counts as "input-tokens") to the second of `now`."""
        self.seconds[int(now - self.start)].update(
            {name.replace("_tokens", "-tokens"): n for name, n in counts.items()}
        )

    def refuse(self, now: float, dimension: str) -> None:
        self.add(now, answered_429=1)
        self.answered_429[dimension] += 1

    def state(self) -> dict[str, Any]:
        total = sum(self.seconds.values(), Counter())
        return {
            "served": total["served"],
            "answered_429": dict(self.answered_429),
            "tokens": {name: total[f"{name}-tokens"] for name in ("input", "output")},
            "seconds": {str(second): dict(counts) for second, counts in sorted(self.seconds.items())},
        }
