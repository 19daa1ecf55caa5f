"""What the benchmarks share: how much of one is run, and a site of its own to run it on."""

import argparse
import os
import shutil
from enum import StrEnum
from pathlib import Path

# A migrated SQLite file that is copied instead of migrating a new one, which takes seconds.
TEMPLATE = "BENCHMARK_TEMPLATE"


class Size(StrEnum):
    """How much is run. The figures of a smoke run mean nothing: it shows that the benchmark still runs."""

    FULL = "full"
    QUICK = "quick"
    SMOKE = "smoke"


def parser(doc: str, *, quick: str, smoke: str) -> argparse.ArgumentParser:
    """A benchmark's options: `size` is a `Size`, FULL unless said otherwise."""
    made = argparse.ArgumentParser(description=doc.splitlines()[0])
    sizes = made.add_mutually_exclusive_group()
    sizes.add_argument("--quick", dest="size", action="store_const", const=Size.QUICK, default=Size.FULL, help=quick)
    words = f"a few seconds, to see that it runs: {smoke}"
    sizes.add_argument("--smoke", dest="size", action="store_const", const=Size.SMOKE, help=words)
    return made


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
