"""Weekly letters, the notices that send them, and the channels that get them."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('grading', '0078_per_host_jobs'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='WeeklyLetter',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('monday', models.DateField(unique=True)),
                ('subject', models.CharField(blank=True, max_length=200)),
                ('sentences', models.JSONField(blank=True, default=list)),
                ('written_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'ordering': ['-monday'],
            },
        ),
        migrations.RemoveConstraint(
            model_name='notice',
            name='notice_about_known',
        ),
        migrations.RemoveConstraint(
            model_name='notice',
            name='notice_has_a_cause',
        ),
        migrations.AddField(
            model_name='noticechannel',
            name='letters',
            field=models.BooleanField(default=False),
        ),
        migrations.AlterField(
            model_name='notice',
            name='about',
            field=models.CharField(choices=[('opened', 'opened'), ('resolved', 'resolved'), ('letter', 'letter'), ('test', 'test')], max_length=32),
        ),
        migrations.AddField(
            model_name='notice',
            name='letter',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='notices', to='grading.weeklyletter'),
        ),
        migrations.AddConstraint(
            model_name='notice',
            constraint=models.CheckConstraint(condition=models.Q(('about__in', ['opened', 'resolved', 'letter', 'test'])), name='notice_about_known'),
        ),
        migrations.AddConstraint(
            model_name='notice',
            constraint=models.UniqueConstraint(condition=models.Q(('to', None)), fields=('letter', 'channel'), name='letter_once_by_environment'),
        ),
        migrations.AddConstraint(
            model_name='notice',
            constraint=models.UniqueConstraint(condition=models.Q(('to__isnull', False)), fields=('letter', 'to'), name='letter_once_by_channel'),
        ),
        migrations.AddConstraint(
            model_name='notice',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('alarm__isnull', False), ('letter', None)), models.Q(('about', 'letter'), ('alarm', None), ('letter__isnull', False)), models.Q(('about', 'test'), ('letter', None)), _connector='OR'), name='notice_has_one_cause'),
        ),
    ]
