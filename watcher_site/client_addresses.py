"""The address of a client, behind trusted proxies or not."""

from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def parse_address(text: str) -> Address | None:
    """Return an address; None for a text that is none. An IPv4 address in an IPv6 one is an IPv4 address."""
    try:
        address = ip_address(text.strip())
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_trusted(text: str, trusted: Collection[Network]) -> bool:
    """Say whether an address belongs to one of the networks of trusted proxies."""
    address = parse_address(text) if trusted else None
    return address is not None and any(address in network for network in trusted)


def client_address(peer: str, forwarded: str, trusted: Collection[Network]) -> str:
    """Return the address of the client of a request.

    Each proxy appends the address of its own peer to ``X-Forwarded-For``. The last one that no trusted proxy has is
    the client's: whatever stands before it was sent by the client itself.

    Args:
        peer: the address that the connection comes from.
        forwarded: the value of ``X-Forwarded-For``, or nothing.
        trusted: the networks of the proxies.
    """
    hops = forwarded.split(",") if forwarded else []
    while hops and is_trusted(peer, trusted):
        address = parse_address(hops.pop())
        if address is None:
            break
        peer = str(address)
    return peer
