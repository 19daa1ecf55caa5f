"""Export all data of an agent as one zip file."""

import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import F

from bandit.models import Assignment, LedgerEntry, Selection
from grading.evidence import store
from grading.models import (
    Agent,
    ApiToken,
    Evidence,
    ImportedFile,
    JudgeAttempt,
    LogImport,
    Project,
    RecordAnchor,
    Session,
)


class Command(BaseCommand):
    help = (
        "Write all data of an agent into a zip file that only you can read: its rows as JSON, one file for each table, "
        "and its evidence as it was received, named by hash. Secrets in the evidence are not removed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent", help="the agent's name")
        parser.add_argument("file", type=Path, help="the file to write; it must not exist")

    def handle(self, *_args: Any, agent: str, file: Path, **_options: Any) -> None:
        owner = Agent.objects.filter(name=agent).first()
        if owner is None:
            raise CommandError(f"expected the name of an agent; got {agent!r}")
        try:
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise CommandError(f"expected the path of a new file: {error}") from error
        lost = []
        with os.fdopen(handle, "wb") as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, rows in _tables(owner).items():
                archive.writestr(f"rows/{name}.json", json.dumps(rows, cls=DjangoJSONEncoder, indent=1))
            evidence = {row.sha256: row for row in Evidence.objects.filter(session__agent=owner)}
            for sha256, row in evidence.items():
                try:
                    with store.open(row) as data, archive.open(f"evidence/{sha256}", "w", force_zip64=True) as into:
                        shutil.copyfileobj(data, into)
                except OSError as error:
                    lost.append(f"{sha256}: {error}\n")
            archive.writestr("evidence/missing.txt", "".join(lost))
        self.stdout.write(f"{file}: {len(evidence) - len(lost):,} files of evidence; {len(lost):,} are missing.")


def _tables(agent: Agent) -> dict[str, list[dict[str, Any]]]:
    """The agent's rows by table, without the hashes of tokens and without RecordAnchor, which only repeats evidence."""
    sessions = Session.objects.filter(agent=agent)
    observations = [each.observation for each in sessions.only("pk")]
    tables: dict[str, Any] = {
        "agent": Agent.objects.filter(pk=agent.pk),
        "session": sessions,
        "project": Project.objects.filter(sessions__agent=agent).distinct(),
        "judgeattempt": JudgeAttempt.objects.filter(job__session__agent=agent),
        "selection": Selection.objects.filter(agent=agent.name),
        "assignment": Assignment.objects.filter(agent=agent.name),
    }
    for model in apps.get_app_config("grading").get_models():
        fields = model._meta.concrete_fields  # noqa: SLF001 - Django's documented API
        linked = {column.name: column.related_model for column in fields if column.is_relation}
        if linked.get("session") is Session and model is not RecordAnchor:
            tables[model.__name__.lower()] = model.objects.filter(session__agent=agent)  # type: ignore[attr-defined]
    tables["settlement"] = tables["settlement"].annotate(policy_version=F("policy__text"))
    tables["logimport"] = LogImport.objects.filter(agent=agent)
    tables["importedfile"] = ImportedFile.objects.filter(log_import__agent=agent)
    rows_by_table = {name: list(rows.order_by("pk").values()) for name, rows in tables.items()}
    entries, columns = LedgerEntry.objects.filter(observation__in=observations).order_by("pk").columns()
    names = ("id", "scope", "hint", "note", "created_at", "last_used_at", "revoked_at")
    tokens = ApiToken.objects.filter(agent=agent).order_by("pk")
    return {**rows_by_table, "ledgerentry": list(entries.values(*columns)), "apitoken": list(tokens.values(*names))}
