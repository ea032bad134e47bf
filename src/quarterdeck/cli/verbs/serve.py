"""`qd serve`: composes the service of its drivers and runs it in the foreground."""

import asyncio
import gc
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from quarterdeck.cli.admission import admission_options, identity_settings
from quarterdeck.cli.agents_here import own_agents
from quarterdeck.cli.errors import NotDone, UsageFault
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say
from quarterdeck.cli.source_hosts import hosts_settings
from quarterdeck.local.home import Home, find_home

if TYPE_CHECKING:
    from quarterdeck.service.hosts.settings import HostsSettings
    from quarterdeck.service.identity.settings import IdentitySettings
    from quarterdeck.service.listeners import Bound, Listener

UNIX = "unix:"
DATABASE_VARIABLE = "QUARTERDECK_DATABASE_URL"


@click.command(name="serve")
@click.option(
    "--listen",
    "addresses",
    metavar="unix:PATH|HOST:PORT",
    multiple=True,
    help="Listen here too; may be given several times. The home's own socket is always there.",
)
@click.option(
    "--database-url",
    metavar="URL",
    envvar=DATABASE_VARIABLE,
    help="Keep everything in postgresql://USER@HOST/NAME instead of the home's SQLite file. "
    f"Every user of this machine sees arguments: give a password in {DATABASE_VARIABLE}, or in "
    "PostgreSQL's own password file.",
)
@click.option(
    "--advertise",
    metavar="URL",
    help="Where other services over the same database reach this one: http://HOST:PORT, or "
    "unix:PATH on one host. Without it the first --listen address, else the home's own socket.",
)
@admission_options
@click.option("--background", is_flag=True, hidden=True, help="Started by qd: say nothing.")
@common_options
def command(
    common: Common,
    addresses: Sequence[str],
    database_url: str | None,
    advertise: str | None,
    background: bool,
    **admission: Any,
) -> None:
    """Run the service in the foreground until Ctrl+C or SIGTERM; engines outlive it.

    Over TCP every request needs a key: qd auth key prints one. With --json one line is printed when
    the service is ready; the log goes to stderr. A PostgreSQL database may serve several services,
    each with a home of its own and a copy of one master.key; each passes requests on to the one
    that has the replica.
    """
    if common.profile:
        raise UsageFault("--profile names a service elsewhere; serve runs one here.")
    home = find_home()
    listeners = [_own(home), *map(parse_address, addresses)]
    if not background:
        _warn(addresses)
    settings = (identity_settings(admission), hosts_settings())
    own_agents()  # what is wrong with them is told before anything is started
    _check_url(advertise)
    _run(home, listeners, database_url or None, settings, advertise, common.json, background)


def _run(
    home: Home,
    listeners: "list[Listener]",
    database_url: str | None,
    settings: "tuple[IdentitySettings, HostsSettings]",
    advertise: str | None,
    as_json: bool,
    background: bool,
) -> None:
    import uvloop

    from quarterdeck.cli.compose import serve_home
    from quarterdeck.service.errors import ServiceError
    from quarterdeck.service.logs import configure_logging

    def ready(bound: "list[Bound]") -> None:
        # What was loaded stays. To look through all of it again, once in a while, holds every
        # request up for a tenth of a second.
        gc.freeze()
        where = [address_text(one.address) for one in bound]
        if as_json:
            put_json({"ready": True, "listening": where})
        if not background:
            say(f"Ready on {', '.join(where)}.")

    configure_logging()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            serving = (home, listeners, ready, database_url, *settings, advertise, own_agents())
            runner.run(serve_home(*serving))
    except ServiceError as e:
        raise NotDone(str(e)) from e


def _own(home: Home) -> "Listener":
    from quarterdeck.service.listeners import UnixListener

    return UnixListener(home.socket)


def parse_address(text: str) -> "Listener":
    """A listener from `unix:PATH`, `HOST:PORT` or `[IPv6]:PORT`.

    Raises:
        UsageFault: it is neither.
    """
    from quarterdeck.service.listeners import TcpListener, UnixListener

    if text.startswith(UNIX) and (path := text.removeprefix(UNIX)):
        return UnixListener(Path(path).expanduser().absolute())
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (host and colon and port.isdecimal() and int(port) <= 65_535):
        raise UsageFault(f"{text!r} is no address to listen on.", "Give unix:PATH or HOST:PORT.")
    return TcpListener(host, int(port))


def _check_url(advertise: str | None) -> None:
    if advertise is None:
        return
    scheme, _, place = advertise.partition(":")
    try:
        parts = urlsplit(advertise)
        web = scheme in ("http", "https") and parts.hostname and parts.path in ("", "/")
    except ValueError:
        web = False
    if not (web or (scheme == "unix" and place.startswith("/"))):
        raise UsageFault(
            f"{advertise!r} is no address of a service.", "Give http://HOST:PORT or unix:/PATH."
        )


def address_text(address: Path | tuple[str, int]) -> str:
    """An address as a client is told it."""
    if isinstance(address, Path):
        return f"{UNIX}{address}"
    host, port = address
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _warn(addresses: Sequence[str]) -> None:
    for text in addresses:
        host = text.rpartition(":")[0].strip("[]")
        if not text.startswith(UNIX) and not _is_loopback(host):
            say(f"qd: {text} is reached from other machines, and the key travels unencrypted.")
            say("    Put a TLS proxy or an SSH tunnel before it.")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
