"""What happens in the cloud, for higher apps to hear of."""

from django.dispatch import Signal

server_pending = Signal()
"""A server found no host, and waits for room; sent after the commit, and not at all if the process dies before.

Whoever listens must look into the table now and then as well.
"""
