from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audits", "0006_periodic_purges"),
    ]

    operations = [
        migrations.AddField(
            model_name="audit",
            name="request_id",
            field=models.CharField(
                db_default="",
                default="",
                editable=False,
                help_text="id of the request that created the audit or triggered its last run; empty: none did",
                max_length=64,
            ),
        ),
    ]
