"""The URLs of the pages of objects, for lists with hundreds of links."""

from functools import cache
from typing import Any
from uuid import UUID

from django.urls import get_script_prefix, reverse

PLACEHOLDER = UUID(int=0)


def page_address(page: str, uuid: Any) -> str:
    """Return the address of the page of an object, as ``reverse`` does, which takes much longer."""
    before, after = split_address(page, get_script_prefix())
    return f"{before}{uuid}{after}"


@cache
def split_address(page: str, script_prefix: str) -> tuple[str, str]:
    """Return the parts of a page's address before and after the UUID.

    The prefix is part of what `reverse` returns.
    """
    before, _, after = reverse(page, args=[PLACEHOLDER]).partition(str(PLACEHOLDER))
    return before, after
