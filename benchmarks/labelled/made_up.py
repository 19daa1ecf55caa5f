"""A few sessions that nobody had, so that the benchmark runs where its data is not: what it says of them is nothing."""

from collections.abc import Iterator

from benchmarks.labelled.labelled import Labelled, Log
from grading.formats.events import Role

COUNT = 24


def sessions() -> Iterator[Labelled]:
    """Good ones commit, bad ones fail, and now and then it is the other way round; every sixth got no answer."""
    for number in range(COUNT):
        good, answered = number % 2 == 0, number % 6 != 5  # noqa: PLR2004 - every sixth
        log = Log()
        log.says(Role.USER, f"Do task {number}")
        if answered:
            log.calls("bash", "shell", "a.py", exit_code=0, command="ls")
            if good is (number % 7 != 0):
                commit = f"[main {number:07x}] Done\n 1 file changed"
                log.calls("bash", "shell", commit, exit_code=0, command="git commit -m Done")
            else:
                log.calls("bash", "shell", "error: no", exit_code=1, command="python a.py")
            log.says(Role.ASSISTANT, "Done.")
        yield Labelled(
            set=f"made up {number % 3}",
            task=f"task {number // 3}",
            name=str(number),
            good=good and answered,
            answered=answered,
            events=tuple(log.events),
        )
