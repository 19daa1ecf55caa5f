from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('grading', '0051_person_zones'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='reviewitem',
            index=models.Index(condition=models.Q(('drawn_at__isnull', False)), fields=['session'], name='review_item_drawn'),
        ),
    ]
