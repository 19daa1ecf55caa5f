"""Items have a rank in the random order and the time at which their turn came; claims and answers, their place."""

from django.conf import settings
from django.db import migrations, models

from bandit.migrations._append_only import append_only


class Migration(migrations.Migration):

    dependencies = [
        ('grading', '0025_readings_and_kinds'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='reviewanswer',
            name='place',
            field=models.CharField(blank=True, choices=[('impact', 'impact'), ('chance', 'chance')], max_length=32),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='drawn_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='place',
            field=models.CharField(blank=True, choices=[('impact', 'impact'), ('chance', 'chance')], max_length=32),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='rank',
            field=models.FloatField(default=0.0),
        ),
        migrations.AddIndex(
            model_name='reviewitem',
            index=models.Index(fields=['state', 'rank'], name='review_item_turns'),
        ),
        migrations.AddConstraint(
            model_name='reviewanswer',
            constraint=models.CheckConstraint(condition=models.Q(('place__in', ['', 'impact', 'chance'])), name='review_answer_place_known'),
        ),
        migrations.AddConstraint(
            model_name='reviewitem',
            constraint=models.CheckConstraint(condition=models.Q(('rank__gte', 0), ('rank__lt', 1)), name='review_item_rank_range'),
        ),
        migrations.AddConstraint(
            model_name='reviewitem',
            constraint=models.CheckConstraint(condition=models.Q(('place', ''), models.Q(('place__in', ['impact', 'chance']), models.Q(('claim', ''), _negated=True)), _connector='OR'), name='review_item_place_of_a_claim'),
        ),
        *append_only("grading", "ReviewAnswer"),
    ]
