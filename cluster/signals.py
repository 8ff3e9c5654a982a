"""Django signals for events in the cloud, which apps above this one receive."""

from django.dispatch import Signal

server_pending = Signal()
"""A server found no host and is PENDING; sent after the commit, and not at all if the process dies before.

Receivers must read the table at intervals as well.
"""
