"""`python -m grading.judging.reading_process MEMORY SECONDS`: makes prompts of what comes on its standard input.

It ends with its input, and by itself where an order takes longer than SECONDS and whoever gave it is gone.
"""

import pickle
import resource
import signal
import sys
from typing import IO

from grading.judging.core.order import fill, packed, refused

LENGTH = 8
# What it has more time than whoever waits for it, who then says so.
GRACE = 5.0


def send(stream: IO[bytes], data: bytes) -> None:
    """One message: its length, then itself."""
    stream.write(len(data).to_bytes(LENGTH))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes:
    """One message. Raises EOFError where the other side is gone."""
    head = stream.read(LENGTH)
    length = int.from_bytes(head)
    data = stream.read(length)
    if len(head) < LENGTH or len(data) < length:
        raise EOFError
    return data


def main() -> None:
    memory, seconds = int(sys.argv[1]), float(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in (signal.SIGINT, signal.SIGTERM):  # they are the worker's to heed
        signal.signal(number, signal.SIG_IGN)
    orders, prompts = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            order = receive(orders)
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_REAL, seconds + GRACE)
        try:
            answer = packed(fill(pickle.loads(order)))  # noqa: S301 - from the process that started this one
        except MemoryError:
            raise  # what is left of a process without memory is not used again
        except Exception as error:  # noqa: BLE001 - whoever asked records it
            answer = refused(f"{type(error).__name__}: {error}")
        signal.setitimer(signal.ITIMER_REAL, 0)
        send(prompts, answer)


if __name__ == "__main__":
    main()
