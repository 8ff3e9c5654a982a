"""Settings of the suite: the site's own, on PostgreSQL where a server answers, else on SQLite in memory."""

import os

import psycopg

os.environ.setdefault("SECRET_KEY", "a key that signs nothing but what the tests themselves send about")
os.environ.setdefault("ALLOWED_HOSTS", "testserver,localhost,127.0.0.1")
os.environ.setdefault("WATCHER_HTTPS", "false")
os.environ.setdefault("WATCHER_LOG_LEVEL", "WARNING")
os.environ.setdefault("WATCHER_EMBEDDED_CLOUD_SECONDS", "0")
os.environ.setdefault("WATCHER_ACTION_RETRY_INTERVAL", "0")
POSTGRESQL_URL = os.environ.get("WATCHER_TEST_POSTGRESQL_URL", "postgres://postgres@127.0.0.1:5432/postgres")


def answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=3).close()
    except psycopg.OperationalError:
        return False
    return True


if "DATABASE_URL" not in os.environ:
    os.environ["DATABASE_URL"] = POSTGRESQL_URL if answers(POSTGRESQL_URL) else "sqlite://:memory:"

from watcher_site.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
