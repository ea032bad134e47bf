"""Settings of source hosts and addresses of repositories."""

import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from quarterdeck.sandboxes.source_port import Login

HOST_A, HOST_B, LOCAL = "host-a", "host-b", "local"
HOSTS = (HOST_A, HOST_B)


@dataclass(frozen=True)
class HostSettings:
    """One host. Without a secret its webhooks are refused; without a token it is not called.

    `api_url` is the base of its REST API, without a slash at the end.
    """

    webhook_secret: str | None = field(default=None, repr=False)
    api_url: str | None = None
    token: str | None = field(default=None, repr=False)

    @property
    def writable(self) -> bool:
        """Whether checks can be written there, and pull requests read and written."""
        return self.api_url is not None and self.token is not None


NO_HOST = HostSettings()


@dataclass(frozen=True)
class HostsSettings:
    """Both hosts."""

    host_a: HostSettings = NO_HOST
    host_b: HostSettings = NO_HOST

    def of(self, host: str) -> HostSettings:
        """Return the settings of a host by its name; empty ones for another name."""
        return {HOST_A: self.host_a, HOST_B: self.host_b}.get(host, NO_HOST)


NO_HOSTS = HostsSettings()


_SCP_LIKE = re.compile(r"(?:[^@/\s]+@)?(?P<host>[^:/\s@]+):(?!//)(?P<path>[^\s]+)")
_NAME = re.compile(r"(?!\.\.?$)[A-Za-z0-9_.+-]+")
_TOKEN_USERS = {HOST_A: "x-access-token", HOST_B: "oauth2"}
"""User names that work with a token of any kind."""
_SCHEMES = frozenset(("http", "https", "ssh", "git", "git+ssh", "ssh+git"))


def address_of(url: str) -> tuple[str, str] | None:
    """Return the host's name in lower case and the repository's full name as spelled.

    None for a local path or an invalid address.
    """
    host, path = _parts(url.strip())
    name = unquote(path).strip("/").removesuffix(".git").strip("/")
    return (host.lower(), name) if host and name else None


def place_of(url: str) -> str | None:
    """Return `host/owner/name` in lower case; None for a local path or an invalid address.

    User, port and scheme are omitted, since a repository has several URLs. The path is lower
    case too: both hosts accept a name in either spelling, and assign it once.
    """
    address = address_of(url)
    return None if address is None else "/".join(address).casefold()


def _parts(url: str) -> tuple[str, str]:
    if "://" in url:
        try:
            parts = urlsplit(url)
            host = parts.hostname or ""
        except ValueError:
            return "", ""
        return (host, parts.path) if parts.scheme.lower() in _SCHEMES else ("", "")
    match = None if url.startswith(("/", ".", "~")) else _SCP_LIKE.fullmatch(url)
    return (match["host"], match["path"]) if match else ("", "")


def serves(api_url: str, where: str) -> bool:
    """Return whether an API belongs to a repository's host: the same name, or `api.` before it."""
    host = (urlsplit(api_url).hostname or "").lower()
    return bool(host) and host.removeprefix("api.") == where.removeprefix("ssh.")


def hosts_of(hosts: HostsSettings, url: str) -> list[tuple[str, str]]:
    """Return the hosts whose APIs serve a repository's URL, with its full name there.

    Empty for a local path, and for an address of no configured host. A host may be without a token.
    """
    where, full_name = address_of(url) or ("", "")
    if not _is_full_name(full_name):
        return []
    return [(host, full_name) for host in HOSTS if serves(hosts.of(host).api_url or "", where)]


def login_of(hosts: HostsSettings, url: str) -> Login | None:
    """Return git's credentials for a URL of a configured host: its token.

    It is sent in clear text only to a host whose API uses clear text, and to its port: on another port any
    program may listen, and no certificate identifies it.
    """
    parts = urlsplit(url)
    for host in HOSTS:
        settings = hosts.of(host)
        if settings.token is None or settings.api_url is None:
            continue
        api = urlsplit(settings.api_url)
        meant = parts.scheme == "https" or _plain_port(parts) == _plain_port(api) is not None
        if meant and serves(settings.api_url, (parts.hostname or "").lower()):
            return Login(_TOKEN_USERS[host], settings.token)
    return None


def _plain_port(parts: SplitResult) -> int | None:
    """Return the port of an `http://` URL; None for another one."""
    return (parts.port or 80) if parts.scheme == "http" else None


def _is_full_name(full_name: str) -> bool:
    """Return whether it can be part of a request's path, as `owner/name` or longer."""
    parts = full_name.split("/")
    return len(parts) > 1 and all(map(_NAME.fullmatch, parts))
