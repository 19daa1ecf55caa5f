"""Answers name the page that sent them, so that a request sent twice is told from two."""

from django.db import migrations, models

from bandit.migrations._append_only import append_only


class Migration(migrations.Migration):

    dependencies = [
        ('grading', '0010_review'),
    ]

    operations = [
        migrations.AddField(
            model_name='reviewanswer',
            name='claim',
            field=models.CharField(blank=True, max_length=64),
        ),
        *append_only("grading", "ReviewAnswer"),
    ]
