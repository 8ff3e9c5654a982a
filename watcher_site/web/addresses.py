"""Fast URLs of pages, for lists with hundreds of links and for the navigation, which every page has."""

from functools import cache
from typing import Any
from uuid import UUID

from django.urls import get_script_prefix, reverse

PLACEHOLDER = UUID(int=0)


def page_address(page: str, uuid: Any) -> str:
    """Return the URL of the page of an object, much faster than ``reverse``."""
    before, after = split_address(page, get_script_prefix())
    return f"{before}{uuid}{after}"


def fixed_address(page: str) -> str:
    """Return the URL of a page without arguments, much faster than ``reverse``."""
    return find_fixed_address(page, get_script_prefix())


@cache
def find_fixed_address(page: str, script_prefix: str) -> str:
    """Return the result of `reverse`, of which the script prefix is a part."""
    return reverse(page)


@cache
def split_address(page: str, script_prefix: str) -> tuple[str, str]:
    """Return the parts of a page's URL before and after the UUID.

    The script prefix is part of the result of `reverse`.
    """
    before, _, after = reverse(page, args=[PLACEHOLDER]).partition(str(PLACEHOLDER))
    return before, after
