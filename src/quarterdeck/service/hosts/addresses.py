"""Addresses of a repository that mean the same place, however they are spelled."""

import re
from urllib.parse import unquote, urlsplit

_SCP_LIKE = re.compile(r"(?:[^@/\s]+@)?(?P<host>[^:/\s@]+):(?!//)(?P<path>[^\s]+)")
_SCHEMES = frozenset(("http", "https", "ssh", "git", "git+ssh", "ssh+git"))


def address_of(url: str) -> tuple[str, str] | None:
    """The host's name in small letters and the repository's full name as it is spelled.

    None for a local path and what is no address.
    """
    host, path = _parts(url.strip())
    name = unquote(path).strip("/").removesuffix(".git").strip("/")
    return (host.lower(), name) if host and name else None


def place_of(url: str) -> str | None:
    """`host/owner/name` in small letters; None for a local path and what is no address.

    User, port and scheme are left out: one host gives its repositories several. Letters are made
    small in the path too: both hosts take a name in either spelling, and give it out once.
    """
    found = address_of(url)
    return None if found is None else "/".join(found).casefold()


def _parts(url: str) -> tuple[str, str]:
    if "://" in url:
        try:
            parts = urlsplit(url)
            host = parts.hostname or ""
        except ValueError:
            return "", ""
        return (host, parts.path) if parts.scheme.lower() in _SCHEMES else ("", "")
    found = None if url.startswith(("/", ".", "~")) else _SCP_LIKE.fullmatch(url)
    return (found["host"], found["path"]) if found else ("", "")
