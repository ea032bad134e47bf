"""`qd serve`, `qd status` and `qd stop`: run, inspect and stop the service."""

import asyncio
import gc
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from quarterdeck.cli.agents import own_agents, sandbox_programs
from quarterdeck.cli.background import stop_service
from quarterdeck.cli.containers import placement, sandboxes_table
from quarterdeck.cli.errors import FailedError, NoServiceError, UsageError
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import (
    last_seen_text,
    print_json,
    print_message,
    print_text,
    services_text,
)
from quarterdeck.cli.settings import admission_options, admission_settings, hosts_settings
from quarterdeck.cli.target import Target, find_target, own_home
from quarterdeck.local.home import Home

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.service.fleet.settings import FleetSettings
    from quarterdeck.service.hosts.settings import HostsSettings
    from quarterdeck.service.identity.tokens import IdentitySettings
    from quarterdeck.service.listeners import Bound, Listener
    from quarterdeck.wire.agents import OwnAgent


async def serve_home(
    home: Home,
    listeners: "Sequence[Listener]",
    ready: "Callable[[list[Bound]], None]",
    database_url: str | None,
    identity: "IdentitySettings",
    fleet: "FleetSettings",
    outgoing_private: bool | None,
    outgoing_proxy: bool | None,
    hosts: "HostsSettings",
    advertise: str | None,
    agents: "Mapping[str, OwnAgent]",
    new_key: bool = False,
) -> None:
    """Build the service with its sandbox driver and agents, and run it until it is stopped.

    Args:
        database_url: PostgreSQL; without it the home's SQLite file is used.
        outgoing_private: whether calls may reach private addresses that users name.
        outgoing_proxy: whether calls to what users name go through the environment's proxies; by default
            those of git alone do.
        agents: the person's own agents.
        new_key: whether to start without the values of a master key that was lost.

    Raises:
        ServiceError: it cannot start; the text has the next step.
    """
    from quarterdeck.agents.catalog import own_keys
    from quarterdeck.cli.mcp_http import HttpTools
    from quarterdeck.sandboxes.process import ProcessDriver
    from quarterdeck.sandboxes.scope import enter_scope
    from quarterdeck.service.hosts.settings import login_of
    from quarterdeck.service.server import serve as serve_requests
    from quarterdeck.service.start import build_service, open_service

    await enter_scope(home)
    driver = ProcessDriver(
        home,
        wanted=lambda: sandbox_programs(agents),
        login=lambda url: login_of(hosts, url),
        outgoing_private=outgoing_private is not False,
        outgoing_proxy=outgoing_proxy is not False,
    )
    async with (
        driver.kept_ready(),
        placement(home, driver, agents) as placed,
        open_service(
            home,
            driver,
            placed.agents,
            database_url,
            identity,
            hosts,
            own_agents=agents,
            own_keys=lambda: own_keys(os.environ),
            outgoing_private=outgoing_private,
            outgoing_proxy=bool(outgoing_proxy),
            new_key=new_key,
            others=placed.others,
            switchboard=placed.switchboard,
        ) as context,
    ):
        await driver.end_abandoned()  # they write where this service is going to
        service = build_service(context, fleet, tools=HttpTools(home))
        async with driver.watching_disk(service.fleet.tell):
            await serve_requests(service, listeners, ready, advertise, placed.inside)


UNIX = "unix:"
DATABASE_VARIABLE = "QUARTERDECK_DATABASE_URL"


