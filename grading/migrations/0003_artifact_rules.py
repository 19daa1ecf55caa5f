"""The founding document's table of artifacts and what they are worth, as rows that an operator can change."""

from django.db import migrations

POSTS = "**/{tweets,posts,drafts,_posts,replies}/**/*.{md,txt,yml,yaml}"
RULES = [
    # kind, path glob, line pattern, new files only, weight
    ("idea", "**/idea-backlog.md", r"(?i)^\s*\|.*\bideas?(?![a-z])", False, 0.4),
    ("task", "tasks/**", "", True, 0.2),
    ("engagement", POSTS, "", True, 0.2),
    ("knowledge", "knowledge/**", "", True, 0.1),
    ("non-null", "", "", False, 0.1),
]


def seed(apps, schema_editor):
    rule = apps.get_model("grading", "ArtifactRule")
    for kind, path_glob, line_pattern, new_files_only, weight in RULES:
        found = {"path_glob": path_glob, "line_pattern": line_pattern, "new_files_only": new_files_only}
        rule.objects.get_or_create(kind=kind, defaults={**found, "weight": weight})


class Migration(migrations.Migration):
    dependencies = [("grading", "0002_append_only")]

    operations = [migrations.RunPython(seed, migrations.RunPython.noop)]
