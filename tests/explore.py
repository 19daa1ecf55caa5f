"""Every test by Hypothesis with fresh examples, ten times as many, on both databases:
`python -m tests.explore [pytest's arguments]`. The same again: with the seed that it says, as SEED.
"""

import os
import secrets
import sys

from tests import run
from tests.examples import EXPLORE

AGAIN = """
The seed was {seed}. The same examples again, of one test:
    make explore SEED={seed} ARGS="-k its_name"
or, for one example alone, put the line `@reproduce_failure(…)` that the failing test printed above its `@given`. What
it finds becomes a test of its own: `make test` makes the same examples every time, and may never come to this one."""


def main(arguments: list[str]) -> int:
    seed = os.environ.get("SEED") or str(secrets.randbelow(2**32))
    profile = [f"--hypothesis-profile={EXPLORE}", f"--hypothesis-seed={seed}"]
    status = run.main(["--all", "-m", "hypothesis", *profile, *arguments])
    print(AGAIN.format(seed=seed))
    return status


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
