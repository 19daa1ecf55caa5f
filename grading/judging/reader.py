"""The process that reads evidence and builds prompts: one for each worker, with limited memory and time.

Evidence is untrusted. If it kills or blocks its reader, only that process is replaced; the worker and its calls go on.
The process imports only the pure core and has no key.
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

from grading.judging.core.order import PromptOrder, deserialise
from grading.judging.core.prompt import Prompt
from grading.judging.reading_process import receive, send

logger = logging.getLogger(__name__)

SECONDS, LEAST_SECONDS, MEMORY = 60.0, 10.0, 2**30
# The environment variables that the process gets: where Python and its modules are, but no key.
PASSED_VARIABLES = ("PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LANG", "LC_ALL", "TMPDIR")


class ReaderLost(Exception):
    """The process that read a session's evidence died, or was killed for taking too long. Look at the evidence."""


class EvidenceReader:
    """The process, started when it is needed. Threads may share one; they take turns.

    An order that takes longer than `seconds`, or more than `memory` bytes, ends it.
    """

    def __init__(self, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self.seconds, self.memory = seconds, memory
        self.process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def fill(self, order: PromptOrder) -> Prompt:
        """Build a prompt. Raises ReaderLost, or ValueError if the evidence cannot be read."""
        request = pickle.dumps(order)
        with self._lock:
            if self.process is None or self.process.poll() is not None:
                self._end()
                self.process = self._start()
            process = self.process
            is_late = threading.Event()

            def kill_when_late() -> None:
                is_late.set()
                process.kill()

            timer = threading.Timer(self.seconds, kill_when_late)
            timer.daemon = True
            timer.start()
            try:
                assert process.stdin is not None  # noqa: S101 - both are pipes
                assert process.stdout is not None  # noqa: S101
                send(process.stdin, request)
                answer = receive(process.stdout)
            except (OSError, EOFError) as error:
                status = self._end()
                why = f"took longer than {self.seconds:g} s" if is_late.is_set() else f"ended with status {status}"
                logger.warning("the reader of a session's evidence %s", why)
                raise ReaderLost(f"The process that read the evidence {why}") from error
            finally:
                timer.cancel()
        return deserialise(answer)

    def close(self) -> None:
        with self._lock:
            self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "grading.judging.reading_process", str(self.memory), str(self.seconds)]
        environment = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
        return subprocess.Popen(  # noqa: S603 - the project's own module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=settings.BASE_DIR, env=environment
        )

    def _end(self) -> int | None:
        """Kill the process. Returns its exit status; None if there was none."""
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
    """The reader of the process with that id: a forked process has its own."""
    reader = EvidenceReader()
    atexit.register(reader.close)
    return reader


def shared() -> EvidenceReader:
    """The reader of this process. It may take a third of a lease per prompt, within LEAST_SECONDS and SECONDS."""
    reader = of_process(os.getpid())
    seconds = min(SECONDS, max(LEAST_SECONDS, settings.JUDGE_LEASE_SECONDS / 3))
    if reader.seconds != seconds:  # it was started with another deadline
        reader.close()  # the next prompt starts it again
        reader.seconds = seconds
    return reader
