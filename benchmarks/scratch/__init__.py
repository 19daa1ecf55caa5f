"""What the benchmarks share: their sizes, a site of their own, the folder of real logs, and processor times."""

import argparse
import os
import shutil
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# A migrated SQLite file that is copied instead of migrating a new one, which takes seconds.
TEMPLATE = "BENCHMARK_TEMPLATE"


class Size(StrEnum):
    """How much is run. The figures of a smoke run mean nothing: it shows that the benchmark still runs."""

    FULL = "full"
    QUICK = "quick"
    SMOKE = "smoke"


def parser(doc: str, *, quick: str, smoke: str) -> argparse.ArgumentParser:
    """A benchmark's options: `size` is a `Size`, FULL unless said otherwise."""
    options = argparse.ArgumentParser(description=doc.splitlines()[0])
    sizes = options.add_mutually_exclusive_group()
    sizes.add_argument("--quick", dest="size", action="store_const", const=Size.QUICK, default=Size.FULL, help=quick)
    words = f"a few seconds, to see that it runs: {smoke}"
    sizes.add_argument("--smoke", dest="size", action="store_const", const=Size.SMOKE, help=words)
    return options


def code(state: str | Path, *, database: str = "", **environment: str) -> None:
    """The site's code in this process, to be imported from now on; its state would be in this folder."""
    os.environ.pop("DATABASE_URL", None)
    os.environ |= {
        "GRADINGSITE_STATE": str(state),
        "DJANGO_SETTINGS_MODULE": "gradingsite.settings",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "LOG_LEVEL": "ERROR",
        "ALLOWED_HOSTS": "localhost,127.0.0.1,testserver",  # the last is what django.test.Client sends
        **({"DATABASE_URL": database} if database else {}),
        **environment,
    }
    import django

    django.setup()


def site(state: str | Path, *, database: str = "", **environment: str) -> None:
    """A new site in this process: in this folder, on SQLite there or on this empty database, without a broker."""
    code(state, database=database, **environment)
    from django.core.management import call_command

    template = os.environ.get(TEMPLATE)
    if template and not database:
        shutil.copy(template, Path(state) / "db.sqlite3")
    else:
        call_command("migrate", verbosity=0)


def data_folder() -> Path:
    """The folder of real logs: GRADING_DATA_DIR, else `../shared/data` beside the checkout. It may not exist."""
    return Path(os.environ.get("GRADING_DATA_DIR") or ROOT.parent / "shared" / "data")


def cpu_seconds(pids: Iterable[int]) -> float:
    """The user and system time that these processes have used, from /proc; a process that has ended counts as 0."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
