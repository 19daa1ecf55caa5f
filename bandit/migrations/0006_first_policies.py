"""Each bandit's numbers become the first version of its policy; models get names; lessons get a bandit."""

from django.db import migrations

NUMBERS = ("half_life_days", "long_run_half_life_days", "prior_strength", "evidence_scale", "floor")
LOW_STAKES = ("triage", "content", "research", "news", "social")


def seed(apps, schema_editor):
    Bandit, Arm, PolicyVersion = (apps.get_model("bandit", name) for name in ("Bandit", "Arm", "PolicyVersion"))
    category = Bandit.objects.get(name="category")
    Bandit.objects.filter(name="harness").update(title="Harness × model", baseline=category)
    Bandit.objects.get_or_create(name="lesson", defaults={"title": "Lesson", "kind": "many", "baseline": category})
    Bandit.objects.get_or_create(name="model", defaults={"title": "Model", "kind": "names"})
    Arm.objects.filter(bandit=category, name__in=LOW_STAKES).update(is_low_stakes=True)
    for bandit in Bandit.objects.all():
        numbers = {name: getattr(bandit, name) for name in NUMBERS}
        PolicyVersion.objects.create(
            bandit=bandit,
            version=bandit.policy_version,
            caps={"journal": 12.0},
            by="installation",
            note="The numbers it began with.",
            **numbers,
        )


class Migration(migrations.Migration):
    dependencies = [("bandit", "0005_policies")]

    operations = [migrations.RunPython(seed, migrations.RunPython.noop)]
