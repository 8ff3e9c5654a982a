from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("actions", "0013_former_instance_actions"),
    ]

    operations = [
        migrations.AddField(
            model_name="exclusion",
            name="enabled",
            field=models.BooleanField(default=True),
        ),
        migrations.AddIndex(
            model_name="exclusion",
            index=models.Index(models.F("enabled"), models.F("id"), name="exclusion_enabled"),
        ),
    ]
