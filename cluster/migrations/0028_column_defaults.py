from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("cluster", "0027_allocation_units"),
    ]

    operations = [
        migrations.AlterField(
            model_name="computenode",
            name="power_state",
            field=models.CharField(
                choices=[("on", "On"), ("off", "Off")], db_default="on", default="on", max_length=20
            ),
        ),
        migrations.AlterField(
            model_name="computenode",
            name="zone",
            field=models.CharField(
                db_default="nova", default="nova", help_text="the availability zone", max_length=255
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="data",
            field=models.JSONField(
                db_default={}, default=dict, editable=False, help_text="what policies decided about it"
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="generation",
            field=models.PositiveIntegerField(
                db_default=0, default=0, editable=False, help_text="how often its server was replaced"
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="index",
            field=models.IntegerField(
                db_default=-1, default=-1, editable=False, help_text="in the order of joining its cluster"
            ),
        ),
        migrations.AlterField(
            model_name="node",
            name="tainted",
            field=models.BooleanField(
                db_default=False, default=False, help_text="it is the first to go when its cluster shrinks"
            ),
        ),
        migrations.AlterField(
            model_name="server",
            name="flavor",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="the name of the flavor it has", max_length=255
            ),
        ),
        migrations.AlterField(
            model_name="server",
            name="image",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="the id of what it was built from", max_length=255
            ),
        ),
        migrations.AlterField(
            model_name="server",
            name="operation_owner",
            field=models.CharField(blank=True, db_default="", default="", editable=False, max_length=64),
        ),
        migrations.AlterField(
            model_name="server",
            name="token",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="of whoever had it created: there is one of each",
                max_length=64,
            ),
        ),
        migrations.AlterField(
            model_name="server",
            name="user_id",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="of whoever asked for it", max_length=255
            ),
        ),
        migrations.AlterField(
            model_name="volume",
            name="operation_owner",
            field=models.CharField(blank=True, db_default="", default="", editable=False, max_length=64),
        ),
    ]
