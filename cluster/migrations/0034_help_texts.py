import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    # No operation executes a statement, so that none needs the locks of several tables.
    atomic = False

    dependencies = [
        ("cluster", "0033_projects_of_profiles"),
    ]

    operations = [
        migrations.AlterField(
            model_name="balancingmember",
            name="connections",
            field=models.PositiveIntegerField(default=0, help_text="number of open connections"),
        ),
        migrations.AlterField(
            model_name="balancingmember",
            name="port",
            field=models.PositiveIntegerField(help_text="port on which the server accepts connections"),
        ),
        migrations.AlterField(
            model_name="balancingmember",
            name="weight",
            field=models.PositiveIntegerField(
                default=1, help_text="share of new connections relative to other members"
            ),
        ),
        migrations.AlterField(
            model_name="cluster",
            name="desired_capacity",
            field=models.PositiveIntegerField(default=0, help_text="desired number of nodes"),
        ),
        migrations.AlterField(
            model_name="cluster",
            name="init_at",
            field=models.DateTimeField(editable=False, help_text="time at which the creation began", null=True),
        ),
        migrations.AlterField(
            model_name="cluster",
            name="max_size",
            field=models.IntegerField(default=-1, help_text="-1: unlimited"),
        ),
        migrations.AlterField(
            model_name="cluster",
            name="metadata",
            field=models.JSONField(
                blank=True, default=dict, help_text="notes of users about the cluster, not for its servers"
            ),
        ),
        migrations.AlterField(
            model_name="cluster",
            name="next_index",
            field=models.PositiveIntegerField(
                default=1, editable=False, help_text="index of the next node that joins"
            ),
        ),
        migrations.AlterField(
            model_name="cluster",
            name="project_id",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="project of the object; empty: none", max_length=255
            ),
        ),
        migrations.AlterField(
            model_name="cluster",
            name="timeout",
            field=models.PositiveIntegerField(
                default=0, help_text="timeout of its actions in seconds; 0: the default of the site"
            ),
        ),
        migrations.AlterField(
            model_name="cluster",
            name="user_id",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="the user who created the object",
                max_length=255,
            ),
        ),
        migrations.AlterField(
            model_name="computenode",
            name="allocation_units",
            field=models.JSONField(
                editable=False,
                help_text="min_unit, max_unit and step_size of the allocation of a server, by resource",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="computenode",
            name="forced_down",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="whether an operator or a fencing program marked the node as down",
            ),
        ),
        migrations.AlterField(
            model_name="computenode",
            name="reported_at",
            field=models.DateTimeField(
                editable=False,
                help_text="time of the newest notification of the cloud whose content was stored",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="hostaggregate",
            name="reported_at",
            field=models.DateTimeField(
                editable=False,
                help_text="time of the newest notification of the cloud whose content was stored",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="cluster",
            field=models.ForeignKey(
                editable=False,
                help_text="cluster of the node; null: none",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="nodes",
                to="cluster.cluster",
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="data",
            field=models.JSONField(
                db_default={}, default=dict, editable=False, help_text="decisions of policies about the node"
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="generation",
            field=models.PositiveIntegerField(
                db_default=0, default=0, editable=False, help_text="number of replacements of the server"
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="index",
            field=models.IntegerField(
                db_default=-1,
                default=-1,
                editable=False,
                help_text="position in the order in which nodes joined the cluster",
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="init_at",
            field=models.DateTimeField(editable=False, help_text="time at which the creation first began", null=True),
        ),
        migrations.AlterField(
            model_name="node",
            name="metadata",
            field=models.JSONField(
                blank=True, default=dict, help_text="notes of users about the node, not for its server"
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="physical_id",
            field=models.UUIDField(editable=False, help_text="UUID of the server", null=True),
        ),
        migrations.AlterField(
            model_name="node",
            name="project_id",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="project of the object; empty: none", max_length=255
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="role",
            field=models.CharField(
                blank=True, default="", help_text="purpose of the node, a free text", max_length=255
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="tainted",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="whether the node is removed first when the cluster is reduced",
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="unhealthy_reason",
            field=models.CharField(
                editable=False,
                help_text="reason for which a user marked the node unhealthy, regardless of its server; null: not marked",
                max_length=255,
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="user_id",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="the user who created the object",
                max_length=255,
            ),
        ),
        migrations.AlterField(
            model_name="policybinding",
            name="last_op",
            field=models.DateTimeField(
                editable=False, help_text="time of the last scaling to which the policy applied", null=True
            ),
        ),
        migrations.AlterField(
            model_name="policybinding",
            name="priority",
            field=models.PositiveIntegerField(help_text="policies with smaller values are checked first"),
        ),
        migrations.AlterField(
            model_name="profile",
            name="metadata",
            field=models.JSONField(
                blank=True, default=dict, help_text="notes of users about the profile, not for its servers"
            ),
        ),
        migrations.AlterField(
            model_name="profile",
            name="project_id",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="project of the object; empty: none", max_length=255
            ),
        ),
        migrations.AlterField(
            model_name="server",
            name="cloud_updated_at",
            field=models.DateTimeField(
                editable=False, help_text="time of the last change in the cloud, by the cloud's clock", null=True
            ),
        ),
        migrations.AlterField(
            model_name="server",
            name="destination",
            field=models.ForeignKey(
                help_text="target of the current migration; the server reserves capacity on both nodes until its end",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="arriving_servers",
                to="cluster.computenode",
            ),
        ),
        migrations.AlterField(
            model_name="server",
            name="fault",
            field=models.JSONField(
                editable=False, help_text="reason for ERROR or PENDING, in Nova's format", null=True
            ),
        ),
        migrations.AlterField(
            model_name="server",
            name="flavor",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="name of the current flavor", max_length=255
            ),
        ),
        migrations.AlterField(
            model_name="server",
            name="given_up_at",
            field=models.DateTimeField(
                editable=False,
                help_text="time at which the wait for capacity was ended, for clouds that cannot store it",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="server",
            name="image",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="id of the image from which the server was built",
                max_length=255,
            ),
        ),
        migrations.AlterField(
            model_name="server",
            name="launched_at",
            field=models.DateTimeField(
                editable=False, help_text="time at which the server first ran; null: never, or unknown", null=True
            ),
        ),
        migrations.AlterField(
            model_name="server",
            name="new_flavor",
            field=models.ForeignKey(
                help_text="target of the current resize; the server reserves the larger amounts until its end",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="cluster.flavor",
            ),
        ),
        migrations.AlterField(
            model_name="server",
            name="reported_at",
            field=models.DateTimeField(
                editable=False,
                help_text="time of the newest notification of the cloud whose content was stored",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="server",
            name="token",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="token of the creation: a repeated creation with the same token finds this server",
                max_length=64,
            ),
        ),
        migrations.AlterField(
            model_name="server",
            name="unhealthy_reason",
            field=models.CharField(
                editable=False,
                help_text="reason for which a user marked the server unhealthy; null: not marked",
                max_length=255,
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="server",
            name="user_id",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="the user who requested the server", max_length=255
            ),
        ),
        migrations.AlterField(
            model_name="serverwait",
            name="had_host",
            field=models.BooleanField(
                db_default=False, default=False, help_text="whether a compute node had capacity at the last search"
            ),
        ),
        migrations.AlterField(
            model_name="serverwait",
            name="next_search",
            field=models.DateTimeField(
                help_text="earliest time of the next search, unless a compute node has capacity before", null=True
            ),
        ),
        migrations.AlterField(
            model_name="serverwait",
            name="searches",
            field=models.PositiveIntegerField(
                db_default=0, default=0, help_text="number of searches for a compute node"
            ),
        ),
        migrations.AlterField(
            model_name="stack",
            name="revision",
            field=models.PositiveIntegerField(
                default=0,
                editable=False,
                help_text="number of operations that began; actions that were planned before the last one are stale",
            ),
        ),
        migrations.AlterField(
            model_name="stack",
            name="root",
            field=models.ForeignKey(
                editable=False,
                help_text="root of the tree; null: the stack is a root",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="descendants",
                to="cluster.stack",
            ),
        ),
        migrations.AlterField(
            model_name="stack",
            name="template",
            field=models.JSONField(default=dict, help_text="the template that describes the desired resources"),
        ),
        migrations.AlterField(
            model_name="stack",
            name="timeout_mins",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="timeout of an operation in minutes, without suspended time; null: the default of the site",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="stack",
            name="trust",
            field=models.ForeignKey(
                editable=False,
                help_text="trust by which the servers are created in the project; only of root stacks",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="stacks",
                to="cluster.trust",
            ),
        ),
        migrations.AlterField(
            model_name="stack",
            name="user_id",
            field=models.CharField(
                blank=True, default="", help_text="the user who requested the stack", max_length=255
            ),
        ),
        migrations.AlterField(
            model_name="stackresource",
            name="depends_on",
            field=models.JSONField(default=list, help_text="names of the resources that are created before this one"),
        ),
        migrations.AlterField(
            model_name="stackresource",
            name="former_physical_id",
            field=models.CharField(
                editable=False,
                help_text="physical_id of the replaced counterpart, until that is deleted",
                max_length=255,
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="stackresource",
            name="generation",
            field=models.PositiveIntegerField(default=0, editable=False, help_text="number of replacements"),
        ),
        migrations.AlterField(
            model_name="stackresource",
            name="made_at",
            field=models.DateTimeField(
                editable=False, help_text="time at which the current counterpart was created", null=True
            ),
        ),
        migrations.AlterField(
            model_name="stackresource",
            name="physical_id",
            field=models.CharField(
                editable=False, help_text="UUID of the server or of the nested stack", max_length=255, null=True
            ),
        ),
        migrations.AlterField(
            model_name="stackresource",
            name="properties",
            field=models.JSONField(
                default=dict, help_text="properties in the template of the last creation or update"
            ),
        ),
        migrations.AlterField(
            model_name="synchronization",
            name="project",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="id of the project of the site's login",
                max_length=255,
            ),
        ),
        migrations.AlterField(
            model_name="synchronization",
            name="user",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="id of the user of the site's login", max_length=255
            ),
        ),
        migrations.AlterField(
            model_name="trust",
            name="failed_at",
            field=models.DateTimeField(help_text="time at which Keystone refused the trust", null=True),
        ),
        migrations.AlterField(
            model_name="trust",
            name="keystone_id",
            field=models.CharField(help_text="id of the trust in Keystone", max_length=255),
        ),
        migrations.AlterField(
            model_name="trust",
            name="roles",
            field=models.JSONField(default=list, help_text="names of the delegated roles"),
        ),
        migrations.AlterField(
            model_name="trust",
            name="used_at",
            field=models.DateTimeField(
                default=django.utils.timezone.now, help_text="time of the last request that used the trust"
            ),
        ),
        migrations.AlterField(
            model_name="trust",
            name="user_id",
            field=models.CharField(help_text="id of the trustor in Keystone", max_length=255),
        ),
        migrations.AlterField(
            model_name="volume",
            name="cloud_updated_at",
            field=models.DateTimeField(
                editable=False, help_text="time of the last change in the cloud, by the cloud's clock", null=True
            ),
        ),
        migrations.AlterField(
            model_name="volume",
            name="destination",
            field=models.ForeignKey(
                help_text="target of the current migration; the volume reserves capacity in both pools until its end",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="arriving_volumes",
                to="cluster.pool",
            ),
        ),
        migrations.AlterField(
            model_name="volume",
            name="has_snapshots",
            field=models.BooleanField(default=False, help_text="whether the volume has snapshots"),
        ),
        migrations.AlterField(
            model_name="volume",
            name="reported_at",
            field=models.DateTimeField(
                editable=False,
                help_text="time of the newest notification of the cloud whose content was stored",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="volume",
            name="snapshot_id",
            field=models.CharField(
                blank=True,
                default="",
                help_text="id of the snapshot from which the volume was created",
                max_length=255,
            ),
        ),
    ]
