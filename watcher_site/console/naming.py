"""Names in place of the UUIDs in messages: for lists, where a link for each would cost queries.

The stored messages, and those of the API, keep the UUIDs.
"""

import re
from collections.abc import Iterable, Mapping

from django.apps import apps

from watcher_site.templatetags.console import IDENTIFIER, shortened

# The models that messages mention, the likeliest first: each costs a query while a name is missing.
MENTIONED = ("actions.Action", "cluster.Server", "cluster.ComputeNode", "cluster.Node", "cluster.Cluster")
# A message that was too long may end in the middle of a UUID.
CUT_IDENTIFIER = re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{0,27}…")

Names = Mapping[str, str]


def find_names(texts: Iterable[str], known: Names) -> dict[str, str]:
    """Return the known names and those of further objects that the texts mention by UUID, in at most five queries."""
    names = dict(known)
    wanted = {identifier for text in texts for identifier in IDENTIFIER.findall(text)} - names.keys()
    for label in MENTIONED:
        if not wanted:
            break
        for record in apps.get_model(label)._default_manager.filter(uuid__in=wanted):
            names[str(record.uuid)] = getattr(record, "called", None) or str(record)
        wanted -= names.keys()
    return names


def name_objects(text: str, names: Names) -> str:
    """Return the text with names in place of UUIDs; a UUID without a name is shortened, a cut one is left out."""
    named = IDENTIFIER.sub(lambda match: names.get(match[0], match[0]), text)
    return CUT_IDENTIFIER.sub("…", shortened(named))
