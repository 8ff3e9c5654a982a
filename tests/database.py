"""The database of the suite, and its URL for other processes."""

from urllib.parse import quote

from django.db import connection


def is_sqlite() -> bool:
    return connection.vendor == "sqlite"


def database_url() -> str:
    """Return the URL of the test database, for processes that a test starts."""
    database = connection.settings_dict
    if is_sqlite():
        return f"sqlite:///{database['NAME']}"
    user, password = quote(database["USER"]), quote(database["PASSWORD"])
    return f"postgres://{user}:{password}@{database['HOST']}:{database['PORT']}/{quote(database['NAME'])}"