@click.command(name="serve")
@click.option(
    "--listen",
    "addresses",
    metavar="unix:PATH|HOST:PORT",
    multiple=True,
    help="Also listen here (repeatable). The home's own socket is always there.",
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
@click.option(
    "--new-key",
    is_flag=True,
    help="Make a new master key for one that was lost. What was encrypted with it is removed: "
    "variables, files and MCP servers of environments, credentials, notification targets, "
    "addresses of webhooks.",
)
@admission_options
@click.option("--background", is_flag=True, hidden=True, help="Started by qd: print nothing.")
@common_options
def serve(
    common: Common,
    addresses: Sequence[str],
    database_url: str | None,
    advertise: str | None,
    new_key: bool,
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
        raise UsageError("--profile names a remote service; serve starts one on this machine.")
    home = own_home()
    listeners = [_home_listener(home), *map(parse_address, addresses)]
    if not background:
        _warn_about_exposure(addresses)
    settings = (*admission_settings(admission), hosts_settings())
    own_agents()  # report errors in them before anything is started
    sandboxes_table()
    _check_url(advertise)
    _run_service(
        home, listeners, database_url or None, settings, advertise, new_key, common.json, background
    )


def _run_service(
    home: Home,
    listeners: "list[Listener]",
    database_url: str | None,
    settings: "tuple[IdentitySettings, FleetSettings, bool | None, bool | None, HostsSettings]",
    advertise: str | None,
    new_key: bool,
    as_json: bool,
    background: bool,
) -> None:
    import uvloop

    from quarterdeck.sandboxes.errors import SandboxError
    from quarterdeck.service.errors import ServiceError, StorageError
    from quarterdeck.service.server import configure_logging

    def ready(bound: "list[Bound]") -> None:
        # Loaded objects stay. Traversing all of them again in a collection would delay every
        # request by a tenth of a second.
        gc.freeze()
        where = [address_text(listener.address) for listener in bound]
        if as_json:
            print_json({"ready": True, "listening": where})
        if not background:
            print_message(f"Ready on {', '.join(where)}.")

    configure_logging()
    # Sandboxes, which have another user where root runs the service, read mirrors and generated files.
    # What is private has a mode of its own. The group's bit stays: a push to a path may be for others of it.
    os.umask(0o002 | os.umask(0o022) & 0o020)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            serving = (home, listeners, ready, database_url, *settings, advertise, own_agents())
            serving = (*serving, new_key)
            runner.run(serve_home(*serving))
    except StorageError as e:
        raise FailedError(e.for_operator()) from e
    except ServiceError as e:
        raise FailedError(str(e)) from e
    except SandboxError as e:
        raise FailedError(str(e), e.details) from e


def _home_listener(home: Home) -> "Listener":
    from quarterdeck.service.listeners import UnixListener

    return UnixListener(home.socket)


def parse_address(text: str) -> "Listener":
    """Return a listener from `unix:PATH`, `HOST:PORT` or `[IPv6]:PORT`.

    Raises:
        UsageError: it is none of these.
    """
    from quarterdeck.service.listeners import TcpListener, UnixListener

    if text.startswith(UNIX) and (path := text.removeprefix(UNIX)):
        return UnixListener(Path(path).expanduser().absolute())
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (host and colon and port.isdecimal() and int(port) <= 65_535):
        raise UsageError(f"{text!r} is not a valid listen address.", "Give unix:PATH or HOST:PORT.")
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
        raise UsageError(
            f"{advertise!r} is not a valid service URL.", "Give http://HOST:PORT or unix:/PATH."
        )


def address_text(address: Path | tuple[str, int]) -> str:
    """Return an address as clients use it."""
    if isinstance(address, Path):
        return f"{UNIX}{address}"
    host, port = address
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _warn_about_exposure(addresses: Sequence[str]) -> None:
    from quarterdeck.service.listeners import is_loopback

    for text in addresses:
        host = text.rpartition(":")[0].strip("[]")
        if not text.startswith(UNIX) and not is_loopback(host):
            print_message(
                f"qd: {text} is reached from other machines, and the key travels unencrypted."
            )
            print_message("    Put a TLS proxy or an SSH tunnel before it.")


@click.command(name="stop")
@common_options
def stop(common: Common) -> None:
    """Stop the embedded service. Engines, agents and terminals keep running; the next service reconnects."""
    target = find_target(common.profile)
    if not target.embedded:
        raise UsageError(
            f"{target.endpoint} is not the embedded service.", "Stop it where it runs."
        )
    pid = asyncio.run(stop_service(target.home))
    if common.json:
        print_json({"stopped": pid is not None, "pid": pid})
    if pid is None:
        print_message("No service ran.")
    else:
        print_message("Service stopped. Agents keep running; qd reconnects to them.")


@click.command(name="status")
@common_options
def status(common: Common) -> None:
    """Show whether the service is running, its address and its contents. Exit code 3 when it is not."""
    target = find_target(common.profile)
    report = asyncio.run(_status(target))
    if common.json:
        print_json(report)
    else:
        _print_status(report)
    if not report["answers"]:
        raise NoServiceError(
            f"No service answers at {target.endpoint}.",
            "Start it with: qd serve." if target.embedded else "Check the address and the line.",
        )
    if report["problem"]:
        raise FailedError(report["problem"], "See the service's log; it continues by itself.")


async def _status(target: Target) -> dict[str, Any]:
    from quarterdeck.client.errors import LinkError, UnavailableError

    report: dict[str, Any] = {
        "target": target.name,
        "endpoint": target.endpoint,
        "home": str(target.home.root) if target.embedded else None,
        "answers": False,
        "problem": None,
        "version": None,
        "latency_ms": None,
        "replicas": None,
        "home_id": None,
        "services": None,
    }
    async with target.client() as client:
        try:
            await _add_health(client, report, with_key=target.current_key() is not None)
        except LinkError:
            return report
        except UnavailableError as e:
            report["answers"], report["problem"] = True, e.message
    return report


async def _add_health(client: "Client", report: dict[str, Any], with_key: bool) -> None:
    await client.health.get()
    start = perf_counter()
    health = await client.health.get()
    report["latency_ms"] = round((perf_counter() - start) * 1000, 2)
    report["answers"] = True
    report["version"] = health.version
    if with_key:
        await _add_services(client, report)
        report["replicas"] = Counter([replica.status async for replica in client.replicas.all()])


async def _add_services(client: "Client", report: dict[str, Any]) -> None:
    from quarterdeck.client.errors import NotFoundError

    try:
        known = await client.services.list()
    except NotFoundError:
        return  # another implementation, or an earlier version
    report["services"] = known
    report["home_id"] = next((str(service.home_id) for service in known if service.own), None)


def _print_status(report: dict[str, Any]) -> None:
    print_text(f"service   {report['target']} at {report['endpoint']}")
    if report["home"]:
        print_text(f"home      {report['home']}")
    if not report["answers"]:
        print_text("state     does not answer")
        return
    if report["problem"]:
        print_text(f"state     answers, but cannot serve: {report['problem']}")
        return
    print_text(f"state     answers in {report['latency_ms']} ms")
    print_text(f"version   {report['version']}")
    if report["services"]:
        print_text(
            f"services  {services_text(report['services'])}; home {report['home_id']} answers"
        )
    for service in report["services"] or ():
        if not service.alive:
            print_text(f"away      home {service.home_id}, {last_seen_text(service)}")
    counts: dict[str, int] | None = report["replicas"]
    if counts is not None:
        text = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        print_text(f"replicas  {text or 'none'}")
