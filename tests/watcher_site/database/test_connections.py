"""PostgreSQL does not compile statements of the site just in time."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection


def setting() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW jit")
            (value,) = cursor.fetchone()
            return str(value)
    finally:
        connection.close()


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_new_connection_has_jit_disabled() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(setting).result() == "off"
