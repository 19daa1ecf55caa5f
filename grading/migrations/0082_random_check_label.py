from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('grading', '0081_logs_in_place'),
    ]

    operations = [
        migrations.AlterField(
            model_name='reviewitem',
            name='entered_as',
            field=models.CharField(choices=[('rule', 'raised by a rule'), ('slice', 'random check of the judge'), ('person', 'put here by a person'), ('evidence', "new evidence after a person's grade"), ('outcome', 'what became of the work contradicts the verdict')], max_length=32),
        ),
    ]
