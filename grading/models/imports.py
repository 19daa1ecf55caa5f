"""Imports of log folders on the site itself: each run, and the result for each file."""

from django.db import models
from django.urls import reverse
from django.utils import timezone

from grading.models.agents import Agent
from grading.models.fields import enum_field, one_of, redacted_char, redacted_json
from grading.models.sessions import Session
from grading.vocabulary import LabelledEnum


class Fate(LabelledEnum):
    """The result for one file, or for a folder that wasn't read."""

    IMPORTED = "imported", "imported, a new session each"
    ADDED = "added", "added to a session that was there"
    THERE = "there", "already there"
    REFUSED = "refused"
    OTHER = "other", "not a session log"
    SKIPPED = "skipped", "left out: a link, or no regular file"
    FOLDER = "folder", "folders left out"

    @property
    def one(self) -> str:
        """The `words` for a single file or folder."""
        return {
            Fate.IMPORTED: "imported",
            Fate.ADDED: "added",
            Fate.SKIPPED: "left out",
            Fate.FOLDER: "folder left out",
        }.get(self, self.words)


class LogImport(models.Model):
    """One run of an import."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="imports")
    by = models.CharField(max_length=150)  # the user who ran it
    folders = redacted_json(default=list)
    category = models.CharField(max_length=200, blank=True)
    counts = models.JSONField(default=dict, blank=True)  # files by fate; outlasts the rows of the files
    started_at = models.DateTimeField(default=timezone.now, db_index=True)
    ended_at = models.DateTimeField(null=True, blank=True)  # None while it runs, and if it was killed
    stopped = models.CharField(max_length=200, blank=True)  # why it ended early

    class Meta:
        ordering = ["-pk"]
        verbose_name = "import"

    def __str__(self) -> str:
        return f"import {self.pk} of {self.agent}"

    def get_absolute_url(self) -> str:
        return reverse("admin:import", args=[self.pk])

    @property
    def counted(self) -> dict[str, int]:
        """The number of files for each fate, including 0."""
        return {fate.value: self.counts.get(fate, 0) for fate in Fate}

    @property
    def tally(self) -> list[tuple[Fate, int]]:
        """Each fate that occurred, with its number of files, in the order of Fate."""
        return [(fate, self.counts[fate]) for fate in Fate if self.counts.get(fate)]

    @property
    def files(self) -> int:
        """The number of files, whatever their fate."""
        return sum(count for fate, count in self.tally if fate is not Fate.FOLDER)


class ImportedFile(models.Model):
    """One file of an import. The row is deleted with its session."""

    log_import = models.ForeignKey(LogImport, on_delete=models.CASCADE, related_name="found", db_index=False)
    path = redacted_char(max_length=1000)
    fate = enum_field(Fate)
    why = models.CharField(max_length=200, blank=True)  # the same for many files
    detail = redacted_char(max_length=500, blank=True)  # about this file
    session = models.ForeignKey(Session, null=True, blank=True, on_delete=models.CASCADE, related_name="+")

    class Meta:
        ordering = ["pk"]
        constraints = [one_of("importedfile", "fate", Fate)]
        indexes = [models.Index(fields=["log_import", "fate", "id"], name="importedfile_by_fate")]

    def __str__(self) -> str:
        return self.path

    @property
    def result(self) -> str:
        return Fate(self.fate).one

    @property
    def explanation(self) -> str:
        """Why the file has this fate. May be empty."""
        return ": ".join(filter(None, (self.why, self.detail)))
