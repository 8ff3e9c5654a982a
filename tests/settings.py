"""Settings of the suite: the site's own, on the database that WATCHER_TEST_DATABASE names.

Without it that is DATABASE_URL, else PostgreSQL where a server answers, else SQLite.
"""

import os

import psycopg
from django.core.exceptions import ImproperlyConfigured

os.environ.setdefault("SECRET_KEY", "a key that signs nothing but what the tests themselves send about")
os.environ.setdefault("ALLOWED_HOSTS", "testserver,localhost,127.0.0.1")
os.environ.setdefault("WATCHER_HTTPS", "false")
os.environ.setdefault("WATCHER_LOG_LEVEL", "WARNING")
os.environ.setdefault("WATCHER_EMBEDDED_CLOUD_SECONDS", "0")
os.environ.setdefault("WATCHER_ACTION_RETRY_INTERVAL", "0")
DATABASE = os.environ.get("WATCHER_TEST_DATABASE", "")
# The test database itself is in a file: see `tests.conftest`.
SQLITE_URL = "sqlite://:memory:"
POSTGRESQL_URL = os.environ.get("WATCHER_TEST_POSTGRESQL_URL", "postgres://postgres@127.0.0.1:5432/postgres")


def answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=3).close()
    except psycopg.OperationalError:
        return False
    return True


if DATABASE not in {"", "postgresql", "sqlite"}:
    raise ImproperlyConfigured("WATCHER_TEST_DATABASE: must be postgresql or sqlite.")
# Processes that tests start read these settings too, with the URL of their test's database: it stays.
if DATABASE and not os.environ.get("DATABASE_URL", "").startswith(DATABASE.removesuffix("ql")):
    os.environ["DATABASE_URL"] = SQLITE_URL if DATABASE == "sqlite" else POSTGRESQL_URL
elif "DATABASE_URL" not in os.environ:
    os.environ["DATABASE_URL"] = POSTGRESQL_URL if answers(POSTGRESQL_URL) else SQLITE_URL

from watcher_site.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
if DATABASES["default"]["NAME"] == ":memory:":  # noqa: F405
    # The server of browser tests, started before the test database is made, would share one connection among threads.
    # Nothing may connect before: SQLite makes a file of any name, but no folder.
    DATABASES["default"]["NAME"] = "/no such folder/the test database is not made yet"  # noqa: F405
# Each client of a test builds the middleware again: listing every static file takes longer than most requests do.
WHITENOISE_AUTOREFRESH = True
# The live server finds static files itself, by their own names.
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
