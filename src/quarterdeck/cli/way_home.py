"""Where containers reach the service: at their bridge, or where the configuration file says."""

import asyncio
import socket
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from quarterdeck.cli.errors import ConfigError
from quarterdeck.cli.target import config_path
from quarterdeck.local.addresses import is_own_address
from quarterdeck.local.files import read_file, write_file
from quarterdeck.local.home import Home

if TYPE_CHECKING:
    from quarterdeck.cli.schema import SandboxesTable
    from quarterdeck.sandboxes.containers import HomeAddress
    from quarterdeck.sandboxes.docker import DockerContainers
    from quarterdeck.service.listeners import InsideTcpListener, Listener

LOCAL = "unix://"
"""Where the address of a container engine on this machine begins."""
MACHINE_NAMES = ("host.containers.internal", "host.docker.internal")
"""Names that containers have for their machine."""


class WayHome:
    """Follows where containers reach the service; `listeners` are what they need.

    Raises:
        ConfigError: the configured address or certificate cannot be used.
    """

    def __init__(
        self, home: Home, containers: "DockerContainers | None", table: "SandboxesTable"
    ) -> None:
        from quarterdeck.sandboxes.containers import HomeAddress

        self._home = home
        self._containers = containers
        self._table = table
        self._known: set[str] = set()
        self.listeners: asyncio.Queue[Listener] = asyncio.Queue()
        self.address = HomeAddress()
        check_home_url(table)
        if table.home_url is not None:
            self.address, listener = _configured(home, table, table.home_url)
            if listener is not None:
                self.listeners.put_nowait(listener)

    async def connected(self) -> None:
        """Note the address at the bridge, and request a listener there, unless one is configured.

        Raises:
            SandboxError: containers do not reach the bridge.
        """
        from quarterdeck.sandboxes.containers import HomeAddress
        from quarterdeck.service.listeners import InsideTcpListener

        if self._table.home_url is not None:
            return
        assert self._containers is not None  # a cluster has no bridge, and needs home_url
        check_way_home(self._containers, self._table)
        host = self._containers.gateway
        port = await asyncio.to_thread(_port, self._home)
        self.address = HomeAddress(f"http://{host}:{port}")
        if host not in self._known:
            self._known.add(host)
            self.listeners.put_nowait(InsideTcpListener(host, port))


def _configured(
    home: Home, table: "SandboxesTable", url: str
) -> "tuple[HomeAddress, InsideTcpListener | None]":
    from quarterdeck.sandboxes.containers import HomeAddress

    if table.home_listen is not None:
        from quarterdeck.service.certificate import certificate_for
        from quarterdeck.service.listeners import InsideTcpListener

        path = home.service / "containers.pem"
        certificate = certificate_for(path, urlsplit(url).hostname or "")
        host, _, port = table.home_listen.rpartition(":")
        return HomeAddress(url, certificate), InsideTcpListener(host.strip("[]"), int(port), path)
    return HomeAddress(url, table.home_ca and _certificate(table.home_ca)), None


def _certificate(named: str) -> str:
    """Return the certificates in a file; a relative path is beside the configuration.

    A private key in the same file stays here.
    """
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import load_pem_x509_certificates

    from quarterdeck.local.tls import pinned_context

    path = config_path().parent / Path(named).expanduser()
    try:
        pinned_context(path)
        found = load_pem_x509_certificates(read_file(path))
        return "".join(one.public_bytes(Encoding.PEM).decode() for one in found)
    except (OSError, ValueError) as e:
        raise ConfigError(
            f"sandboxes.home_ca: {path} cannot be used: {e}.",
            "Name a file with a certificate in PEM.",
        ) from e


def check_home_url(table: "SandboxesTable") -> None:
    """Check that nothing of replicas travels unencrypted to another machine.

    Raises:
        ConfigError: it would, and that was not asked for; or no certificate can be made for the host.
    """
    parts = urlsplit(table.home_url or "")
    if table.home_listen is not None:
        _check_certified(parts.hostname or "")
    if parts.scheme != "http" or table.home_insecure:
        return
    host = parts.hostname or ""
    near = table.driver == "docker" and (table.address or LOCAL).startswith(LOCAL)
    local = near and not table.swarm
    if local and (host in MACHINE_NAMES or is_own_address(host)):
        return
    raise ConfigError(
        f"sandboxes.home_url: with {table.home_url} the keys of agents and all that replicas do travel "
        "unencrypted to another machine.",
        "Give an https:// address; see docs/placement.md. Where the network itself encrypts, set "
        "home_insecure = true.",
    )


def _check_certified(host: str) -> None:
    if host.isascii() and "%" not in host:
        return
    raise ConfigError(
        f"sandboxes.home_url: the service cannot make a certificate for {host}.",
        "Give a name in its ASCII form (xn--...), or an address without a scope (%...).",
    )


def check_way_home(containers: "DockerContainers", table: "SandboxesTable") -> None:
    """Check that containers can reach the service.

    Raises:
        SandboxError: they cannot, as the configuration is.
    """
    from quarterdeck.sandboxes.errors import SandboxError

    if containers.rootless and table.home_url is None:
        raise SandboxError(
            "The container engine runs without root, so containers do not reach this machine at "
            "their bridge. Give sandboxes.home_url; see docs/placement.md.",
        )


def _port(home: Home) -> int:
    """Return the port for containers, always the same: those that run know no other."""
    path = home.service / "containers.port"
    try:
        return int(read_file(path))
    except (FileNotFoundError, ValueError):
        pass
    with socket.socket() as opened:
        opened.bind(("", 0))  # not at the bridge, which may not be there yet
        port: int = opened.getsockname()[1]
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_file(path, f"{port}\n")
    return port
