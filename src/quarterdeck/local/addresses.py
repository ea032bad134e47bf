"""Which addresses a call may reach whose destination a user chose.

An address is judged when it is connected to. A name proves nothing: it may resolve to any address,
and to another one at the next call.
"""

import re
import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

Address = IPv4Address | IPv6Address

METADATA = frozenset(
    map(
        ip_address,
        (
            *("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23"),
            *("fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42"),
        ),
    )
)
"""Where clouds answer with credentials, besides link-local addresses."""
_TRANSLATED = tuple(map(ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96")))
"""IPv6 networks whose addresses end with an IPv4 address."""
_NOT_PUBLIC = tuple(map(ip_network, ("fec0::/10", "3fff::/20", "5f00::/16")))
"""Networks that the standard library takes for public, at least in an earlier version."""


class AddressRefusedError(OSError):
    """The address may not be reached. Its text is for people."""


def numeric_address(host: str) -> Address | None:
    """Return the address that a host is, in any form that connecting accepts; None for a name.

    So `127.1`, `0x7f000001` and `2130706433` are 127.0.0.1.
    """
    try:
        found = socket.getaddrinfo(
            host.strip("[]"), None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    except (OSError, UnicodeError):
        return None
    return ip_address(str(found[0][4][0]).partition("%")[0])


def check_address(address: Address | str, private: bool) -> None:
    """Refuse link-local, multicast and metadata addresses, and private ones unless they are allowed.

    Private are all that are not of the public Internet, such as loopback and local networks.

    Raises:
        AddressRefusedError: it may not be reached.
    """
    given = ip_address(address.partition("%")[0]) if isinstance(address, str) else address
    for each in _meanings(given):
        if each.is_link_local or each.is_multicast or each.is_unspecified or each in METADATA:
            raise AddressRefusedError(f"{given} is an address that no call may reach.")
        if not private and not _is_public(each):
            raise AddressRefusedError(
                f"{given} is a private address. The installation's owner may use it, or everybody "
                "with outgoing_private = true in [service] of the configuration file."
            )


def resolve(host: str, port: int, private: bool) -> list[str]:
    """Return the addresses of a host that may be reached. Blocks: call it in a thread.

    Raises:
        AddressRefusedError: none of them may be reached.
        OSError: the name cannot be resolved.
    """
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except UnicodeError as e:
        raise OSError(f"{host} is not a valid name of a host.") from e
    allowed: list[str] = []
    refused: AddressRefusedError | None = None
    for address in dict.fromkeys(str(entry[4][0]) for entry in found):
        try:
            check_address(address, private)
            allowed.append(address)
        except AddressRefusedError as e:
            refused = refused or e
    if not allowed and refused is not None:
        raise refused
    return allowed


def is_own_address(host: str) -> bool:
    """Return whether all addresses of a host are this machine's. Blocks while a name is resolved."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), 0, type=socket.SOCK_STREAM)
        for family, kind, _, _, place in found:
            with socket.socket(family, kind) as probe:
                probe.bind(place)
    except (OSError, UnicodeError):
        return False
    return True


def _is_public(address: Address) -> bool:
    return address.is_global and not any(address in network for network in _NOT_PUBLIC)


def _meanings(address: Address) -> Iterator[Address]:
    """Yield the addresses that packets for this one may arrive at."""
    if isinstance(address, IPv4Address):
        yield address
        return
    embedded = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if int(address) > 1 and any(address in network for network in _TRANSLATED):
        embedded.append(IPv4Address(int(address) & 0xFFFFFFFF))
    yield from (each for each in embedded if each is not None)
    if address.ipv4_mapped is None:
        yield address


def without_password(url: str) -> str:
    """Return an address to show: what is before its `@` may be a password."""
    return re.sub(r"//[^/?#]*@", "//", url)
