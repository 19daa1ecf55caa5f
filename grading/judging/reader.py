"""The process that reads evidence and makes prompts of it: one for each worker, with bounded memory and time.

Evidence is hostile. What kills its reader, or keeps it busy for ever, costs that one process, which is replaced: not
the worker, nor the calls that the worker is waiting for. It imports the pure core alone and holds no key.
"""

import atexit
import logging
import os
import pickle
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cache

from django.conf import settings

from grading.judging.core.order import PromptOrder, unpacked
from grading.judging.core.prompt import Prompt
from grading.judging.reading_process import receive, send

logger = logging.getLogger(__name__)

SECONDS, LEAST_SECONDS, MEMORY = 60.0, 10.0, 2**30
# What it knows of the site: where Python and its modules are. No key.
PASSED = ("PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LANG", "LC_ALL", "TMPDIR")


class ReaderLost(Exception):
    """The process that read a session's evidence died over it, or had to be ended. Look at the evidence."""


class EvidenceReader:
    """The process, started when it is needed. Threads may share one; they take turns.

    An order that takes longer than `seconds`, or more than `memory` bytes, ends it.
    """

    def __init__(self, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self.seconds, self.memory = seconds, memory
        self.process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def fill(self, order: PromptOrder) -> Prompt:
        """The prompt that was ordered. Raises ReaderLost; ValueError, which says why, where it cannot be read."""
        asked = pickle.dumps(order)
        with self._lock:
            running = self._running()
            is_late = threading.Event()

            def end() -> None:
                is_late.set()
                running.kill()

            timer = threading.Timer(self.seconds, end)
            timer.daemon = True
            timer.start()
            try:
                assert running.stdin is not None  # noqa: S101 - both are pipes
                assert running.stdout is not None  # noqa: S101
                send(running.stdin, asked)
                answer = receive(running.stdout)
            except (OSError, EOFError) as error:
                status = self._end()
                why = f"took longer than {self.seconds:g} s" if is_late.is_set() else f"ended with status {status}"
                logger.warning("the reader of a session's evidence %s", why)
                raise ReaderLost(f"The process that read the evidence {why}") from error
            finally:
                timer.cancel()
        return unpacked(answer)

    def close(self) -> None:
        with self._lock:
            self._end()

    def _running(self) -> subprocess.Popen[bytes]:
        if self.process is None or self.process.poll() is not None:
            self._end()
            command = [sys.executable, "-m", "grading.judging.reading_process", str(self.memory), str(self.seconds)]
            environment = {name: os.environ[name] for name in PASSED if name in os.environ}
            self.process = subprocess.Popen(  # noqa: S603 - the project's own module
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=settings.BASE_DIR, env=environment
            )
        return self.process

    def _end(self) -> int | None:
        process, self.process = self.process, None
        if process is None:
            return None
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        return process.wait()


@cache
def of_process(_pid: int) -> EvidenceReader:
    """The reader of the process with that id: one that was forked has its own."""
    made = EvidenceReader()
    atexit.register(made.close)
    return made


def shared() -> EvidenceReader:
    """The running process's reader. An order takes a third of a lease, where that is not too short to start it."""
    mine, seconds = of_process(os.getpid()), min(SECONDS, max(LEAST_SECONDS, settings.JUDGE_LEASE_SECONDS / 3))
    if mine.seconds != seconds:  # it was started with another deadline
        mine.close()
        mine.seconds = seconds
    return mine
