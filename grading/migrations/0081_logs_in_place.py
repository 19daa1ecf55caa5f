from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('grading', '0080_outcomes'),
    ]

    operations = [
        migrations.CreateModel(
            name='LogInPlace',
            fields=[
                ('sha256', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('path', models.TextField()),
                ('size', models.BigIntegerField()),
                ('modified', models.BigIntegerField()),
            ],
            options={
                'verbose_name_plural': 'logs in place',
                'indexes': [models.Index(fields=['path'], name='log_in_place_by_path')],
            },
        ),
    ]
