"""The places of the queue: of every ten, three are the random slice's in its random order; the others go by impact.

By impact alone, what people grade is what looked worst, and says nothing of how good the judge is over all.
"""

from collections.abc import Iterable, Iterator, Sequence

# Of OF places in a row, BY_CHANCE are by chance, with at least APART others between two of them.
OF, BY_CHANCE, APART = 10, 3, 2


def is_by_chance(past: Sequence[bool]) -> bool:
    """Whether the next place is one by chance. `past` says it of the places before it, the newest last: the last nine
    are enough. A queue begins with two places by impact.
    """
    last = [True, *past][-(OF - 1) :]
    return sum(last) < BY_CHANCE and not any(last[-APART:])


def in_order(by_impact: Iterable[int], by_chance: Iterable[int], past: Sequence[bool]) -> Iterator[tuple[int, bool]]:
    """Each of both once, in the order in which they are handed out, and whether its place is one by chance.

    Where the slice has nothing left, its places go by impact; and the other way round.
    """
    past, placed = list(past), set[int]()
    queues = {False: iter(by_impact), True: iter(by_chance)}
    while True:
        for chance in (wanted := is_by_chance(past), not wanted):
            key = next((each for each in queues[chance] if each not in placed), None)
            if key is not None:
                break
        else:
            return
        placed.add(key)
        past.append(chance)
        yield key, chance
