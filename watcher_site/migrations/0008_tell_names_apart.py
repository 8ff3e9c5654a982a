"""Give subscriptions whose names differ in letter case alone a number: from now on, that makes no difference."""

from typing import Any

from django.db import migrations

LENGTH = 255


def tell_apart(apps: Any, schema_editor: Any) -> None:
    taken: set[str] = set()
    present = apps.get_model("watcher_site", "Subscription").objects.filter(deleted_at=None)
    for key, name in list(present.order_by("pk").values_list("pk", "name")):
        new, number = name, 1
        while new.upper() in taken:
            number += 1
            new = f"{name[: LENGTH - 8]} ({number})"
        taken.add(new.upper())
        if new != name:
            present.filter(pk=key).update(name=new)


class Migration(migrations.Migration):
    dependencies = [
        ("watcher_site", "0007_lines_without_index"),
    ]

    operations = [migrations.RunPython(tell_apart, migrations.RunPython.noop)]
