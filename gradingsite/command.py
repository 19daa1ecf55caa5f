"""The site's command line: `gradingsite`, `python -m gradingsite` and manage.py are the same."""

import os
import sys
from importlib import metadata
from importlib.util import find_spec

from gradingsite.state import IS_CHECKOUT, ROOT

PACKAGES = ("bandit", "grading")


def main() -> None:
    """Run the command in `sys.argv`. Exits with a message if other packages would be imported in place of the site's,
    or if the database can't be used.
    """
    if strangers := foreign_packages():
        sys.exit(
            f"gradingsite cannot start, because {' and '.join(strangers)}. Install it where nothing else is: "
            "`uvx gradingsite`, `pipx install gradingsite`, or a virtual environment of its own."
        )
    pin_code()
    os.environ.pop("GRADINGSITE_TRIAL", None)  # no setting: only `try` knows the key to the pages of a trial
    if sys.argv[1:2] == ["try"]:
        from gradingsite import trial

        trial.prepare_environment()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gradingsite.settings")
    from django.core.management import execute_from_command_line

    from gradingsite import schema

    schema.require_for(sys.argv[1:])
    try:
        execute_from_command_line(sys.argv)
    except Exception as error:
        from grading.busy import trouble

        problem = trouble(error)
        if problem is None or "--traceback" in sys.argv:
            raise
        sys.exit(f"{problem.title}: {str(error).strip()}\n{problem.words}")


def foreign_packages() -> list[str]:
    """What other projects have put in place of the site's packages, such as the linter `bandit`, a clause for each.

    Such a package comes earlier on the path, or was installed into the same folder, where it has replaced files.
    """
    clauses = []
    for name in PACKAGES:
        spec = find_spec(name)
        origin = getattr(spec, "origin", None)
        if origin != str(ROOT / name / "__init__.py"):
            clauses.append(f"`{name}` at {origin or 'a folder without __init__.py'} is another project's package")
    if not clauses and not IS_CHECKOUT:
        owners = metadata.packages_distributions()
        for name in PACKAGES:
            others = sorted({*owners.get(name, ())} - {"gradingsite"})
            clauses += [f"the distribution {other!r} has put files into `{name}`" for other in others]
    return clauses


def pin_code() -> None:
    """Have child processes import the same code, and nothing from the folder that they run in, which may be anybody's
    repository.
    """
    os.environ["PYTHONSAFEPATH"] = "1"
    if IS_CHECKOUT:
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
