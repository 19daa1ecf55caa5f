"""The places of the queue. Three of every ten go to the random slice, in its random order; the others go by impact.

If all places went by impact, people would only grade what looks worst, which does not show how good the judge is.
"""

from collections.abc import Iterable, Iterator, Sequence

# Of PERIOD places in a row, BY_CHANCE are by chance, with at least MIN_GAP others between two of them.
PERIOD, BY_CHANCE, MIN_GAP = 10, 3, 2


def is_by_chance(past: Sequence[bool]) -> bool:
    """Whether the next place goes by chance.

    `past` says of each earlier place whether it went by chance, the newest last. Only the last PERIOD − 1 matter.
    """
    last = [True, *past][-(PERIOD - 1) :]  # with a True in front, a queue begins with two places by impact
    return sum(last) < BY_CHANCE and not any(last[-MIN_GAP:])


def in_order(by_impact: Iterable[int], by_chance: Iterable[int], past: Sequence[bool]) -> Iterator[tuple[int, bool]]:
    """Merge two lists of keys into the order in which they are handed out. Yields (key, place is by chance).

    A key that is in both lists comes once. If one list has no more keys, its places go to the other list.
    """
    past = list(past)
    placed: set[int] = set()
    keys = {True: iter(by_chance), False: iter(by_impact)}  # by whether the place is by chance
    while True:
        chance = is_by_chance(past)
        next_key = next((key for key in keys[chance] if key not in placed), None)
        if next_key is None:
            chance = not chance
            next_key = next((key for key in keys[chance] if key not in placed), None)
        if next_key is None:
            return
        placed.add(next_key)
        past.append(chance)
        yield next_key, chance
