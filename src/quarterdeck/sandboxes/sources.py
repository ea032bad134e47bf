"""Reads the address of a repository: a path on this machine, or a git URL."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from quarterdeck.local import addresses
from quarterdeck.sandboxes.errors import NotARepositoryError

_SCHEMES = frozenset(("http", "https", "ssh", "git+ssh", "ssh+git"))
_SCP_LIKE = re.compile(r"[A-Za-z0-9_.@-]+:(?!/?/).*", re.ASCII)
_SCP_PARTS = re.compile(r"(?:[^@/:]+@)?([^@/:]+):/?(?!/)(.+)")
_PASSWORD = re.compile(r"[^/?#]+://[^/?#]*:[^/?#]*@")
_HELPER = re.compile(r"[A-Za-z0-9+.-]+::")
_UNSAFE_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_LIMIT = 100


def local_path(url: str) -> Path | None:
    """Return the directory that an address names; None when it names another machine.

    Raises:
        NotARepositoryError: the address is not supported.
    """
    text = url.strip()
    if not text or text.startswith("-") or any(ord(character) < 32 for character in text):
        raise NotARepositoryError(f"{url!r} is neither a path nor a git URL.")
    if text.startswith("file://"):
        return Path(unquote(urlsplit(text).path))
    if "://" in text or _HELPER.match(text):
        return _remote(text)
    try:
        path = Path(text).expanduser()
    except RuntimeError as e:
        raise NotARepositoryError(f"{text} begins with a user that is not here.") from e
    if _SCP_LIKE.fullmatch(text) and not path.exists():
        return None
    if not path.is_absolute():
        raise NotARepositoryError(
            f"{text} is a relative path. Give the whole path of the repository."
        )
    return path


def _remote(text: str) -> None:
    scheme = re.split("://|::", text)[0].lower()
    if scheme not in _SCHEMES or _HELPER.match(text):
        known = ", ".join(sorted(_SCHEMES))
        raise NotARepositoryError(
            f"Addresses beginning with {scheme}:// are not supported, only {known}."
        )


def refuse_password(url: str) -> None:
    """Refuse an address with a password: it would be stored, shown, and in the arguments of git.

    Raises:
        NotARepositoryError: it has one.
    """
    if _PASSWORD.match(url.strip()):
        raise NotARepositoryError(
            "The address contains a password, which everyone in the organization could see.",
            "Leave it out: git asks its credential helpers, or uses the token of the host in the "
            "service's configuration file.",
        )


def without_password(url: str) -> str:
    """Return the address without a password, safe to show to people and programs inside."""
    if "://" not in url or "@" not in url:
        return url
    try:
        parts = urlsplit(url)
    except ValueError:  # such as brackets around no IPv6 address
        return addresses.without_password(url)
    if parts.password is None and parts.scheme in ("ssh", "git+ssh", "ssh+git"):
        return url
    host = parts.netloc.rpartition("@")[2]
    user = f"{parts.username}@" if parts.username and "ssh" in parts.scheme else ""
    return urlunsplit(parts._replace(netloc=user + host))


def spellings(url: str) -> tuple[list[str], bool]:
    """Return other addresses of a remote repository, and whether its own can be a prefix.

    git replaces prefixes of addresses, so only one that ends with `.git` names a single repository.
    """
    own = url.endswith(".git")
    if "://" in url:
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path.strip("/")
        usual = parts.port is None and parts.scheme in _SCHEMES
    else:
        match = _SCP_PARTS.fullmatch(url)
        host, path = match.groups() if match else ("", "")
        usual = match is not None
    if not usual or not host or not path:
        return [], own
    path = f"{path.removesuffix('.git')}.git"
    others = (f"https://{host}/{path}", f"ssh://git@{host}/{path}", f"git@{host}:{path}")
    return [spelling for spelling in others if not url.startswith(spelling)], own


def name_from(address: str) -> str:
    """Return a name for a repository, from the last part of its address."""
    parts = [part for part in re.split(r"[/:\\]", without_password(address)) if part]
    if parts and parts[-1] == ".git":
        parts.pop()
    return safe_name(parts[-1].removesuffix(".git") if parts else "")


def safe_name(name: str) -> str:
    """Return a name that is one plain directory name, as repositories have (`REPOSITORY_NAME`)."""
    return _UNSAFE_NAME.sub("-", name).lstrip("-._").rstrip("-.")[:_NAME_LIMIT] or "repository"


@dataclass(frozen=True)
class Source:
    """A repository as found at its address.

    `url` is what git fetches from; `head` the branch that its HEAD points to (None when detached or
    unknown); `born` says whether HEAD names a commit.
    """

    url: str
    head: str | None
    born: bool
