"""The places of the queue: three of every ten go to the random slice, in its random order, the others by impact.

By impact alone people would only grade what looked worst, which does not show how good the judge is over all.
"""

from collections.abc import Iterable, Iterator, Sequence

# Of OF places in a row, BY_CHANCE are by chance, with at least APART others between two of them.
OF, BY_CHANCE, APART = 10, 3, 2


def is_by_chance(past: Sequence[bool]) -> bool:
    """Whether the next place goes by chance. `past` says the same of each earlier place, the newest last; only the last
    nine matter.
    """
    last = [True, *past][-(OF - 1) :]  # with a True in front, a queue begins with two places by impact
    return sum(last) < BY_CHANCE and not any(last[-APART:])


def in_order(by_impact: Iterable[int], by_chance: Iterable[int], past: Sequence[bool]) -> Iterator[tuple[int, bool]]:
    """Merge two lists of keys into the order in which they are handed out, with whether each place goes by chance.

    A key in both comes once. If one list has no more keys, its places go to the other.
    """
    past = list(past)
    placed: set[int] = set()
    queues = {True: iter(by_chance), False: iter(by_impact)}
    while True:
        chance = is_by_chance(past)
        key = next((each for each in queues[chance] if each not in placed), None)
        if key is None:
            chance = not chance
            key = next((each for each in queues[chance] if each not in placed), None)
        if key is None:
            return
        placed.add(key)
        past.append(chance)
        yield key, chance
