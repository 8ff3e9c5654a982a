import uuid

import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import watcher_site.database.records


class Migration(migrations.Migration):
    """Create the tables in their latest form. The changes of rows are omitted, as a new table has none."""

    replaces = [
        ("watcher_site", "0001_initial"),
        ("watcher_site", "0002_sort_indexes"),
        ("watcher_site", "0003_project_members"),
        ("watcher_site", "0004_history"),
        ("watcher_site", "0005_notifications"),
        ("watcher_site", "0006_told_status"),
        ("watcher_site", "0007_lines_without_index"),
        ("watcher_site", "0008_tell_names_apart"),
        ("watcher_site", "0009_subscription_names_in_any_case"),
        ("watcher_site", "0010_failed_logins"),
        ("watcher_site", "0011_history_user_id"),
        ("watcher_site", "0012_history_user_id_index"),
        ("watcher_site", "0013_listeners"),
        ("watcher_site", "0014_token_details"),
        ("watcher_site", "0015_external_identities"),
        ("watcher_site", "0016_saved_filters"),
        ("watcher_site", "0017_subscription_kinds"),
        ("watcher_site", "0018_notification_persons"),
        ("watcher_site", "0019_help_texts"),
        ("watcher_site", "0020_request_ids"),
    ]

    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("knox", "0009_extend_authtoken_field"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Service",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=255)),
                ("host", models.CharField(max_length=255)),
                ("last_seen_up", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                (
                    "told_status",
                    models.CharField(
                        editable=False, help_text="the status in the last notification", max_length=10, null=True
                    ),
                ),
                (
                    "handled",
                    models.BigIntegerField(
                        editable=False, help_text="number of messages that a listener has processed", null=True
                    ),
                ),
                (
                    "lag",
                    models.FloatField(
                        editable=False, help_text="seconds by which a listener lags behind the cloud", null=True
                    ),
                ),
                (
                    "problem",
                    models.CharField(
                        editable=False,
                        help_text="reason for which a listener receives no messages",
                        max_length=255,
                        null=True,
                    ),
                ),
                (
                    "skipped",
                    models.BigIntegerField(
                        editable=False, help_text="number of these messages that it could not read or store", null=True
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(models.F("name"), models.F("id"), name="service_name"),
                    models.Index(models.F("host"), models.F("id"), name="service_host"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("last_seen_up"),
                        models.F("id"),
                        name="service_last_seen_up",
                    ),
                    models.Index(models.F("created_at"), models.F("id"), name="service_created_at"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("updated_at"),
                        models.F("id"),
                        name="service_updated_at",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ProjectMember",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("project_id", models.CharField(max_length=255)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="project_memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(models.F("user"), models.F("project_id"), name="project_member")
                ],
            },
        ),
        migrations.CreateModel(
            name="HistoryEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("user", models.CharField(default="", max_length=255)),
                ("project_id", models.CharField(default="", max_length=255)),
                ("request_id", models.CharField(default="", max_length=255)),
                ("deed", models.CharField(max_length=63)),
                (
                    "outcome",
                    models.CharField(
                        choices=[("success", "Success"), ("refused", "Refused")], default="success", max_length=15
                    ),
                ),
                ("object_type", models.CharField(max_length=63)),
                ("object_uuid", models.UUIDField(null=True)),
                ("object_name", models.CharField(default="", max_length=255)),
                ("within", models.UUIDField(null=True)),
                ("message", models.CharField(default="", max_length=255)),
                ("details", models.JSONField(default=dict)),
                (
                    "user_id",
                    models.CharField(
                        help_text="id of the user in Keystone; null: an account of the site", max_length=255, null=True
                    ),
                ),
            ],
            options={
                "verbose_name": "history entry",
                "verbose_name_plural": "history entries",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(models.F("created_at"), models.F("id"), name="history_created_at"),
                    models.Index(models.F("user"), models.F("id"), name="history_user"),
                    models.Index(models.F("project_id"), models.F("id"), name="history_project"),
                    models.Index(models.F("request_id"), models.F("id"), name="history_request"),
                    models.Index(models.F("deed"), models.F("id"), name="history_deed"),
                    models.Index(models.F("outcome"), models.F("id"), name="history_outcome"),
                    models.Index(models.F("object_type"), models.F("id"), name="history_object_type"),
                    models.Index(models.F("object_name"), models.F("id"), name="history_object_name"),
                    models.Index(models.F("object_uuid"), models.F("id"), name="history_object"),
                    models.Index(
                        models.F("within"),
                        models.F("id"),
                        condition=models.Q(("within__isnull", False)),
                        name="history_within",
                    ),
                    models.Index(
                        models.F("user_id"),
                        models.F("id"),
                        condition=models.Q(("user_id__isnull", False)),
                        name="history_user_id",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Notification",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False)),
                (
                    "kind",
                    models.CharField(help_text="kind of the object, which determines the payload", max_length=63),
                ),
                ("event_type", models.CharField(max_length=63)),
                ("priority", models.CharField(max_length=7)),
                ("object_uuid", models.UUIDField()),
                (
                    "old_state",
                    models.CharField(
                        help_text="state before the change; null: the state did not change", max_length=20, null=True
                    ),
                ),
                ("snapshot", models.JSONField(help_text="the state of the object after the change")),
                ("fault", models.JSONField(help_text="the error, in events that report one", null=True)),
                ("host", models.CharField(max_length=255)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("is_dispatched", models.BooleanField(default=False)),
                (
                    "person",
                    models.CharField(
                        help_text="the user who caused the change; null: the site itself", max_length=255, null=True
                    ),
                ),
                (
                    "request_id",
                    models.CharField(
                        db_default="",
                        default="",
                        help_text="id of the request that caused the change, also by an audit or a plan; empty: none did",
                        max_length=64,
                    ),
                ),
            ],
            options={
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        models.F("id"), condition=models.Q(("is_dispatched", False)), name="notification_undispatched"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Subscription",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=255)),
                (
                    "url",
                    models.CharField(
                        help_text="URL of the receiver: for slack only scheme and host; for mail empty",
                        max_length=2000,
                    ),
                ),
                (
                    "secret",
                    models.TextField(
                        editable=False,
                        help_text="encrypted: the key that signs notifications to a webhook, or the URL of slack; empty for mail",
                    ),
                ),
                ("event_types", models.JSONField(default=list, help_text="patterns such as action.* or *.error")),
                ("enabled", models.BooleanField(default=True)),
                (
                    "failures",
                    models.PositiveIntegerField(
                        default=0, editable=False, help_text="number of consecutive failed deliveries"
                    ),
                ),
                (
                    "due_time",
                    models.DateTimeField(
                        editable=False,
                        help_text="time before which no notification is sent to the receiver",
                        null=True,
                    ),
                ),
                ("last_success", models.DateTimeField(editable=False, null=True)),
                ("problem", models.CharField(editable=False, max_length=255, null=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[("webhook", "Webhook"), ("mail", "E-mail"), ("slack", "Slack")],
                        db_default="webhook",
                        default="webhook",
                        max_length=15,
                    ),
                ),
                ("addresses", models.JSONField(help_text="addresses of e-mail; null for other kinds", null=True)),
            ],
            options={
                "indexes": [
                    models.Index(models.F("name"), models.F("id"), name="subscription_name_sort"),
                    models.Index(models.F("enabled"), models.F("id"), name="subscription_enabled"),
                    models.Index(models.F("created_at"), models.F("id"), name="subscription_created_at"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("updated_at"),
                        models.F("id"),
                        name="subscription_updated_at",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Upper("name"),
                        condition=models.Q(("deleted_at", None)),
                        name="subscription_any_case_name",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                (
                    "line",
                    models.UUIDField(
                        editable=False,
                        help_text="UUID of the object: its notifications are sent to a receiver in order",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("PENDING", "Pending"), ("UNDELIVERED", "Undelivered")],
                        default="PENDING",
                        max_length=15,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("due_time", models.DateTimeField(help_text="earliest time of the next attempt", null=True)),
                (
                    "problem",
                    models.CharField(
                        help_text="reason for the failure of the last attempt", max_length=255, null=True
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                (
                    "relay",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="deliveries",
                        to="watcher_site.service",
                    ),
                ),
                (
                    "notification",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="watcher_site.notification",
                    ),
                ),
                (
                    "subscription",
                    models.ForeignKey(
                        db_index=False,
                        help_text="null: the message broker",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="watcher_site.subscription",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "permissions": [("resend_delivery", "Can resend delivery")],
                "default_permissions": ("view", "delete"),
                "indexes": [
                    models.Index(
                        models.F("subscription"),
                        models.F("id"),
                        condition=models.Q(("state", "PENDING")),
                        name="delivery_pending",
                    ),
                    models.Index(models.F("state"), models.F("id"), name="delivery_state"),
                    models.Index(
                        models.F("subscription"), models.F("state"), models.F("id"), name="delivery_subscription"
                    ),
                    models.Index(models.F("created_at"), models.F("id"), name="delivery_created_at"),
                    models.Index(models.F("attempts"), models.F("id"), name="delivery_attempts"),
                    models.Index(
                        models.F("relay"), condition=models.Q(("relay__isnull", False)), name="delivery_relay"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="FailedLogins",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=64, unique=True)),
                ("address", models.CharField(max_length=63)),
                ("name", models.CharField(default="", max_length=150)),
                ("most", models.PositiveIntegerField()),
                ("number", models.PositiveIntegerField(default=0)),
                ("began_at", models.DateTimeField(db_index=True)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="TokenDetails",
            fields=[
                (
                    "token",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="details",
                        serialize=False,
                        to="knox.authtoken",
                    ),
                ),
                ("name", models.CharField(default="", max_length=100)),
                ("read_only", models.BooleanField(default=False)),
                ("group", models.CharField(default="", max_length=150)),
                ("last_used_at", models.DateTimeField(null=True)),
            ],
            options={
                "permissions": [("manage_users", "Can manage users, their groups, projects and tokens")],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="ExternalIdentity",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="external_identity",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("issuer", models.CharField(max_length=255)),
                ("subject", models.CharField(max_length=255)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(models.F("issuer"), models.F("subject"), name="external_identity")
                ],
            },
        ),
        migrations.CreateModel(
            name="SavedFilter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("keystone_user_id", models.CharField(max_length=255, null=True)),
                ("page", models.CharField(help_text="name of the URL pattern of the list", max_length=100)),
                ("name", models.CharField(max_length=100)),
                ("query", models.CharField(help_text="query string of the list", max_length=2000)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_filters",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("keystone_user_id__isnull", False), ("user", None)),
                            models.Q(("keystone_user_id__isnull", True), ("user__isnull", False)),
                            _connector="OR",
                        ),
                        name="saved_filter_has_owner",
                    ),
                    models.UniqueConstraint(
                        models.F("user"), models.F("page"), models.F("name"), name="saved_filter_of_account"
                    ),
                    models.UniqueConstraint(
                        models.F("keystone_user_id"),
                        models.F("page"),
                        models.F("name"),
                        name="saved_filter_of_keystone_user",
                    ),
                ],
            },
        ),
    ]
