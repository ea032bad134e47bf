"""The service's interface to the repositories of users: their mirrors and what is read from them."""

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from quarterdeck.sandboxes.port import RepositorySource, SandboxDriver, StartPoint
from quarterdeck.wire.saves import SAVES


@dataclass(frozen=True)
class Login:
    """The credentials that git sends to a server."""

    user: str
    token: str = field(repr=False)


@dataclass(frozen=True)
class RefUpdate:
    """A branch or tag that is to be `commit` at the source of a repository, or removed there.

    `force` also replaces other commits, if the source still has `known`, by default the last
    fetched commit.
    """

    ref: str
    commit: str | None
    force: bool = False
    known: str | None = None


@dataclass(frozen=True)
class MirrorInfo:
    """The result of connecting a repository.

    `url` is its own address: for a path within a checkout, the checkout's top level.
    """

    default_branch: str
    suggested_name: str
    url: str | None = None


@dataclass(frozen=True)
class TreeFile:
    """A file of a source's directory; `path` is relative to that directory."""

    path: str
    content: bytes
    executable: bool = False


START_REF = "refs/qd/start"
"""In a clone: the commit with the uncommitted changes that it started from, if there were any."""
_SERVED = (
    *("-c", "safe.directory=*", "-c", "uploadpack.allowFilter=true"),
    *("-c", "transfer.hideRefs=refs", "-c", "transfer.hideRefs=!refs/heads"),
    *("-c", "transfer.hideRefs=!refs/tags", "-c", "transfer.hideRefs=!refs/pull"),
    *("-c", "transfer.hideRefs=!refs/merge-requests", "-c", f"transfer.hideRefs=!{START_REF}"),
    *("-c", f"transfer.hideRefs=!{SAVES}"),
)
"""Options under which branches, tags, heads of pull requests and `START_REF` are served."""


def upload_pack_arguments(body: bytes | None) -> list[str]:
    """Return git's arguments to serve one request of its HTTP protocol in a repository.

    Without a body it advertises the refs.
    """
    advertised = ["--http-backend-info-refs"] if body is None else []
    return [*_SERVED, "upload-pack", "--stateless-rpc", *advertised, "."]


class Sources(Protocol):
    """The repositories of users, as the service keeps them: mirrors and what is read from them."""

    async def connect_repository(
        self, repository_id: str, url: str, branch: str | None = None, private: bool = True
    ) -> MirrorInfo:
        """Make the service's bare mirror of a repository, which must have `branch` if one is given.

        `private` is whether it may have a private address, now and whenever it is fetched.

        Raises:
            NotARepositoryError: nothing there that git can read, or the address holds a password.
            UnknownBranchError: it has no such branch.
            CloneError: it is a repository, but mirroring it failed.
        """
        ...

    async def tree(self, source: RepositorySource) -> list[str]:
        """Return the files of a repository's default branch by its mirror, updated if that is quick.

        Raises:
            SandboxError: there is no mirror, or it cannot be read.
        """
        ...

    async def is_local(self, url: str) -> bool:
        """Return whether an address names a path on this machine.

        Raises:
            NotARepositoryError: the address is not supported.
        """
        ...

    async def require_source(self, url: str, private: bool = True, login: bool = True) -> None:
        """Check whether a source can exist: one on this machine must exist, or have a mirror.

        Other machines are not contacted, but a name is resolved: `private` is whether the source may
        have a private address, `login` whether git may use the user's credentials for it.

        Raises:
            NotARepositoryError: it does not exist, is not valid, holds a password or is out of reach.
        """
        ...

    async def read_tree(
        self, url: str, directory: str, private: bool = True, login: bool = True
    ) -> list[TreeFile]:
        """Return every plain file below a directory of a source; `""` is its top. See `require_source`.

        A directory of this machine is read directly, else a mirror, even if its source is out of reach.

        Raises:
            SandboxError: no such source or directory, or it exceeds the limits.
        """
        ...

    async def find_in_tree(
        self, url: str, name: str, private: bool = True, login: bool = True
    ) -> list[TreeFile]:
        """Return every plain file of one name anywhere in a source; read as by `read_tree`.

        Raises:
            SandboxError: no such source, or more files of that name than the limit.
        """
        ...

    async def branches(self, source: RepositorySource) -> list[str]:
        """Return the branches of a connected repository, the one with the newest commit first.

        The mirror is updated first when the source can be reached.

        Raises:
            SandboxError: there is no mirror, and none can be made.
        """
        ...

    async def find_base(
        self, source: RepositorySource, base: str, commit: str | None = None
    ) -> StartPoint | None:
        """Find the start of a workspace that is based on a branch, tag or commit.

        None when that is the default branch. The source is only queried when its mirror lacks the
        base.

        Args:
            base: a name without `refs/heads/`, or a commit that may be abbreviated.
            commit: start at this commit, which the base must contain.

        Raises:
            UnknownBaseError: the source has no such base, or the base lacks the commit.
            CloneError: there is no mirror, and none can be made.
        """
        ...

    async def require_ref(self, source: RepositorySource, refs: Sequence[str]) -> None:
        """Ask a source whether it has one of some refs.

        Raises:
            UnknownBaseError: it has none of them.
            CloneError: it cannot be reached.
        """
        ...

    async def fetch_branch(self, source: RepositorySource, branch: str) -> str:
        """Update a mirror; return the newest commit of a branch, for `SandboxDriver.show_commit`.

        Raises:
            CloneError: the source cannot be reached, or has no such branch.
        """
        ...

    async def local_head(self, source: RepositorySource, branch: str) -> str | None:
        """Return the newest commit of a branch without a fetch; None if it is not on this machine."""
        ...

    async def fetch_pull_requests(self, source: RepositorySource, refs: Sequence[str]) -> None:
        """Bring heads of pull requests, such as `refs/pull/7/head`, into the mirror if they exist."""
        ...

    async def source_refs(self, source: RepositorySource) -> dict[str, str]:
        """Return the current branches, tags and HEAD of a source, after fetching them.

        Raises:
            CloneError: the source cannot be reached.
        """
        ...

    def upload_pack(
        self, source: RepositorySource, body: bytes | None, protocol: str
    ) -> AsyncGenerator[bytes]:
        """Serve one request of a fetch: branches and tags of a source as last fetched.

        Without a body the refs are advertised. `protocol` is its `Git-Protocol` header.

        Raises:
            CloneError: git refused.
        """
        ...

    async def push(
        self, source: RepositorySource, pack: AsyncIterable[bytes], updates: Sequence[RefUpdate]
    ) -> str:
        """Push to the source of a repository with the user's credentials; return git's output.

        All updates happen or none. The pack has what the mirror lacks of the updates' commits; it is
        checked in a separate repository first.

        Raises:
            PushError: the source refused, a branch is checked out there, or the pack is damaged.
            CloneError: there is no mirror, and none could be made.
        """
        ...


class LocalDriver(Sources, SandboxDriver, Protocol):
    """The driver of the service's own machine, which also keeps the sources."""
