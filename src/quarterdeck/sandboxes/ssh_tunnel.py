"""The socket of a container engine on another machine, by SSH.

It is the person's own SSH: their keys and agent, `~/.ssh/config` and `~/.ssh/known_hosts`. Only the
socket is forwarded, and on this machine only the service's user can open it.
"""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, cast
from urllib.parse import urlsplit

import asyncssh

from quarterdeck.local.sockets import ADDRESS_LIMIT
from quarterdeck.sandboxes.errors import EngineAwayError, SandboxError
from quarterdeck.sandboxes.trees import remove_tree

DEFAULT_SOCKET = "/var/run/docker.sock"
CONNECT_SECONDS = 15.0
KEEPALIVE_SECONDS = 10.0
"""A connection that is silent for three times as long has ended."""


_PREFIX = "qd-ssh-"


def _remove_abandoned(directory: Path) -> None:
    """Remove the directories of services that were killed."""
    for path in directory.glob(f"{_PREFIX}*-*"):
        pid = path.name.removeprefix(_PREFIX).split("-")[0]
        with suppress(OSError):  # another user's, or another service removes it too
            if path.lstat().st_uid == os.geteuid() and not Path("/proc", pid).exists():
                remove_tree(path)


class SshTunnel:
    """A unix socket here that leads to one on another machine. Close it in every case.

    Args:
        address: `ssh://`, a host of the person's SSH, perhaps with user and port, and the path of the
            socket there.

    Raises:
        SandboxError: the address cannot be read, or no socket can be made here.
    """

    def __init__(self, address: str) -> None:
        try:
            parts = urlsplit(address)
            self._port = parts.port
        except ValueError as e:
            raise SandboxError(f"sandboxes.address: {address} cannot be used: {e}.") from e
        self._host = parts.hostname or ""
        self._user = parts.username
        self._socket = parts.path if parts.path not in ("", "/") else DEFAULT_SOCKET
        self._address = address
        self._directory = TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-")
        if len(os.fsencode(self.path)) > ADDRESS_LIMIT:
            self._directory.cleanup()
            raise SandboxError(
                f"{gettempdir()} is too long a path for the socket of {address}. Set TMPDIR to a "
                "shorter one."
            )
        self._connection: asyncssh.SSHClientConnection | None = None

    @property
    def path(self) -> Path:
        """The socket here."""
        return Path(self._directory.name) / "engine.sock"

    async def open(self) -> None:
        """Connect, unless there is a connection.

        Raises:
            EngineAwayError: the machine is not reached, or nothing listens there.
            SandboxError: it is not the machine that is known, or does not let the person in, or the
                person's SSH is not configured correctly.
        """
        if self._connection is not None and not self._connection.is_closed():
            return
        await asyncio.to_thread(_remove_abandoned, Path(gettempdir()))
        try:
            connection = await self._connect()
            try:
                _, writer = await cast("Any", connection).open_unix_connection(self._socket)
                writer.close()
                self.path.unlink(missing_ok=True)
                await connection.forward_local_path(str(self.path), self._socket)
            except BaseException:
                connection.close()
                raise
        except asyncssh.HostKeyNotVerifiable as e:
            raise SandboxError(
                f"{self._address}: the host's key is not the one in ~/.ssh/known_hosts, or there is "
                f"none. Connect once with: ssh {self._host}.",
                str(e),
            ) from e
        except asyncssh.PermissionDenied as e:
            raise SandboxError(
                f"{self._address}: none of your SSH keys is accepted. Try: ssh {self._host}.",
                str(e),
            ) from e
        except asyncssh.ChannelOpenError as e:
            raise EngineAwayError(
                f"{self._address}: {self._socket} there cannot be opened. Check that the container "
                "engine runs, and that your user may use it.",
                str(e),
            ) from e
        except ValueError as e:
            raise self._misconfigured(e) from e
        except (asyncssh.Error, OSError) as e:
            raise EngineAwayError(
                f"The machine of the container engine is not reached at {self._address}.", str(e)
            ) from e
        self._connection = connection

    async def _connect(self) -> asyncssh.SSHClientConnection:
        given = {"port": self._port, "username": self._user}
        try:
            options = cast(
                "asyncssh.SSHClientConnectionOptions",
                await asyncssh.SSHClientConnectionOptions.construct(
                    host=self._host,
                    config=(),  # ~/.ssh/config
                    connect_timeout=CONNECT_SECONDS,
                    keepalive_interval=KEEPALIVE_SECONDS,
                    **{name: value for name, value in given.items() if value},
                ),
            )
        except OSError as e:  # a file cannot be read: nothing was connected to yet
            raise self._misconfigured(e) from e
        if options.known_hosts is not None:
            return await asyncssh.connect(options.host, options=options)
        # ~/.ssh/config turns the check off, but an unknown host must not be trusted.
        known = Path.home() / ".ssh" / "known_hosts"
        trusted = str(known) if known.is_file() else b""
        return await asyncssh.connect(options.host, options=options, known_hosts=trusted)

    def _misconfigured(self, error: Exception) -> SandboxError:
        why = "~/.ssh/config or a file that it names cannot be used."
        if isinstance(error, OSError) and error.filename is not None:
            why = (
                f"{error.filename} cannot be read: {error.strerror}. Correct ~/.ssh/config, such as its "
                f"IdentityFile, or create the file."
            )
        return SandboxError(f"{self._address}: {why} Try: ssh {self._host}.", str(error))

    async def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            self._connection.close()
            await self._connection.wait_closed()
        self._directory.cleanup()
