"""What was imported from folders at the site itself: each run, and what became of every file that it found."""

from enum import StrEnum

from django.db import models
from django.urls import reverse
from django.utils import timezone

from grading.models.agents import Agent
from grading.models.fields import enum_field, one_of
from grading.models.redacted import redacted_char, redacted_json
from grading.models.sessions import Session


class Fate(StrEnum):
    """What became of one file; or of a folder that was not looked into."""

    IMPORTED = "imported"
    ADDED = "added"
    THERE = "there"
    REFUSED = "refused"
    OTHER = "other"
    SKIPPED = "skipped"
    FOLDER = "folder"

    @property
    def words(self) -> str:
        return {
            Fate.IMPORTED: "imported, a new session each",
            Fate.ADDED: "added to a session that was there",
            Fate.THERE: "already there",
            Fate.REFUSED: "refused",
            Fate.OTHER: "not a session log",
            Fate.SKIPPED: "left out: a link, or no regular file",
            Fate.FOLDER: "folders left out",
        }[self]

    @property
    def one(self) -> str:
        """The same of one file."""
        return {
            Fate.IMPORTED: "imported",
            Fate.ADDED: "added",
            Fate.SKIPPED: "left out",
            Fate.FOLDER: "folder left out",
        }.get(self, self.words)


class LogImport(models.Model):
    """One run of an import. `by` is who ran it, `folders` what was named; `counts` says how many met which fate, and
    stays when the rows of its files are gone. `ended_at` is None while it runs, and where it was killed; `stopped` says
    why it ended early.
    """

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="imports")
    by = models.CharField(max_length=150)
    folders = redacted_json(default=list)
    category = models.CharField(max_length=200, blank=True)
    counts = models.JSONField(default=dict, blank=True)
    started_at = models.DateTimeField(default=timezone.now, db_index=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    stopped = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name = "import"

    def __str__(self) -> str:
        return f"import {self.pk} of {self.agent}"

    def get_absolute_url(self) -> str:
        return reverse("admin:import", args=[self.pk])

    @property
    def counted(self) -> dict[str, int]:
        """How many met each fate, 0 for none."""
        return {fate.value: self.counts.get(fate, 0) for fate in Fate}

    @property
    def tally(self) -> list[tuple[Fate, int]]:
        """How many met each fate that any met, in the order of the fates."""
        return [(fate, self.counts[fate]) for fate in Fate if self.counts.get(fate)]

    @property
    def files(self) -> int:
        """How many files were found, whatever became of them."""
        return sum(count for fate, count in self.tally if fate is not Fate.FOLDER)


class ImportedFile(models.Model):
    """One file of an import, and what became of it. `why` is the same for many files, `detail` about this one.

    A session that is erased takes its files' rows along.
    """

    log_import = models.ForeignKey(LogImport, on_delete=models.CASCADE, related_name="found", db_index=False)
    path = redacted_char(max_length=1000)
    fate = enum_field(Fate)
    why = models.CharField(max_length=200, blank=True)
    detail = redacted_char(max_length=500, blank=True)
    session = models.ForeignKey(Session, null=True, blank=True, on_delete=models.CASCADE, related_name="+")

    class Meta:
        ordering = ["pk"]
        constraints = [one_of("importedfile", "fate", Fate)]
        indexes = [models.Index(fields=["log_import", "fate", "id"], name="importedfile_by_fate")]

    def __str__(self) -> str:
        return self.path

    @property
    def became(self) -> str:
        """Its fate in words."""
        return Fate(self.fate).one

    @property
    def said(self) -> str:
        """Why, in half a line; empty where nothing is to be said."""
        return ": ".join(filter(None, (self.why, self.detail)))
