"""The service's bare mirror of each connected repository.

Workspaces borrow a mirror's objects, so none is ever pruned: no automatic maintenance, no expiry.
It is removed as a whole once nothing needs it. A mirror only fetches; its source is never written
to.
"""

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urljoin

from quarterdeck.local.files import write_file
from quarterdeck.sandboxes.errors import (
    CloneError,
    NotARepositoryError,
    UnknownBaseError,
    UnknownBranchError,
)
from quarterdeck.sandboxes.git import (
    GitRunner,
    GitTimeoutError,
    SourceGitError,
    no_login,
    quoted,
    remove_remains,
    write_configuration,
)
from quarterdeck.sandboxes.port import Concern, Progress, RepositorySource, StartPoint
from quarterdeck.sandboxes.reach import network_options
from quarterdeck.sandboxes.source_port import Login, MirrorInfo
from quarterdeck.sandboxes.sources import Source, local_path, name_from, safe_name, without_password
from quarterdeck.sandboxes.trees import remove_abandoned, remove_tree, temporary_name

_NEW, _OLD, OUTGOING = "new", "old", "outgoing"
_NEW_SECONDS = 3600.0
HEAD_REF = "refs/quarterdeck/HEAD"
"""The source's HEAD: it may be on no branch."""
STARTS = "refs/quarterdeck/starts"
"""Prefix of the heads of pull requests."""

_MIRRORED = ("refs/heads/", "refs/tags/")
"""Refs that the mirror has under the names of its source."""
_ABBREVIATED = re.compile(r"[0-9a-fA-F]{4,64}")

_REDIRECTIONS = 5
_MOVED = re.compile(r"returned error: 30[12378]")
_LOCATION = re.compile(r"Recv header: location: (\S+)", re.IGNORECASE)
_ADVERTISED = "/info/refs?service=git-upload-pack"
"""The end of the first address that git reads of a repository."""

_REF = re.compile(r"refs/[A-Za-z0-9][A-Za-z0-9._/-]*")
"""Refs that are fetched by name. A name from a caller may be neither an option nor a pattern."""

FIRST_FETCH_SECONDS = 1800.0
REFRESH_SECONDS = 120.0
QUERY_SECONDS = 30.0

