import uuid

import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
import django_fsm
from django.db import migrations, models

import cluster.models.compute
import watcher_site.database.records


class Migration(migrations.Migration):
    """Create the tables in their latest form. The changes of rows are omitted, as a new table has none."""

    replaces = [
        ("cluster", "0001_initial"),
        ("cluster", "0002_storage_aggregates_and_flavors"),
        ("cluster", "0003_operation_owner"),
        ("cluster", "0004_samples"),
        ("cluster", "0005_operation_owner_attempt"),
        ("cluster", "0006_console_indexes"),
        ("cluster", "0007_synchronization"),
        ("cluster", "0008_server_token"),
        ("cluster", "0009_profiles"),
        ("cluster", "0010_nodes"),
        ("cluster", "0011_clusters"),
        ("cluster", "0012_pending_servers"),
        ("cluster", "0013_recover_node_right"),
        ("cluster", "0014_load_balancer_pools"),
        ("cluster", "0015_node_generation"),
        ("cluster", "0016_reset_server"),
        ("cluster", "0017_server_filters"),
        ("cluster", "0018_names_in_any_case"),
        ("cluster", "0019_stacks"),
        ("cluster", "0020_marks_of_nodes"),
        ("cluster", "0021_deleted_stacks"),
        ("cluster", "0022_stack_timeout"),
        ("cluster", "0023_project_quotas"),
        ("cluster", "0024_server_waits"),
        ("cluster", "0025_project_of_the_site"),
        ("cluster", "0026_server_given_up"),
        ("cluster", "0027_allocation_units"),
        ("cluster", "0028_column_defaults"),
        ("cluster", "0029_notified_objects"),
        ("cluster", "0030_forced_down"),
        ("cluster", "0031_projects_of_clusters"),
        ("cluster", "0032_trusts"),
        ("cluster", "0033_projects_of_profiles"),
        ("cluster", "0034_help_texts"),
    ]

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="ComputeNode",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("hostname", models.CharField(max_length=255)),
                (
                    "status",
                    models.CharField(
                        choices=[("enabled", "Enabled"), ("disabled", "Disabled")], default="enabled", max_length=20
                    ),
                ),
                ("disabled_reason", models.CharField(blank=True, max_length=255, null=True)),
                ("state", models.CharField(choices=[("up", "Up"), ("down", "Down")], default="up", max_length=20)),
                ("vcpus", models.PositiveIntegerField()),
                ("vcpu_reserved", models.PositiveIntegerField(default=0)),
                ("vcpu_ratio", models.FloatField(default=1.0)),
                ("memory", models.PositiveIntegerField(help_text="MB")),
                ("memory_mb_reserved", models.PositiveIntegerField(default=0)),
                ("memory_ratio", models.FloatField(default=1.0)),
                ("disk", models.PositiveIntegerField(help_text="GB")),
                ("disk_gb_reserved", models.PositiveIntegerField(default=0)),
                ("disk_ratio", models.FloatField(default=1.0)),
                (
                    "power_state",
                    models.CharField(
                        choices=[("on", "On"), ("off", "Off")], db_default="on", default="on", max_length=20
                    ),
                ),
                (
                    "zone",
                    models.CharField(
                        db_default="nova", default="nova", help_text="the availability zone", max_length=255
                    ),
                ),
                (
                    "allocation_units",
                    models.JSONField(
                        editable=False,
                        help_text="min_unit, max_unit and step_size of the allocation of a server, by resource",
                        null=True,
                    ),
                ),
                (
                    "reported_at",
                    models.DateTimeField(
                        editable=False,
                        help_text="time of the newest notification of the cloud whose content was stored",
                        null=True,
                    ),
                ),
                (
                    "forced_down",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="whether an operator or a fencing program marked the node as down",
                    ),
                ),
            ],
            options={
                "ordering": ["hostname"],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("hostname"), condition=models.Q(("deleted_at", None)), name="compute_node_hostname"
                    )
                ],
                "indexes": [
                    models.Index(models.F("zone"), models.F("id"), name="compute_node_zone"),
                    models.Index(models.F("state"), models.F("status"), models.F("id"), name="compute_node_state"),
                    models.Index(models.F("status"), models.F("id"), name="compute_node_status"),
                    models.Index(models.F("power_state"), models.F("id"), name="compute_node_power_state"),
                    models.Index(models.F("hostname"), models.F("id"), name="compute_node_any_hostname"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Flavor",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("flavor_id", models.CharField(default=cluster.models.compute.new_flavor_id, max_length=255)),
                ("name", models.CharField(max_length=255)),
                ("vcpus", models.PositiveIntegerField()),
                ("memory", models.PositiveIntegerField(help_text="MB")),
                ("disk", models.PositiveIntegerField(help_text="GB")),
                ("extra_specs", models.JSONField(blank=True, default=dict)),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("name"), condition=models.Q(("deleted_at", None)), name="flavor_name"
                    ),
                    models.UniqueConstraint(
                        models.F("flavor_id"), condition=models.Q(("deleted_at", None)), name="flavor_flavor_id"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Server",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=255)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("active", "Active"),
                            ("building", "Building"),
                            ("paused", "Paused"),
                            ("suspended", "Suspended"),
                            ("stopped", "Stopped"),
                            ("rescued", "Rescued"),
                            ("resized", "Resized"),
                            ("shelved", "Shelved"),
                            ("error", "Error"),
                            ("pending", "Pending"),
                        ],
                        default="active",
                        max_length=20,
                    ),
                ),
                ("task_state", models.CharField(blank=True, max_length=64, null=True)),
                ("vcpus", models.PositiveIntegerField()),
                ("memory", models.PositiveIntegerField(help_text="MB")),
                ("disk", models.PositiveIntegerField(help_text="GB")),
                ("metadata", models.JSONField(blank=True, default=dict)),
                ("project_id", models.CharField(blank=True, default="", max_length=255)),
                ("locked", models.BooleanField(default=False)),
                ("pinned_az", models.CharField(blank=True, default="", max_length=255)),
                ("flavor_extra_specs", models.JSONField(blank=True, default=dict)),
                (
                    "destination",
                    models.ForeignKey(
                        help_text="target of the current migration; the server reserves capacity on both nodes until its end",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="arriving_servers",
                        to="cluster.computenode",
                    ),
                ),
                (
                    "node",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="servers",
                        to="cluster.computenode",
                    ),
                ),
                (
                    "flavor",
                    models.CharField(
                        blank=True, db_default="", default="", help_text="name of the current flavor", max_length=255
                    ),
                ),
                (
                    "new_flavor",
                    models.ForeignKey(
                        help_text="target of the current resize; the server reserves the larger amounts until its end",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="cluster.flavor",
                    ),
                ),
                (
                    "operation_owner",
                    models.CharField(blank=True, db_default="", default="", editable=False, max_length=64),
                ),
                (
                    "token",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="token of the creation: a repeated creation with the same token finds this server",
                        max_length=64,
                    ),
                ),
                (
                    "fault",
                    models.JSONField(
                        editable=False, help_text="reason for ERROR or PENDING, in Nova's format", null=True
                    ),
                ),
                (
                    "image",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="id of the image from which the server was built",
                        max_length=255,
                    ),
                ),
                (
                    "launched_at",
                    models.DateTimeField(
                        editable=False,
                        help_text="time at which the server first ran; null: never, or unknown",
                        null=True,
                    ),
                ),
                (
                    "user_id",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="the user who requested the server",
                        max_length=255,
                    ),
                ),
                (
                    "unhealthy_reason",
                    models.CharField(
                        editable=False,
                        help_text="reason for which a user marked the server unhealthy; null: not marked",
                        max_length=255,
                        null=True,
                    ),
                ),
                (
                    "given_up_at",
                    models.DateTimeField(
                        editable=False,
                        help_text="time at which the wait for capacity was ended, for clouds that cannot store it",
                        null=True,
                    ),
                ),
                (
                    "cloud_updated_at",
                    models.DateTimeField(
                        editable=False,
                        help_text="time of the last change in the cloud, by the cloud's clock",
                        null=True,
                    ),
                ),
                (
                    "reported_at",
                    models.DateTimeField(
                        editable=False,
                        help_text="time of the newest notification of the cloud whose content was stored",
                        null=True,
                    ),
                ),
            ],
            options={
                "ordering": ["name", "pk"],
                "indexes": [
                    models.Index(models.F("name"), models.F("id"), name="server_name"),
                    models.Index(models.F("state"), models.F("id"), name="server_state"),
                    models.Index(models.F("vcpus"), models.F("id"), name="server_vcpus"),
                    models.Index(models.F("memory"), models.F("id"), name="server_memory"),
                    models.Index(models.F("disk"), models.F("id"), name="server_disk"),
                    models.Index(models.F("task_state"), models.F("id"), name="server_task_state"),
                    models.Index(models.F("project_id"), models.F("id"), name="server_project_id"),
                    models.Index(models.F("created_at"), models.F("id"), name="server_created_at"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("updated_at"),
                        models.F("id"),
                        name="server_updated_at",
                    ),
                    models.Index(models.F("flavor"), models.F("id"), name="server_flavor"),
                    models.Index(
                        models.F("uuid"), condition=models.Q(("given_up_at__isnull", False)), name="server_given_up"
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("destination", None),
                            models.Q(
                                ("node__isnull", False), models.Q(("destination", models.F("node")), _negated=True)
                            ),
                            _connector="OR",
                        ),
                        name="server_destination_elsewhere",
                    ),
                    models.UniqueConstraint(
                        models.F("token"),
                        condition=models.Q(("deleted_at", None), models.Q(("token", ""), _negated=True)),
                        name="server_token",
                    ),
                ],
                "permissions": [
                    ("reset_server", "Can reset the state of server"),
                    ("mark_server", "Can mark server unhealthy"),
                ],
            },
        ),
        migrations.CreateModel(
            name="HostAggregate",
            fields=[
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("id", models.PositiveIntegerField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255)),
                ("metadata", models.JSONField(blank=True, default=dict)),
                ("nodes", models.ManyToManyField(related_name="aggregates", to="cluster.computenode")),
                (
                    "reported_at",
                    models.DateTimeField(
                        editable=False,
                        help_text="time of the newest notification of the cloud whose content was stored",
                        null=True,
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("name"), condition=models.Q(("deleted_at", None)), name="host_aggregate_name"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="VolumeType",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=255)),
                ("extra_specs", models.JSONField(blank=True, default=dict)),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("name"), condition=models.Q(("deleted_at", None)), name="volume_type_name"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="StorageNode",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("host", models.CharField(max_length=255)),
                ("zone", models.CharField(default="nova", help_text="the availability zone", max_length=255)),
                (
                    "status",
                    models.CharField(
                        choices=[("enabled", "Enabled"), ("disabled", "Disabled")], default="enabled", max_length=20
                    ),
                ),
                ("state", models.CharField(choices=[("up", "Up"), ("down", "Down")], default="up", max_length=20)),
                ("volume_types", models.ManyToManyField(related_name="storage_nodes", to="cluster.volumetype")),
            ],
            options={
                "ordering": ["host"],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("host"), condition=models.Q(("deleted_at", None)), name="storage_node_host"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Pool",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=255)),
                ("total_volumes", models.PositiveIntegerField(default=0)),
                ("total_capacity_gb", models.PositiveBigIntegerField()),
                ("free_capacity_gb", models.PositiveBigIntegerField(default=0)),
                ("provisioned_capacity_gb", models.PositiveBigIntegerField(default=0)),
                ("allocated_capacity_gb", models.PositiveBigIntegerField(default=0)),
                ("virtual_free", models.BigIntegerField(default=0)),
                ("max_over_subscription_ratio", models.FloatField(default=1.0)),
                (
                    "storage_node",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="pools", to="cluster.storagenode"
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "indexes": [
                    models.Index(models.F("total_volumes"), models.F("id"), name="pool_total_volumes"),
                    models.Index(
                        models.F("provisioned_capacity_gb"), models.F("id"), name="pool_provisioned_capacity"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("name"), condition=models.Q(("deleted_at", None)), name="pool_name"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Sample",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("metric", models.CharField(max_length=64)),
                ("resource", models.UUIDField()),
                ("time", models.DateTimeField()),
                ("value", models.FloatField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        models.F("metric"), models.F("time"), models.F("resource"), name="sample_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Synchronization",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("holder", models.UUIDField(null=True)),
                ("held_until", models.DateTimeField(null=True)),
                ("succeeded_at", models.DateTimeField(null=True)),
                ("problem", models.CharField(blank=True, default="", max_length=255)),
                (
                    "project",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="id of the project of the site's login",
                        max_length=255,
                    ),
                ),
                (
                    "user",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="id of the user of the site's login",
                        max_length=255,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Profile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=255)),
                (
                    "type",
                    models.CharField(
                        choices=[("os.nova.server-1.0", "Server")], default="os.nova.server-1.0", max_length=255
                    ),
                ),
                ("spec", models.JSONField()),
                (
                    "metadata",
                    models.JSONField(
                        blank=True, default=dict, help_text="notes of users about the profile, not for its servers"
                    ),
                ),
                (
                    "project_id",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="project of the object; empty: none",
                        max_length=255,
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "indexes": [
                    models.Index(models.F("name"), models.F("id"), name="profile_name_sort"),
                    models.Index(models.F("created_at"), models.F("id"), name="profile_created_at"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("updated_at"),
                        models.F("id"),
                        name="profile_updated_at",
                    ),
                    models.Index(
                        django.db.models.functions.text.Upper("name"), models.F("id"), name="profile_any_case_name"
                    ),
                    models.Index(models.F("project_id"), models.F("id"), name="profile_project_id"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("project_id"),
                        django.db.models.functions.text.Upper("name"),
                        condition=models.Q(("deleted_at", None)),
                        name="profile_name_in_project",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Policy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=255)),
                ("type", models.CharField(max_length=255)),
                ("spec", models.JSONField(default=dict)),
            ],
            options={
                "verbose_name_plural": "policies",
                "ordering": ["name"],
                "indexes": [
                    models.Index(models.F("name"), models.F("id"), name="policy_name_sort"),
                    models.Index(models.F("type"), models.F("id"), name="policy_type"),
                    models.Index(models.F("created_at"), models.F("id"), name="policy_created_at"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("updated_at"),
                        models.F("id"),
                        name="policy_updated_at",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Upper("name"),
                        condition=models.Q(("deleted_at", None)),
                        name="policy_name",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="BalancingPool",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=255)),
            ],
            options={
                "verbose_name": "load-balancer pool",
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("name"), condition=models.Q(("deleted_at", None)), name="balancing_pool_name"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Draining",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("pool", models.UUIDField()),
                ("server", models.UUIDField()),
                ("since", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "constraints": [models.UniqueConstraint(models.F("pool"), models.F("server"), name="draining_once")],
            },
        ),
        migrations.CreateModel(
            name="BalancingMember",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("port", models.PositiveIntegerField(help_text="port on which the server accepts connections")),
                (
                    "weight",
                    models.PositiveIntegerField(
                        default=1, help_text="share of new connections relative to other members"
                    ),
                ),
                ("connections", models.PositiveIntegerField(default=0, help_text="number of open connections")),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="cluster.server"
                    ),
                ),
                (
                    "pool",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="members", to="cluster.balancingpool"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(models.F("pool"), models.F("server"), name="balancing_member_once"),
                    models.CheckConstraint(condition=models.Q(("weight__lte", 256)), name="balancing_member_weight"),
                    models.CheckConstraint(
                        condition=models.Q(("port__gte", 1), ("port__lte", 65535)), name="balancing_member_port"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ProjectQuota",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("project_id", models.CharField(max_length=255, unique=True)),
                ("servers", models.IntegerField(blank=True, null=True)),
                ("vcpus", models.IntegerField(blank=True, null=True)),
                ("memory", models.IntegerField(blank=True, null=True)),
                ("stacks", models.IntegerField(blank=True, null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("servers__isnull", True), ("servers__gte", -1), _connector="OR"),
                            models.Q(("vcpus__isnull", True), ("vcpus__gte", -1), _connector="OR"),
                            models.Q(("memory__isnull", True), ("memory__gte", -1), _connector="OR"),
                            models.Q(("stacks__isnull", True), ("stacks__gte", -1), _connector="OR"),
                        ),
                        name="project_quota_limits",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ServerWait",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("since", models.DateTimeField()),
                (
                    "searches",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="number of searches for a compute node"
                    ),
                ),
                (
                    "next_search",
                    models.DateTimeField(
                        help_text="earliest time of the next search, unless a compute node has capacity before",
                        null=True,
                    ),
                ),
                (
                    "had_host",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="whether a compute node had capacity at the last search",
                    ),
                ),
                (
                    "server",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="wait", to="cluster.server"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Trust",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("keystone_id", models.CharField(help_text="id of the trust in Keystone", max_length=255)),
                ("project_id", models.CharField(max_length=255)),
                ("user_id", models.CharField(help_text="id of the trustor in Keystone", max_length=255)),
                ("user_name", models.CharField(max_length=255)),
                ("roles", models.JSONField(default=list, help_text="names of the delegated roles")),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "used_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, help_text="time of the last request that used the trust"
                    ),
                ),
                ("failed_at", models.DateTimeField(help_text="time at which Keystone refused the trust", null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        models.F("project_id"), models.F("user_id"), name="trust_of_user_in_project"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Cluster",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=255)),
                ("min_size", models.PositiveIntegerField(default=0)),
                ("max_size", models.IntegerField(default=-1, help_text="-1: unlimited")),
                ("desired_capacity", models.PositiveIntegerField(default=0, help_text="desired number of nodes")),
                (
                    "timeout",
                    models.PositiveIntegerField(
                        default=0, help_text="timeout of its actions in seconds; 0: the default of the site"
                    ),
                ),
                (
                    "metadata",
                    models.JSONField(
                        blank=True, default=dict, help_text="notes of users about the cluster, not for its servers"
                    ),
                ),
                (
                    "next_index",
                    models.PositiveIntegerField(
                        default=1, editable=False, help_text="index of the next node that joins"
                    ),
                ),
                (
                    "status",
                    django_fsm.FSMField(
                        choices=[
                            ("INIT", "Init"),
                            ("CREATING", "Creating"),
                            ("ACTIVE", "Active"),
                            ("UPDATING", "Updating"),
                            ("RESIZING", "Resizing"),
                            ("CHECKING", "Checking"),
                            ("RECOVERING", "Recovering"),
                            ("DELETING", "Deleting"),
                            ("WARNING", "Warning"),
                            ("CRITICAL", "Critical"),
                            ("ERROR", "Error"),
                        ],
                        default="INIT",
                        editable=False,
                        max_length=20,
                        protected=True,
                    ),
                ),
                ("status_reason", models.CharField(editable=False, max_length=255, null=True)),
                (
                    "init_at",
                    models.DateTimeField(editable=False, help_text="time at which the creation began", null=True),
                ),
                (
                    "profile",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="clusters", to="cluster.profile"
                    ),
                ),
                (
                    "project_id",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="project of the object; empty: none",
                        max_length=255,
                    ),
                ),
                (
                    "user_id",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="the user who created the object",
                        max_length=255,
                    ),
                ),
                (
                    "trust",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="clusters",
                        to="cluster.trust",
                    ),
                ),
            ],
            options={
                "ordering": ["name", "pk"],
                "permissions": [("operate_cluster", "Can resize, check and recover cluster, and change its nodes")],
                "indexes": [
                    models.Index(models.F("name"), models.F("id"), name="cluster_name"),
                    models.Index(models.F("status"), models.F("id"), name="cluster_status"),
                    models.Index(models.F("created_at"), models.F("id"), name="cluster_created_at"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("updated_at"),
                        models.F("id"),
                        name="cluster_updated_at",
                    ),
                    models.Index(
                        django.db.models.functions.text.Upper("name"), models.F("id"), name="cluster_any_case_name"
                    ),
                    models.Index(models.F("project_id"), models.F("id"), name="cluster_project_id"),
                ],
            },
            bases=(django_fsm.ConcurrentTransitionMixin, models.Model),
        ),
        migrations.CreateModel(
            name="Node",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=255)),
                (
                    "role",
                    models.CharField(
                        blank=True, default="", help_text="purpose of the node, a free text", max_length=255
                    ),
                ),
                (
                    "metadata",
                    models.JSONField(
                        blank=True, default=dict, help_text="notes of users about the node, not for its server"
                    ),
                ),
                (
                    "status",
                    django_fsm.FSMField(
                        choices=[
                            ("INIT", "Init"),
                            ("CREATING", "Creating"),
                            ("ACTIVE", "Active"),
                            ("UPDATING", "Updating"),
                            ("RECOVERING", "Recovering"),
                            ("OPERATING", "Operating"),
                            ("DELETING", "Deleting"),
                            ("WARNING", "Warning"),
                            ("ERROR", "Error"),
                        ],
                        default="INIT",
                        editable=False,
                        max_length=20,
                        protected=True,
                    ),
                ),
                ("status_reason", models.CharField(editable=False, max_length=255, null=True)),
                ("physical_id", models.UUIDField(editable=False, help_text="UUID of the server", null=True)),
                (
                    "profile",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="nodes", to="cluster.profile"
                    ),
                ),
                (
                    "data",
                    models.JSONField(
                        db_default={}, default=dict, editable=False, help_text="decisions of policies about the node"
                    ),
                ),
                (
                    "index",
                    models.IntegerField(
                        db_default=-1,
                        default=-1,
                        editable=False,
                        help_text="position in the order in which nodes joined the cluster",
                    ),
                ),
                (
                    "init_at",
                    models.DateTimeField(
                        editable=False, help_text="time at which the creation first began", null=True
                    ),
                ),
                (
                    "tainted",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="whether the node is removed first when the cluster is reduced",
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        editable=False,
                        help_text="cluster of the node; null: none",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="nodes",
                        to="cluster.cluster",
                    ),
                ),
                (
                    "generation",
                    models.PositiveIntegerField(
                        db_default=0, default=0, editable=False, help_text="number of replacements of the server"
                    ),
                ),
                (
                    "unhealthy_reason",
                    models.CharField(
                        editable=False,
                        help_text="reason for which a user marked the node unhealthy, regardless of its server; null: not marked",
                        max_length=255,
                        null=True,
                    ),
                ),
                (
                    "project_id",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="project of the object; empty: none",
                        max_length=255,
                    ),
                ),
                (
                    "user_id",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="the user who created the object",
                        max_length=255,
                    ),
                ),
                (
                    "trust",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="nodes",
                        to="cluster.trust",
                    ),
                ),
            ],
            options={
                "ordering": ["name", "pk"],
                "permissions": [
                    ("check_node", "Can check node"),
                    ("recover_node", "Can recover node"),
                    ("mark_node", "Can mark node unhealthy"),
                ],
                "indexes": [
                    models.Index(models.F("name"), models.F("id"), name="node_name"),
                    models.Index(models.F("status"), models.F("id"), name="node_status"),
                    models.Index(models.F("created_at"), models.F("id"), name="node_created_at"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("updated_at"), models.F("id"), name="node_updated_at"
                    ),
                    models.Index(models.F("cluster"), models.F("index"), models.F("id"), name="node_cluster"),
                    models.Index(
                        django.db.models.functions.text.Upper("name"), models.F("id"), name="node_any_case_name"
                    ),
                    models.Index(models.F("project_id"), models.F("id"), name="node_project_id"),
                ],
            },
            bases=(django_fsm.ConcurrentTransitionMixin, models.Model),
        ),
        migrations.CreateModel(
            name="PolicyBinding",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("priority", models.PositiveIntegerField(help_text="policies with smaller values are checked first")),
                ("enabled", models.BooleanField(default=True)),
                (
                    "last_op",
                    models.DateTimeField(
                        editable=False, help_text="time of the last scaling to which the policy applied", null=True
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="policy_bindings",
                        to="cluster.cluster",
                    ),
                ),
                (
                    "policy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="bindings", to="cluster.policy"
                    ),
                ),
            ],
            options={
                "ordering": ["priority", "pk"],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("cluster"),
                        models.F("policy"),
                        condition=models.Q(("deleted_at", None)),
                        name="policy_attached_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Stack",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=255)),
                (
                    "status",
                    django_fsm.FSMField(
                        choices=[
                            ("INIT_COMPLETE", "Init Complete"),
                            ("CREATE_IN_PROGRESS", "Create In Progress"),
                            ("CREATE_COMPLETE", "Create Complete"),
                            ("CREATE_FAILED", "Create Failed"),
                            ("UPDATE_IN_PROGRESS", "Update In Progress"),
                            ("UPDATE_COMPLETE", "Update Complete"),
                            ("UPDATE_FAILED", "Update Failed"),
                            ("DELETE_IN_PROGRESS", "Delete In Progress"),
                            ("DELETE_FAILED", "Delete Failed"),
                            ("DELETE_COMPLETE", "Delete Complete"),
                            ("CHECK_COMPLETE", "Check Complete"),
                            ("CHECK_FAILED", "Check Failed"),
                        ],
                        default="INIT_COMPLETE",
                        editable=False,
                        max_length=20,
                        protected=True,
                    ),
                ),
                ("status_reason", models.CharField(default="", editable=False, max_length=255)),
                ("project_id", models.CharField(blank=True, default="", max_length=255)),
                (
                    "user_id",
                    models.CharField(
                        blank=True, default="", help_text="the user who requested the stack", max_length=255
                    ),
                ),
                (
                    "template",
                    models.JSONField(default=dict, help_text="the template that describes the desired resources"),
                ),
                (
                    "revision",
                    models.PositiveIntegerField(
                        default=0,
                        editable=False,
                        help_text="number of operations that began; actions that were planned before the last one are stale",
                    ),
                ),
                (
                    "root",
                    models.ForeignKey(
                        editable=False,
                        help_text="root of the tree; null: the stack is a root",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="descendants",
                        to="cluster.stack",
                    ),
                ),
                (
                    "timeout_mins",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="timeout of an operation in minutes, without suspended time; null: the default of the site",
                        null=True,
                    ),
                ),
                (
                    "trust",
                    models.ForeignKey(
                        editable=False,
                        help_text="trust by which the servers are created in the project; only of root stacks",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="stacks",
                        to="cluster.trust",
                    ),
                ),
            ],
            options={
                "ordering": ["name", "pk"],
                "permissions": [("mark_stack", "Can mark stack and its resources unhealthy")],
                "indexes": [
                    models.Index(models.F("name"), models.F("id"), name="stack_name"),
                    models.Index(models.F("status"), models.F("id"), name="stack_status"),
                    models.Index(models.F("project_id"), models.F("id"), name="stack_project_id"),
                    models.Index(models.F("created_at"), models.F("id"), name="stack_created_at"),
                    models.Index(
                        watcher_site.database.records.NullsFirst("updated_at"), models.F("id"), name="stack_updated_at"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("project_id"),
                        models.F("name"),
                        condition=models.Q(("deleted_at", None)),
                        name="stack_name_in_project",
                    )
                ],
            },
            bases=(django_fsm.ConcurrentTransitionMixin, models.Model),
        ),
        migrations.CreateModel(
            name="StackResource",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=255)),
                (
                    "status",
                    django_fsm.FSMField(
                        choices=[
                            ("INIT_COMPLETE", "Init Complete"),
                            ("CREATE_IN_PROGRESS", "Create In Progress"),
                            ("CREATE_COMPLETE", "Create Complete"),
                            ("CREATE_FAILED", "Create Failed"),
                            ("UPDATE_IN_PROGRESS", "Update In Progress"),
                            ("UPDATE_COMPLETE", "Update Complete"),
                            ("UPDATE_FAILED", "Update Failed"),
                            ("DELETE_IN_PROGRESS", "Delete In Progress"),
                            ("DELETE_FAILED", "Delete Failed"),
                            ("DELETE_COMPLETE", "Delete Complete"),
                            ("CHECK_COMPLETE", "Check Complete"),
                            ("CHECK_FAILED", "Check Failed"),
                        ],
                        default="INIT_COMPLETE",
                        editable=False,
                        max_length=20,
                        protected=True,
                    ),
                ),
                ("status_reason", models.CharField(default="", editable=False, max_length=255)),
                (
                    "type",
                    models.CharField(
                        choices=[("server", "Server"), ("scaling_group", "Scaling Group"), ("stack", "Stack")],
                        max_length=20,
                    ),
                ),
                (
                    "properties",
                    models.JSONField(
                        default=dict, help_text="properties in the template of the last creation or update"
                    ),
                ),
                (
                    "depends_on",
                    models.JSONField(
                        default=list, help_text="names of the resources that are created before this one"
                    ),
                ),
                (
                    "physical_id",
                    models.CharField(
                        editable=False,
                        help_text="UUID of the server or of the nested stack",
                        max_length=255,
                        null=True,
                    ),
                ),
                (
                    "former_physical_id",
                    models.CharField(
                        editable=False,
                        help_text="physical_id of the replaced counterpart, until that is deleted",
                        max_length=255,
                        null=True,
                    ),
                ),
                (
                    "generation",
                    models.PositiveIntegerField(default=0, editable=False, help_text="number of replacements"),
                ),
                (
                    "made_at",
                    models.DateTimeField(
                        editable=False, help_text="time at which the current counterpart was created", null=True
                    ),
                ),
                (
                    "stack",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="resources", to="cluster.stack"
                    ),
                ),
            ],
            options={
                "ordering": ["name", "pk"],
                "indexes": [
                    models.Index(models.F("stack"), models.F("name"), models.F("id"), name="stack_resource_stack"),
                    models.Index(models.F("name"), models.F("id"), name="stack_resource_name"),
                    models.Index(models.F("status"), models.F("id"), name="stack_resource_status"),
                    models.Index(models.F("physical_id"), models.F("id"), name="stack_resource_physical_id"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("stack"),
                        models.F("name"),
                        condition=models.Q(("deleted_at", None)),
                        name="stack_resource_once",
                    )
                ],
            },
            bases=(django_fsm.ConcurrentTransitionMixin, models.Model),
        ),
        migrations.AddField(
            model_name="stack",
            name="parent_resource",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="nested_stacks",
                to="cluster.stackresource",
            ),
        ),
        migrations.AddConstraint(
            model_name="stack",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("parent_resource", None), ("root", None)),
                    models.Q(("parent_resource__isnull", False), ("root__isnull", False)),
                    _connector="OR",
                ),
                name="stack_root_or_nested",
            ),
        ),
        migrations.CreateModel(
            name="Lock",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("action", models.UUIDField()),
                ("is_exclusive", models.BooleanField()),
                ("taken_at", models.DateTimeField(auto_now_add=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="locks",
                        to="cluster.cluster",
                    ),
                ),
                (
                    "node",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, related_name="locks", to="cluster.node"
                    ),
                ),
                (
                    "stack",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="locks",
                        to="cluster.stack",
                    ),
                ),
                (
                    "resource",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="locks",
                        to="cluster.stackresource",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(models.F("cluster"), models.F("action"), name="lock_of_cluster"),
                    models.UniqueConstraint(models.F("node"), models.F("action"), name="lock_of_node"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("cluster__isnull", False),
                                ("node__isnull", True),
                                ("resource__isnull", True),
                                ("stack__isnull", True),
                            ),
                            models.Q(
                                ("cluster__isnull", True),
                                ("node__isnull", False),
                                ("resource__isnull", True),
                                ("stack__isnull", True),
                            ),
                            models.Q(
                                ("cluster__isnull", True),
                                ("node__isnull", True),
                                ("resource__isnull", True),
                                ("stack__isnull", False),
                            ),
                            models.Q(
                                ("cluster__isnull", True),
                                ("node__isnull", True),
                                ("resource__isnull", False),
                                ("stack__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="lock_of_one_thing",
                    ),
                    models.UniqueConstraint(models.F("stack"), models.F("action"), name="lock_of_stack"),
                    models.UniqueConstraint(models.F("resource"), models.F("action"), name="lock_of_resource"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Volume",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ("name", models.CharField(max_length=255)),
                ("size", models.PositiveIntegerField(help_text="GB")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("creating", "Creating"),
                            ("available", "Available"),
                            ("attaching", "Attaching"),
                            ("in-use", "In Use"),
                            ("detaching", "Detaching"),
                            ("maintenance", "Maintenance"),
                            ("retyping", "Retyping"),
                            ("deleting", "Deleting"),
                            ("error", "Error"),
                        ],
                        default="available",
                        max_length=20,
                    ),
                ),
                ("migration_status", models.CharField(blank=True, max_length=64, null=True)),
                ("multiattach", models.BooleanField(default=False)),
                ("bootable", models.BooleanField(default=False)),
                (
                    "snapshot_id",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="id of the snapshot from which the volume was created",
                        max_length=255,
                    ),
                ),
                ("has_snapshots", models.BooleanField(default=False, help_text="whether the volume has snapshots")),
                ("project_id", models.CharField(blank=True, default="", max_length=255)),
                ("metadata", models.JSONField(blank=True, default=dict)),
                (
                    "destination",
                    models.ForeignKey(
                        help_text="target of the current migration; the volume reserves capacity in both pools until its end",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="arriving_volumes",
                        to="cluster.pool",
                    ),
                ),
                (
                    "pool",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="volumes",
                        to="cluster.pool",
                    ),
                ),
                (
                    "volume_type",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="volumes",
                        to="cluster.volumetype",
                    ),
                ),
                (
                    "operation_owner",
                    models.CharField(blank=True, db_default="", default="", editable=False, max_length=64),
                ),
                (
                    "cloud_updated_at",
                    models.DateTimeField(
                        editable=False,
                        help_text="time of the last change in the cloud, by the cloud's clock",
                        null=True,
                    ),
                ),
                (
                    "reported_at",
                    models.DateTimeField(
                        editable=False,
                        help_text="time of the newest notification of the cloud whose content was stored",
                        null=True,
                    ),
                ),
            ],
            options={
                "ordering": ["name", "pk"],
                "indexes": [
                    models.Index(models.F("name"), models.F("id"), name="volume_name"),
                    models.Index(models.F("status"), models.F("id"), name="volume_status"),
                    models.Index(models.F("size"), models.F("id"), name="volume_size"),
                    models.Index(models.F("migration_status"), models.F("id"), name="volume_migration_status"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("destination", None),
                            models.Q(
                                ("pool__isnull", False), models.Q(("destination", models.F("pool")), _negated=True)
                            ),
                            _connector="OR",
                        ),
                        name="volume_destination_elsewhere",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="VolumeAttachment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(editable=False, null=True)),
                ("deleted_at", models.DateTimeField(editable=False, null=True)),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="attachments", to="cluster.server"
                    ),
                ),
                (
                    "volume",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="attachments", to="cluster.volume"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("volume"),
                        models.F("server"),
                        condition=models.Q(("deleted_at", None)),
                        name="volume_attachment_pair",
                    )
                ],
            },
        ),
        migrations.AddField(
            model_name="volume",
            name="servers",
            field=models.ManyToManyField(
                related_name="volumes", through="cluster.VolumeAttachment", to="cluster.server"
            ),
        ),
    ]
