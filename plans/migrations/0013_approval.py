from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("plans", "0012_preflight_results"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="actionplan",
            options={
                "permissions": [
                    ("start_actionplan", "Can start action plan"),
                    ("cancel_actionplan", "Can cancel action plan"),
                    ("continue_actionplan", "Can continue action plan"),
                    ("approve_actionplan", "Can approve action plan"),
                ]
            },
        ),
        migrations.AddField(
            model_name="actionplan",
            name="approved_by",
            field=models.CharField(
                editable=False, help_text="the name of the user who approved the start", max_length=255, null=True
            ),
        ),
        migrations.AddField(
            model_name="actionplan",
            name="approved_at",
            field=models.DateTimeField(editable=False, help_text="when this user approved it", null=True),
        ),
    ]