_CONFIGURATION = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tsharedRepository = 0644
[gc]
\tauto = 0
\tpruneExpire = never
[maintenance]
\tauto = false
[remote "origin"]
\turl = {url}
[quarterdeck]
\tprivate = {private}
"""
_FETCH_OPTIONS = (
    *("fetch", "--quiet", "--no-tags", "--update-shallow", "--no-write-fetch-head"),
    *("--no-auto-maintenance", "--recurse-submodules=no"),
)
_FETCH = (
    *(*_FETCH_OPTIONS, "--prune", "origin"),
    *("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"),
)


class Mirrors:
    """All mirrors of an installation, each a directory named by its repository's id."""

    def __init__(
        self,
        root: Path,
        login: Callable[[str], Login | None] | None = no_login,
        private: bool = True,
        proxy: bool = True,
    ) -> None:
        """`login` and `proxy` are as for `GitRunner`, `private` whether a source may have a private address."""
        self._root = root
        self._private = private
        self._git = GitRunner(root / "gitconfig", login, proxy)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def git(self) -> GitRunner:
        return self._git

    @property
    def root(self) -> Path:
        return self._root

    def path(self, repository_id: str) -> Path:
        return self._root / safe_name(repository_id)

    def objects(self, repository_id: str) -> Path:
        return self.path(repository_id) / "objects"

    async def connect(
        self, repository_id: str, url: str, branch: str | None = None, private: bool = True
    ) -> MirrorInfo:
        """Make a mirror, or update the one of this id.

        `private` is whether its source may have a private address; the mirror remembers that.

        Raises:
            NotARepositoryError: git finds no repository there.
            UnknownBranchError: `branch` is given and missing.
            CloneError: it could not be fetched.
        """
        async with self._locks[repository_id]:
            await asyncio.to_thread(self._prepare, repository_id)
            await asyncio.to_thread(remove_abandoned, self._root, _NEW)
            new = self._root / temporary_name(_NEW)
            try:
                return await self._connect(repository_id, new, url, branch, private)
            finally:
                await asyncio.to_thread(remove_tree, new)

    async def refresh(
        self, source: RepositorySource, report: Progress, private: bool | None = None
    ) -> None:
        """Update a mirror; a source that cannot be reached now is only reported.

        Without `private`, whether its source may have a private address is as when it was made.

        Raises:
            NotARepositoryError, CloneError: there is no mirror, and none could be made.
        """
        if not self.path(source.id).is_dir():
            await self.connect(source.id, source.url, private=private is not False)
            return
        async with self._locks[source.id]:
            await asyncio.to_thread(self._prepare, source.id)
            try:
                await self._fetch(self.path(source.id), source.url, REFRESH_SECONDS, private)
            except (SourceGitError, NotARepositoryError) as e:
                reason = str(e.args[0]).strip().splitlines()[-1]
                line = f"{source.name}: its source cannot be reached now ({reason}); "
                report(Concern(line + "using what was fetched earlier"))

    async def fetch_branch(self, source: RepositorySource, branch: str) -> str:
        """Update a mirror; return the newest commit of a branch.

        Raises:
            CloneError: the source cannot be reached, or has no such branch.
        """
        await self._refresh_now(source)
        try:
            commit = await self._resolve(self.path(source.id), f"refs/heads/{branch}")
        except GitTimeoutError as e:
            raise CloneError(f"{source.name} could not be read.", str(e)) from e
        if commit is None:
            raise CloneError(f"{source.name} has no branch {branch}.")
        return commit

    async def local_head(self, source: RepositorySource, branch: str) -> str | None:
        """See `Sources.local_head`."""
        path = await asyncio.to_thread(local_path, source.url)
        try:
            return path and await self._resolve(path, f"refs/heads/{branch}")
        except GitTimeoutError:
            return None

    async def refs(self, source: RepositorySource) -> dict[str, str]:
        """Update a mirror; return the objects of its branches and tags, and HEAD.

        Raises:
            CloneError: the source cannot be reached.
        """
        await self._refresh_now(source)
        form = "--format=%(objectname) %(refname)"
        listed = ("for-each-ref", form, "refs/heads", "refs/tags")
        output = await self._query(self.path(source.id), *listed)
        refs = {ref: sha for sha, _, ref in (line.partition(" ") for line in output.splitlines())}
        if head := await self._resolve(self.path(source.id), "HEAD"):
            refs["HEAD"] = head
        return refs

    async def fetch_pull_requests(self, source: RepositorySource, refs: Sequence[str]) -> None:
        """Fetch heads of pull requests into the mirror; missing ones are left out."""
        mirror = self.path(source.id)
        async with self._locks[source.id]:
            await asyncio.to_thread(self._prepare, source.id)
            _, reach = await self.origin(source)
            for ref in refs:
                options = (*reach, *_FETCH_OPTIONS, "origin", f"+{ref}:{ref}")
                with suppress(SourceGitError):  # git in the workspace reports the missing ref
                    await self._git.run(
                        *options, directory=mirror, private=False, seconds=REFRESH_SECONDS
                    )

    def upload_pack(
        self, source: RepositorySource, body: bytes | None, protocol: str
    ) -> AsyncGenerator[bytes]:
        """Serve one request of a fetch from the mirror, without updating it.

        Raises:
            SourceGitError: git refused, or there is no mirror.
        """
        return self._git.upload_pack(self.path(source.id), body, protocol)

    def pack(
        self, source: RepositorySource, commit: str, known: str | None
    ) -> AsyncGenerator[bytes]:
        """Yield a pack with the objects of a commit that are not of another one.

        Raises:
            SourceGitError: git refused, or there is no mirror.
        """
        return self._git.pack(self.path(source.id), commit, known)

    async def _refresh_now(self, source: RepositorySource) -> None:
        concerns: list[str] = []
        await self.refresh(source, concerns.append)
        if concerns:
            raise CloneError(f"{source.name} could not be fetched.", concerns[0])

    async def branches(self, source: RepositorySource) -> list[str]:
        """See `SandboxDriver.branches`."""
        await self.refresh(source, _ignored)
        form = ("--format=%(refname:lstrip=2)", "--sort=-committerdate")
        listed = ("for-each-ref", *form, "refs/heads")
        try:
            return (await self._git.run(*listed, directory=self.path(source.id))).splitlines()
        except SourceGitError as e:
            raise CloneError(f"{source.name}: its branches could not be read.", str(e)) from e

    async def find_base(
        self, source: RepositorySource, base: str, commit: str | None = None
    ) -> StartPoint | None:
        """See `SandboxDriver.find_base`."""
        concerns: list[str] = []
        try:
            if self.path(source.id).is_dir():
                with suppress(UnknownBaseError):
                    return await self._find_base(source, base, commit)
            await self.refresh(source, concerns.append)
            return await self._find_base(source, base, commit)
        except UnknownBaseError as e:
            raise UnknownBaseError(str(e), concerns[0] if concerns else None) from e
        except SourceGitError as e:
            raise CloneError(f"{source.name} could not be read.", str(e)) from e

    async def _find_base(
        self, source: RepositorySource, base: str, commit: str | None
    ) -> StartPoint | None:
        mirror = self.path(source.id)
        head, tag = (f"{prefix}{base}" for prefix in _MIRRORED)
        if tip := await self._mirrored(mirror, head):
            branch = None if base == source.default_branch else base
            start = StartPoint((head,), commit, branch=branch)
            if commit is None and branch is None:
                return None
        elif tip := await self._mirrored(mirror, tag):
            start = StartPoint((tag,), commit)
        elif _ABBREVIATED.fullmatch(base) and (tip := await self._resolve(mirror, base)):
            start = StartPoint((), commit or tip)
        else:
            raise UnknownBaseError(f"{source.name} has no branch, tag or commit {base}.")
        if commit is not None and not await self._contains(mirror, tip, commit):
            raise UnknownBaseError(
                f"{source.name}: {base} does not contain the commit {commit[:10]}."
            )
        return start

    async def _contains(self, mirror: Path, tip: str, commit: str) -> bool:
        question = ("merge-base", "--is-ancestor", f"{commit}^{{commit}}", tip)
        try:
            await self._git.run(*question, directory=mirror)
        except GitTimeoutError:
            raise
        except SourceGitError:
            return False
        return True

    async def require_ref(self, source: RepositorySource, refs: Sequence[str]) -> None:
        """See `SandboxDriver.require_ref`."""
        mirror = self.path(source.id)
        if not mirror.is_dir():
            await self.refresh(source, _ignored)
        try:
            ref = await self._first_existing(source, refs)
        except SourceGitError as e:
            raise CloneError(f"{source.name}: its source cannot be reached.", str(e)) from e
        if ref is None:
            raise UnknownBaseError(f"{source.name}: its source has no {' or '.join(refs)}.")

    def keep_only(self, needed: Collection[str]) -> None:
        """Remove all mirrors except these and very new ones, which may not be recorded yet.

        What an earlier service left unfinished is removed, too.

        Raises:
            OSError: one could not be removed.
        """
        needed_paths = {self.path(repository_id) for repository_id in needed}
        for head in self._root.glob("[!.]*/HEAD"):
            mirror = head.parent
            if mirror not in needed_paths and time.time() - head.stat().st_mtime > _NEW_SECONDS:
                old = self._root / temporary_name(_OLD)
                mirror.rename(old)
                remove_tree(old)
        for kind in (_OLD, _NEW, OUTGOING):
            remove_abandoned(self._root, kind)

    async def start_commit(self, source: RepositorySource, report: Progress) -> str | None:
        """Return the commit a workspace starts from: the default branch, else the source's HEAD.

        None when the repository has no commit. A source with its own start starts there.

        Raises:
            CloneError: that start is required and cannot be fetched.
        """
        if source.start is not None:
            try:
                return await self._start_point(source, source.start)
            except CloneError as e:
                if source.start.required:
                    raise
                report(Concern(f"{e} Starting from the branch {source.default_branch}"))
        mirror = self.path(source.id)
        commit = await self._resolve(mirror, f"refs/heads/{source.default_branch}")
        if commit:
            return commit
        commit = await self._resolve(mirror, HEAD_REF)
        if commit:
            line = f"{source.name}: there is no branch {source.default_branch}; "
            report(Concern(line + "starting from its HEAD"))
        return commit

    async def _start_point(self, source: RepositorySource, start: StartPoint) -> str:
        """Fetch a commit that may be on no branch of the source."""
        mirror = self.path(source.id)
        if start.commit is not None and (commit := await self._resolve(mirror, start.commit)):
            return commit
        if start.commit is None:
            for ref in start.refs:
                if commit := await self._mirrored(mirror, ref):
                    return commit
        refs = [ref for ref in start.refs if _REF.fullmatch(ref) and ".." not in ref]
        description = " or ".join(start.refs) or start.commit
        async with self._locks[source.id]:
            await asyncio.to_thread(self._prepare, source.id)
            try:
                ref = await self._first_existing(source, refs) if refs else None
                if ref is None:
                    raise CloneError(f"{source.name}: its source has no {description}.")
                target = f"{STARTS}/{ref.removeprefix('refs/')}"
                _, reach = await self.origin(source)
                options = (*reach, *_FETCH_OPTIONS, "origin", f"+{ref}:{target}")
                seconds = FIRST_FETCH_SECONDS
                await self._git.run(*options, directory=mirror, private=False, seconds=seconds)
            except SourceGitError as e:
                raise CloneError(
                    f"{source.name}: {description} could not be fetched.", str(e)
                ) from e
        commit = await self._resolve(mirror, start.commit or target)
        if commit is None:
            raise CloneError(f"{source.name}: {ref} no longer has the commit {start.commit}.")
        return commit

    async def origin(self, source: RepositorySource) -> tuple[str, tuple[str, ...]]:
        """Return the address that a mirror is fetched from, and git's options to reach it.

        It differs from the source's own when that is redirected.

        Raises:
            CloneError: its host may not be reached now.
        """
        mirror = self.path(source.id)
        try:
            address = await self._query(mirror, "config", "--get", "remote.origin.url")
            private = self._private and await self._may_be_private(mirror)
            return address, await network_options(address, private)
        except NotARepositoryError as e:
            raise CloneError(f"{source.name}: {e}", e.details) from e

    async def _may_be_private(self, mirror: Path) -> bool:
        kept = await self._answer(str(mirror), "config", "--get", "quarterdeck.private")
        return kept != "false"

    async def _first_existing(self, source: RepositorySource, refs: Sequence[str]) -> str | None:
        mirror = self.path(source.id)
        _, reach = await self.origin(source)
        question = (*reach, "ls-remote", "--", "origin", *refs)
        seconds = QUERY_SECONDS
        output = await self._git.run(*question, directory=mirror, private=False, seconds=seconds)
        existing = {line.partition("\t")[2] for line in output.splitlines()}
        return next((ref for ref in refs if ref in existing), None)

    def _prepare(self, repository_id: str) -> None:
        """Prepare a fetch. Call with the lock of the repository."""
        self._root.mkdir(parents=True, mode=0o700, exist_ok=True)
        write_configuration(self._git.configuration)
        remove_remains(self.path(repository_id))

    async def _connect(
        self, repository_id: str, new: Path, url: str, branch: str | None, private: bool
    ) -> MirrorInfo:
        try:
            await self._git.run("init", "--quiet", "--bare", "--template=", str(new))
            source = await self._fetch(new, url, FIRST_FETCH_SECONDS, private)
        except SourceGitError as e:
            raise CloneError(f"{without_password(url)} could not be fetched.", str(e)) from e
        default = source.head or await self._likely_branch(new)
        # The branch of a repository without a commit has a name, but does not exist yet.
        if branch not in (None, default) and not await self._resolve(new, f"refs/heads/{branch}"):
            raise UnknownBranchError(f"{without_password(url)} has no branch {branch}.")
        (new / "HEAD").write_text(f"ref: refs/heads/{default}\n")
        if not self.path(repository_id).is_dir():
            await asyncio.to_thread(new.rename, self.path(repository_id))
        else:
            await self._fetch(self.path(repository_id), url, FIRST_FETCH_SECONDS, private)
        return MirrorInfo(
            default_branch=default, suggested_name=name_from(source.url), url=source.url
        )

    async def _fetch(self, mirror: Path, url: str, seconds: float, private: bool | None) -> Source:
        if private is None:
            private = await self._may_be_private(mirror)
        source = await self._locate(mirror, url, private)
        reach = await network_options(source.url, private and self._private)
        head = [f"+HEAD:{HEAD_REF}"] if source.born else []
        fetch = [*reach, *_FETCH, *head]
        await self._git.run(*fetch, directory=mirror, private=False, seconds=seconds)
        return source

    async def _locate(self, mirror: Path, url: str, private: bool) -> Source:
        """Find the repository at an address, and set it as the mirror's `origin`."""
        path = await asyncio.to_thread(local_path, url)
        address = url.strip() if path is None else await self._top_level(path)
        for _ in range(_REDIRECTIONS):
            text = _CONFIGURATION.format(url=quoted(address), private=str(private).lower())
            await asyncio.to_thread(write_file, mirror / "config", text, mode=None, durable=False)
            if path is not None:
                return await self._read_local(address)
            reach = await network_options(address, private and self._private)
            found = await self._read_remote(mirror, address, reach)
            if isinstance(found, Source):
                return found
            address = found
        raise NotARepositoryError(f"{without_password(url)} is redirected too often.")

    async def _top_level(self, path: Path) -> str:
        for question in ("--show-toplevel", "--absolute-git-dir"):
            try:
                return await self._query(path, "rev-parse", question)
            except GitTimeoutError:
                raise
            except SourceGitError as e:
                error = str(e)
        raise NotARepositoryError(f"{path} is not a git repository.", error)

    async def _read_local(self, address: str) -> Source:
        head = await self._answer(address, "symbolic-ref", "--quiet", "HEAD")
        commit = await self._answer(address, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
        return Source(address, _branch(head), born=commit is not None)

    async def _read_remote(self, mirror: Path, address: str, reach: Sequence[str]) -> Source | str:
        """Return the repository, or the address that this one is redirected to."""
        trace = mirror / "redirection"
        trace.unlink(missing_ok=True)
        try:
            output = await self._git.run(
                *(*reach, "ls-remote", "--symref", "origin", "HEAD"),
                directory=mirror,
                private=False,
                seconds=QUERY_SECONDS,
                # git names the target of a redirection that it does not follow only there.
                variables={"GIT_TRACE_CURL": str(trace), "GIT_TRACE_CURL_NO_DATA": "1"},
            )
        except SourceGitError as e:
            if _MOVED.search(str(e)) and (target := _redirected(address, trace)):
                return target
            visible_address = without_password(address)
            raise NotARepositoryError(
                f"git cannot read {visible_address}.", str(e).replace(address, visible_address)
            ) from e
        finally:
            trace.unlink(missing_ok=True)
        heads = [line.split("\t")[0] for line in output.splitlines() if line.endswith("\tHEAD")]
        target = next(
            (line.removeprefix("ref: ") for line in heads if line.startswith("ref: ")), None
        )
        return Source(address, _branch(target), born=bool(heads))

    async def _query(self, path: Path | str, *question: str) -> str:
        return await self._git.run(
            *question, directory=Path(path), private=False, seconds=QUERY_SECONDS
        )

    async def _answer(self, path: str, *question: str) -> str | None:
        try:
            return await self._query(path, *question) or None
        except GitTimeoutError:
            raise
        except SourceGitError:
            return None

    async def _resolve(self, mirror: Path, name: str) -> str | None:
        question = ("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}")
        return await self._answer(str(mirror), *question)

    async def _mirrored(self, mirror: Path, ref: str) -> str | None:
        """Return the commit of a branch or tag in the mirror; its name may be anything."""
        if not ref.startswith(_MIRRORED):
            return None
        try:
            await self._git.run("check-ref-format", ref)
        except SourceGitError:
            return None
        return await self._resolve(mirror, ref)

    async def _likely_branch(self, mirror: Path) -> str:
        """Return a default branch for a source with a detached HEAD."""
        form = "--format=%(refname:lstrip=2)"
        at_head = await self._answer(
            str(mirror), "for-each-ref", form, f"--points-at={HEAD_REF}", "refs/heads"
        )
        names = (await self._answer(str(mirror), "for-each-ref", form, "refs/heads") or "").split()
        usual = [name for name in ("main", "master") if name in names]
        return next(iter([*(at_head or "").split(), *usual, *names, "main"]))


def _ignored(line: str) -> None:
    """Ignore a failed fetch: the last fetched state is used."""


def _branch(ref: str | None) -> str | None:
    prefix = "refs/heads/"
    return ref.removeprefix(prefix) if ref and ref.startswith(prefix) else None


def _redirected(address: str, trace: Path) -> str | None:
    """Return the repository's address that a redirection leads to; None when it is no repository's."""
    found = _LOCATION.findall(trace.read_text(errors="replace"))
    try:
        target = urljoin(address.rstrip("/") + _ADVERTISED, found[-1]) if found else ""
    except ValueError:  # brackets that do not match
        return None
    if not target.startswith(("http://", "https://")) or not target.endswith(_ADVERTISED):
        return None
    return target.removesuffix(_ADVERTISED)
