from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("watcher_site", "0016_saved_filters"),
    ]

    operations = [
        migrations.AddField(
            model_name="subscription",
            name="kind",
            field=models.CharField(
                choices=[("webhook", "Webhook"), ("mail", "E-mail"), ("slack", "Slack")],
                db_default="webhook",
                default="webhook",
                max_length=15,
            ),
        ),
        migrations.AddField(
            model_name="subscription",
            name="addresses",
            field=models.JSONField(help_text="addresses of e-mail; null: another kind", null=True),
        ),
        migrations.AlterField(
            model_name="subscription",
            name="secret",
            field=models.TextField(
                editable=False,
                help_text="sealed: key that signs notifications of a webhook, or URL of slack; of mail empty",
            ),
        ),
        migrations.AlterField(
            model_name="subscription",
            name="url",
            field=models.CharField(help_text="of slack only scheme and host; of mail empty", max_length=2000),
        ),
    ]
