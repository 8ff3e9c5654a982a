import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audits", "0005_help_texts"),
    ]

    operations = [
        migrations.CreateModel(
            name="PeriodicPurge",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("holder", models.UUIDField(null=True)),
                ("held_until", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
    ]
