"""Projects: the repositories that sessions worked in, under names that an operator may change."""

from typing import cast

from django.db import models
from django.db.models import Q

from grading.models.fields import RedactedCharField, redacted_char

MAX_PROJECT_NAME = 200


class ProjectManager(models.Manager["Project"]):
    def for_key(self, key: str) -> "Project":
        """The project of a repository, which is created at its first session. Raises ValueError for an empty key."""
        # The column stores keys without secrets, so that is what a key is compared with.
        stored: str = cast("RedactedCharField", Project._meta.get_field("key")).redacted(key)  # noqa: SLF001
        if not stored:
            raise ValueError("expected the normalised remote or the folder of a repository, got an empty text")
        return self.get_or_create(key=stored, defaults={"name": stored[:MAX_PROJECT_NAME]})[0]


class Project(models.Model):
    """A repository that sessions worked in. Sessions refer to the repository, and pages and filters use its `name`.

    Repositories with the same name are one project. So a rename changes only how sessions are listed, a merge is a
    rename to another project's name, and giving a repository its old name undoes either.
    """

    # The normalised URL of the remote (`grading.signals.remotes`), or else the name of the repository's folder.
    key = redacted_char(max_length=300, unique=True)
    name = redacted_char(max_length=MAX_PROJECT_NAME, db_index=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["name", "key"]
        constraints = [
            models.CheckConstraint(condition=~Q(key=""), name="project_has_key"),
            models.CheckConstraint(condition=~Q(name=""), name="project_has_name"),
        ]

    def __str__(self) -> str:
        return self.name
