"""The two bandits every site starts with: what to work on, and on which harness."""

from django.db import migrations

ARMS = {
    "category": ["code", "infra", "triage", "content", "cross-repo", "research", "news", "social"],
    "harness": ["claude-code", "gptme", "codex"],
}
TITLES = {"claude-code": "Claude Code", "codex": "Codex CLI"}
CONSUMPTION = {"research", "news", "social"}
ALIASES = {
    "category": {"infrastructure": "infra", "crossrepo": "cross-repo", "social-media": "social"},
    "harness": {"claude": "claude-code", "claudecode": "claude-code", "cc": "claude-code", "codex-cli": "codex"},
}


def seed(apps, schema_editor):
    Bandit, Arm, ArmAlias = (apps.get_model("bandit", name) for name in ("Bandit", "Arm", "ArmAlias"))
    for name, arms in ARMS.items():
        bandit, _ = Bandit.objects.get_or_create(name=name, defaults={"title": name.capitalize()})
        made = {
            arm: Arm.objects.get_or_create(
                bandit=bandit,
                name=arm,
                defaults={"title": TITLES.get(arm, arm), "is_consumption": arm in CONSUMPTION},
            )[0]
            for arm in arms
        }
        for alias, arm in ALIASES[name].items():
            ArmAlias.objects.get_or_create(bandit=bandit, alias=alias, defaults={"arm": made[arm]})


class Migration(migrations.Migration):
    dependencies = [("bandit", "0002_triggers")]

    operations = [migrations.RunPython(seed, migrations.RunPython.noop)]
