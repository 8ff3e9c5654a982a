"""The address of a client, behind trusted proxies or not."""

from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def parse_address(text: str) -> Address | None:
    """Return the address in a text, or None if it is invalid; an IPv4 address mapped into IPv6 is returned as IPv4."""
    try:
        address = ip_address(text.strip())
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_trusted(text: str, trusted: Collection[Network]) -> bool:
    """Return whether an address belongs to one of the networks of trusted proxies."""
    address = parse_address(text) if trusted else None
    return address is not None and any(address in network for network in trusted)


def client_address(peer: str, forwarded: str, trusted: Collection[Network]) -> str:
    """Return the address of the client of a request.

    Each proxy appends the address of its own peer to ``X-Forwarded-For``. The last one that is not
    a trusted proxy's is the client's; those before it were sent by the client itself.

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
