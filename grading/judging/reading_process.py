"""`python -m grading.judging.reading_process MEMORY SECONDS`: builds prompts for the orders on standard input.

It ends when its input ends, or if an order takes longer than SECONDS and its parent has not killed it.
"""

import pickle
import resource
import signal
import sys
from typing import IO

from grading.judging.core.order import fill, serialise, serialise_error

LENGTH = 8
# It ends itself this many seconds after its parent would have killed it.
GRACE = 5.0


def send(stream: IO[bytes], data: bytes) -> None:
    """Write one message: its length, then the data."""
    stream.write(len(data).to_bytes(LENGTH))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes:
    """Read one message. Raises EOFError if the other side is gone."""
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
    for number in (signal.SIGINT, signal.SIGTERM):  # the worker handles them
        signal.signal(number, signal.SIG_IGN)
    orders, prompts = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            order = receive(orders)
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_REAL, seconds + GRACE)
        try:
            answer = serialise(fill(pickle.loads(order)))  # noqa: S301 - from the process that started this one
        except MemoryError:
            raise  # end this process
        except Exception as error:  # noqa: BLE001 - the caller records it
            answer = serialise_error(f"{type(error).__name__}: {error}")
        signal.setitimer(signal.ITIMER_REAL, 0)
        send(prompts, answer)


if __name__ == "__main__":
    main()
