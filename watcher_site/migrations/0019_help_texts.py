from django.db import migrations, models


class Migration(migrations.Migration):
    # No operation executes a statement, so that none needs the locks of several tables.
    atomic = False

    dependencies = [
        ("watcher_site", "0018_notification_persons"),
    ]

    operations = [
        migrations.AlterField(
            model_name="delivery",
            name="due_time",
            field=models.DateTimeField(help_text="earliest time of the next attempt", null=True),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="line",
            field=models.UUIDField(
                editable=False, help_text="UUID of the object: its notifications are sent to a receiver in order"
            ),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="problem",
            field=models.CharField(help_text="reason for the failure of the last attempt", max_length=255, null=True),
        ),
        migrations.AlterField(
            model_name="historyentry",
            name="user_id",
            field=models.CharField(
                help_text="id of the user in Keystone; null: an account of the site", max_length=255, null=True
            ),
        ),
        migrations.AlterField(
            model_name="notification",
            name="fault",
            field=models.JSONField(help_text="the error, in events that report one", null=True),
        ),
        migrations.AlterField(
            model_name="notification",
            name="kind",
            field=models.CharField(help_text="kind of the object, which determines the payload", max_length=63),
        ),
        migrations.AlterField(
            model_name="notification",
            name="old_state",
            field=models.CharField(
                help_text="state before the change; null: the state did not change", max_length=20, null=True
            ),
        ),
        migrations.AlterField(
            model_name="notification",
            name="person",
            field=models.CharField(
                help_text="the user who caused the change; null: the site itself", max_length=255, null=True
            ),
        ),
        migrations.AlterField(
            model_name="notification",
            name="snapshot",
            field=models.JSONField(help_text="the state of the object after the change"),
        ),
        migrations.AlterField(
            model_name="savedfilter",
            name="page",
            field=models.CharField(help_text="name of the URL pattern of the list", max_length=100),
        ),
        migrations.AlterField(
            model_name="savedfilter",
            name="query",
            field=models.CharField(help_text="query string of the list", max_length=2000),
        ),
        migrations.AlterField(
            model_name="service",
            name="handled",
            field=models.BigIntegerField(
                editable=False, help_text="number of messages that a listener has processed", null=True
            ),
        ),
        migrations.AlterField(
            model_name="service",
            name="lag",
            field=models.FloatField(
                editable=False, help_text="seconds by which a listener lags behind the cloud", null=True
            ),
        ),
        migrations.AlterField(
            model_name="service",
            name="problem",
            field=models.CharField(
                editable=False, help_text="reason for which a listener receives no messages", max_length=255, null=True
            ),
        ),
        migrations.AlterField(
            model_name="service",
            name="skipped",
            field=models.BigIntegerField(
                editable=False, help_text="number of these messages that it could not read or store", null=True
            ),
        ),
        migrations.AlterField(
            model_name="service",
            name="told_status",
            field=models.CharField(
                editable=False, help_text="the status in the last notification", max_length=10, null=True
            ),
        ),
        migrations.AlterField(
            model_name="subscription",
            name="addresses",
            field=models.JSONField(help_text="addresses of e-mail; null for other kinds", null=True),
        ),
        migrations.AlterField(
            model_name="subscription",
            name="due_time",
            field=models.DateTimeField(
                editable=False, help_text="time before which no notification is sent to the receiver", null=True
            ),
        ),
        migrations.AlterField(
            model_name="subscription",
            name="failures",
            field=models.PositiveIntegerField(
                default=0, editable=False, help_text="number of consecutive failed deliveries"
            ),
        ),
        migrations.AlterField(
            model_name="subscription",
            name="secret",
            field=models.TextField(
                editable=False,
                help_text="encrypted: the key that signs notifications to a webhook, or the URL of slack; empty for mail",
            ),
        ),
        migrations.AlterField(
            model_name="subscription",
            name="url",
            field=models.CharField(
                help_text="URL of the receiver: for slack only scheme and host; for mail empty", max_length=2000
            ),
        ),
    ]
