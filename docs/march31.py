"""Makes `docs/march31.md` from what `manage.py incident march31` prints: `python docs/march31.py`."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "march31.md"
HEAD = """\
# 31 March: the day the reward lied

Two sessions had opened real pull requests. The judge's quota was gone, both came in with another session's log, and
what their own logs held was a stub. The site of that day took the missing grades for bad ones, learned .10 twice, and
all but stopped choosing such work. What stops that here is in [incidents.md](incidents.md).

`make demo` has the incident on a page of its own, `/story/`, a button for each step. `manage.py incident march31` lives
through the same steps in a terminal: a temporary site with a simulated judge, thrown away at the end; yours is not
touched. It takes less than a minute and prints this. Every figure is read from that site's ledger, and the last line
is the same posterior, folded from the same ledger with .10 in place of the two rewards.

This page is made by `python docs/march31.py`; a test compares it with what the command prints.

"""


def main() -> None:
    command = [sys.executable, str(ROOT / "manage.py"), "incident", "march31"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603  our own
    PAGE.write_text(page(said), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(said.splitlines())} lines of output")


def page(said: str) -> str:
    """The whole page around what the command said."""
    return f"{HEAD}```\n$ manage.py incident march31\n{said.rstrip()}\n```\n"


if __name__ == "__main__":
    main()
