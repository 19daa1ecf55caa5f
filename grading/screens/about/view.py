"""About this site: version and changes, database and packages, documents, and a block for a bug report."""

import platform
import re
import subprocess
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import metadata

from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.http import Http404
from django.template.response import TemplateResponse
from django.utils import timezone

from grading.judging import judges
from grading.models import Heartbeat, NoticeChannel, Session
from grading.screens.http import StaffRequest, staff_view
from gradingsite import schema
from gradingsite.state import IS_CHECKOUT, RESOURCES, START

ENGINES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
REQUIREMENT_NAME = re.compile(r"^[A-Za-z0-9_.-]+")
OWN_APPS = ("bandit", "grading")
# The documents, by their name in the URL: path and description.
DOCUMENTS = {
    "readme": ("README.md", "what it does and how to start"),
    "configure": ("docs/configure.md", "every setting"),
    "operate": ("docs/operate.md", "backups, upgrades, moving to PostgreSQL, monitoring"),
    "privacy": ("docs/privacy.md", "what is stored, who sees it, and how it is deleted"),
    "security": ("SECURITY.md", "what is protected against whom, and how to report a problem"),
    "ask-what-changed": ("docs/how-to/ask-what-changed.md", "what Insight shows, and how it is computed"),
    "exports": ("docs/exports.md", "what can be downloaded, column by column"),
    "laws": ("docs/laws.md", "what is always true, and every alarm rule"),
    "architecture": ("docs/architecture.md", "how the code is laid out"),
    "changelog": ("CHANGELOG.md", "what changed, by version"),
    "licence": ("LICENSE", "the terms"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """How the database differs from this version: migrations that it lacks, those unknown to this version, and the
    latest applied one by app.
    """

    lacking: list[str]
    unknown: list[str]
    latest: dict[str, str]

    @property
    def text(self) -> str:
        if self.unknown:
            return "A newer version of gradingsite has used this database. Run that version or a newer one."
        if self.lacking:
            return f"The database needs this version’s migrations. Make a backup, then restart with {START}."
        return "No migrations are pending."


@staff_view("grading.view_session")
def show(request: StaffRequest) -> TemplateResponse:
    upgrade = _upgrade()
    context = {
        "title": "About",
        "version": version(),
        "commit": commit(),
        "news": latest_changes(),
        "upgrade": upgrade,
        "database": database(),
        "python": platform.python_version(),
        "packages": packages(),
        "programs": Heartbeat.objects.recent(timezone.now()).order_by("host", "name"),
        "documents": DOCUMENTS,
        "report": "\n".join(f"{name}: {value}" for name, value in report(upgrade, packages()).items()),
    }
    return TemplateResponse(request, "about/about.html", context)


@staff_view("grading.view_session")
def document(request: StaffRequest, name: str) -> TemplateResponse:
    """One of DOCUMENTS, as plain text."""
    if name not in DOCUMENTS:
        raise Http404
    path, about = DOCUMENTS[name]
    text = (RESOURCES / path).read_text(encoding="utf-8")
    return TemplateResponse(request, "about/document.html", {"title": path, "about": about, "text": text})


@cache
def version() -> str:
    project = tomllib.loads((RESOURCES / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


@cache
def commit() -> str:
    """The commit of the checkout; empty if this is no checkout or git is missing."""
    if not IS_CHECKOUT:  # the package may be installed below another project's repository
        return ""
    command = ["git", "-C", str(settings.BASE_DIR), "rev-parse", "--short", "HEAD"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=2, check=True)  # noqa: S603 - fixed words
    except (OSError, subprocess.SubprocessError):
        return ""
    return process.stdout.strip()


def latest_changes() -> str:
    """The changelog's section about the newest version."""
    return (RESOURCES / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1].strip()


@cache
def packages() -> dict[str, str]:
    """The direct dependencies with their installed versions."""
    lines = (RESOURCES / "requirements.in").read_text(encoding="utf-8").splitlines()
    names = [match[0] for match in map(REQUIREMENT_NAME.match, lines) if match]
    installed = {each.name.lower().replace("_", "-"): each.version for each in metadata.distributions()}
    return {name: installed.get(name.lower().replace("_", "-"), "missing") for name in sorted(names, key=str.lower)}


def database() -> str:
    numbers = ".".join(map(str, connection.get_database_version()))
    return f"{ENGINES.get(connection.vendor, connection.vendor)} {numbers}"


def report(upgrade: Upgrade, versions: dict[str, str]) -> dict[str, object]:
    """The block for a bug report. It contains no address, name of a person or agent, path or key."""
    judge = judges.first()
    return {
        "gradingsite": " ".join(filter(None, [version(), commit() and f"commit {commit()}"])),
        "database": database(),
        "migrations": ", ".join(f"{app} {name}" for app, name in upgrade.latest.items()),
        "pending": ", ".join(upgrade.lacking) or "none",
        "newer than the code": ", ".join(upgrade.unknown) or "none",
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "packages": ", ".join(f"{name} {number}" for name, number in versions.items()),
        "site's zone": settings.TIME_ZONE,
        "debug, https, simulated, demo": _flags(settings.DEBUG, settings.HTTPS, settings.SIMULATED, settings.DEMO),
        "web processes, worker threads": f"{settings.WEB_CONCURRENCY}, {settings.WORKER_CONCURRENCY}",
        "judge": "none" if judge is None else settings.JUDGE_MODEL,
        "chain": settings.CHAIN_VERSION,
        "sessions": Session.objects.count(),
        "notices": f"{NoticeChannel.objects.on().count()} channels typed in the browser, "
        f"{bool(settings.NOTIFY_EMAIL) + bool(settings.NOTIFY_WEBHOOK)} from the environment",
    }


def _flags(*flags: bool) -> str:
    return ", ".join("yes" if flag else "no" for flag in flags)


def _upgrade() -> Upgrade:
    applied = MigrationRecorder(connection).applied_migrations()
    return Upgrade(
        lacking=[f"{app}.{name}" for app, name in schema.missing()],
        unknown=[f"{app}.{name}" for app, name in schema.unknown(applied)],
        latest={app: max(name for applied_app, name in applied if applied_app == app) for app in OWN_APPS},
    )
