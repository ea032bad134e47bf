"""The certificates of a container engine at a `tcp://` address, and of its client."""

import ssl
from pathlib import Path

import aiohttp

from quarterdeck.local.tls import pinned_context
from quarterdeck.sandboxes.errors import SandboxError

CERTIFICATES = ("ca.pem", "cert.pem", "key.pem")


class DockerTls:
    """TLS with the container engine at `address`, by the `CERTIFICATES` in a directory."""

    def __init__(self, address: str, directory: Path) -> None:
        self._address = address
        self._directory = directory
        self._read: tuple[bytes, ...] = ()
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """Return the context for connections, which is another one when the files were changed.

        Raises:
            SandboxError: they cannot be used.
        """
        files = [self._directory / name for name in CERTIFICATES]
        authority, certificate, key = files
        try:
            read = tuple(file.read_bytes() for file in files)
            if self._context is None or read != self._read:
                made = pinned_context(authority)
                made.load_cert_chain(certificate, key, password="")  # without, it asks for one
                self._read, self._context = read, made
        except OSError as e:
            raise SandboxError(self._text, str(e)) from e
        return self._context

    def refusal(self, error: BaseException | None) -> SandboxError | None:
        """Return what to say if no connection was made because of a certificate, else None."""
        if isinstance(error, aiohttp.ClientSSLError):
            return SandboxError(self._text, str(error))
        return None

    @property
    def _text(self) -> str:
        return (
            f"TLS with the container engine at {self._address} failed. Check the certificates "
            f"{', '.join(CERTIFICATES)} in {self._directory}."
        )
