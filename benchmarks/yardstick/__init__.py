"""A fixed piece of pure Python. Processor times divided by its time can be compared between machines, and between hours
of a machine that others use too.
"""

import time

ROUNDS, TIMES = 100_000, 5


def loop() -> int:
    """Words cut, counted and hashed and numbers added, as the site's own code does all day."""
    counts: dict[str, int] = {}
    total = 0
    for number in range(ROUNDS):
        word = f"word {number * 7919 % 1009}".split()[1]
        counts[word] = counts.get(word, 0) + len(word)
        total += (number ^ len(counts)) & 1
    return total + sum(map(len, sorted(counts)))


def seconds() -> float:
    """Processor seconds of one `loop`: the least of several, for what disturbs it makes it longer."""
    times = []
    for _time in range(TIMES):
        start = time.thread_time()
        loop()
        times.append(time.thread_time() - start)
    return min(times)
