from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("plans", "0008_started_by"),
    ]

    operations = [
        migrations.AlterField(
            model_name="actionplan",
            name="on_failure",
            field=models.CharField(
                choices=[
                    ("continue", "they are executed all the same"),
                    ("stop", "they fail, or are cancelled, with it"),
                ],
                db_default="continue",
                default="continue",
                max_length=20,
            ),
        ),
        migrations.AlterField(
            model_name="actionplan",
            name="zone",
            field=models.CharField(
                db_default="UTC", default="UTC", help_text="of the times that people gave", max_length=64
            ),
        ),
    ]
