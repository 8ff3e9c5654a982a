"""The test databases: copies of one that was migrated once, because migrations take longer than most tests.

The original stays for later runs, until the code or the packages change.
"""

import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from tests.clearing import disable_synchronous_commit, save_migrated_rows
from tests.database import is_sqlite

ROOT = Path(__file__).parent.parent
# The files that determine the tables and the rows of a migrated database.
FOLDERS = ["actions", "audits", "cluster", "plans", "watcher_site"]
FILES = [".ci/requirements/development.txt", "tests/clearing.py", "tests/migrated_database.py", "tests/settings.py"]
# The lock of all test processes, and SQLite's originals.
LOCK, SUFFIX = "lock", ".sqlite3"


def make_database(name: str, folder: Path) -> None:
    """Make a database, and make it the current one.

    Args:
        name: the name of a database on the server, or the path of SQLite's file.
        folder: a folder that is kept, for the lock and for SQLite's original.
    """
    server = settings.DATABASES["default"]["NAME"]
    with (folder / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_sqlite():
            shutil.copy(find_file(folder), name)
        else:
            copy_on_server(find_on_server(server), name)
    use(name)


def drop_database(name: str) -> None:
    connection.close()
    if is_sqlite():
        Path(name).unlink()
    else:
        execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)


@contextmanager
def empty_database(folder: Path) -> Iterator[None]:
    """Make an empty database the current one, for tests of migrations: migrating back takes longer than forward."""
    former = connection.settings_dict["NAME"]
    name = str(folder / f"empty{SUFFIX}") if is_sqlite() else f"{former}_empty"
    if not is_sqlite():
        execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)
        execute("CREATE DATABASE {}", name)
    use(name)
    disable_synchronous_commit()
    try:
        yield
    finally:
        drop_database(name)
        use(former)


def migrate_without_squashes(*targets: tuple[str, str]) -> Any:
    """Migrate an empty database to these migrations, without squashed ones, and return the models of this state."""
    executor = MigrationExecutor(connection)
    executor.loader.replace_migrations = False
    executor.loader.build_graph()
    executor.migrate(list(targets))
    return executor.loader.project_state(list(targets)).apps


def newest_migration(app: str) -> tuple[str, str]:
    """Return the newest migration of an app, in place of the squashed one that replaces it."""
    loader = MigrationLoader(connection)
    (newest,) = loader.graph.leaf_nodes(app)
    return (loader.graph.nodes[newest].replaces or [newest])[-1]


def find_file(folder: Path) -> Path:
    """Return SQLite's original. It is migrated if there is none of this code."""
    original = folder / f"{fingerprint()}{SUFFIX}"
    if not original.exists():
        for former in folder.glob(f"*{SUFFIX}*"):
            former.unlink()
        new = folder / f"new{SUFFIX}"
        migrate(str(new))
        new.rename(original)
    return original


def find_on_server(name: str) -> str:
    """Return the name of PostgreSQL's original. It is migrated if there is none of this code."""
    prefix = f"migrated_{name[:30]}_"
    original = f"{prefix}{fingerprint()}"
    existing = {row[0] for row in execute("SELECT datname FROM pg_database")}
    if original not in existing:
        for former in existing:
            if former.startswith(prefix):
                execute("DROP DATABASE {} WITH (FORCE)", former)
        new = f"{prefix}new"
        execute("CREATE DATABASE {}", new)
        migrate(new)
        execute("ALTER DATABASE {} RENAME TO {}", new, original)
    return original


def copy_on_server(original: str, name: str) -> None:
    execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)
    execute("CREATE DATABASE {} TEMPLATE {}", name, original)


def execute(statement: str, *names: str) -> list[tuple[str]]:
    """Execute a statement outside of the test database, and return its rows."""
    with connection._nodb_cursor() as cursor:
        quoted = [connection.ops.quote_name(name) for name in names]
        cursor.execute(statement.format(*quoted))
        return list(cursor.fetchall()) if cursor.description else []


def use(name: str) -> None:
    connection.close()
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name


def migrate(name: str) -> None:
    """Migrate an empty database, and copy its rows."""
    use(name)
    call_command("migrate", verbosity=0)
    save_migrated_rows()
    connection.close()


def fingerprint() -> str:
    """Return a text that depends on the code, the packages, the interpreter and the settings in the environment."""
    found = sha256(sys.version.encode())
    paths = [ROOT / file for file in FILES]
    paths += [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    for path in paths:
        found.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    for name, value in sorted(os.environ.items()):
        if name.startswith("WATCHER_") and not name.startswith(("WATCHER_TEST_", "WATCHER_REQUIRE_")):
            found.update(f"{name}={value}\0".encode())
    return found.hexdigest()[:16]
