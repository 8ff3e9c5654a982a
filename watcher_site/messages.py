"""Texts that are stored for people to read."""

import textwrap

STATUS_MESSAGE_LENGTH = 255


def cut(text: str, length: int = STATUS_MESSAGE_LENGTH) -> str:
    """Return the text, cut at a word so that it and its ellipsis fit into ``length`` characters.

    For messages that we make ourselves: what a person wrote is refused when it is too long, never cut.
    """
    if len(text) <= length:
        return text
    shortened = textwrap.shorten(text, width=length, placeholder="…")
    return shortened if len(shortened) > 1 else text[: length - 1] + "…"
