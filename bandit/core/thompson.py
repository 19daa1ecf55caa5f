"""Thompson sampling with a hash as the random number, so that repeating a decision gives the same arm."""

import hashlib
from collections.abc import Mapping


def uniform(bandit: str, decision_id: str) -> float:
    """A pseudo-random number in [0, 1): the first 53 bits of the SHA-256 of the two names.

    >>> uniform("category", "d-1") == uniform("category", "d-1")
    True
    """
    digest = hashlib.sha256(f"{bandit}\0{decision_id}".encode()).digest()
    return (int.from_bytes(digest[:8]) >> 11) / 2**53


def draw(chances: Mapping[str, float], u: float) -> str:
    """The arm on which `u` in [0, 1) falls when `chances` (sum 1) are laid end to end in the order of their names.

    Drawing from P(best) is Thompson sampling: a sample of every posterior, and the arm with the highest.

    >>> draw({"b": 0.5, "a": 0.5}, 0.4), draw({"b": 0.5, "a": 0.5}, 0.6)
    ('a', 'b')
    """
    if not chances:
        raise ValueError("nothing to draw from; expected at least one arm")
    names = sorted(name for name, chance in chances.items() if chance > 0)
    cumulative = 0.0
    for name in names:
        cumulative += chances[name]
        if u < cumulative:
            return name
    return names[-1]
