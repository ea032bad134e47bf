"""The service's bare mirror of each connected repository.

Workspaces borrow a mirror's objects, so none is ever pruned: no automatic maintenance, no expiry. It
goes as a whole once nothing needs it. A mirror only fetches; the repository it comes from is never
written to.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from quarterdeck.sandboxes.git import (
    Git,
    GitError,
    GitTimeoutError,
    quoted,
    write_configuration,
)
from quarterdeck.sandboxes.port import (
    CloneError,
    Concern,
    MirrorInfo,
    NotARepositoryError,
    Progress,
    RepositorySource,
)
from quarterdeck.sandboxes.removal import passing_name, remove_abandoned, remove_tree
from quarterdeck.sandboxes.sources import Source, local_path, name_from, safe_name, without_password

_NEW, _OLD = "new", "old"
_NEW_SECONDS = 3600.0
HEAD_REF = "refs/quarterdeck/HEAD"
"""Where the source's HEAD is kept: it may be on no branch."""

FIRST_FETCH_SECONDS = 1800.0
REFRESH_SECONDS = 120.0
LOOK_SECONDS = 30.0

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
"""
_FETCH = (
    *("fetch", "--quiet", "--prune", "--no-tags", "--update-shallow", "--no-write-fetch-head"),
    *("--no-auto-maintenance", "--recurse-submodules=no", "origin"),
    *("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"),
)


class Mirrors:
    """All mirrors of an installation, each a directory named by its repository's id."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._git = Git(root / "gitconfig")
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def git(self) -> Git:
        return self._git

    def path(self, repository_id: str) -> Path:
        return self._root / safe_name(repository_id)

    def objects(self, repository_id: str) -> Path:
        return self.path(repository_id) / "objects"

    async def connect(self, repository_id: str, url: str) -> MirrorInfo:
        """Makes a mirror, or brings the one of this id up to date.

        Raises:
            NotARepositoryError: nothing there that git can read.
            CloneError: it could not be fetched.
        """
        async with self._locks[repository_id]:
            await asyncio.to_thread(self._prepare)
            await asyncio.to_thread(remove_abandoned, self._root, _NEW)
            new = self._root / passing_name(_NEW)
            try:
                return await self._connect(repository_id, new, url)
            finally:
                await asyncio.to_thread(remove_tree, new)

    async def refresh(self, source: RepositorySource, report: Progress) -> None:
        """Brings a mirror up to date; a source that cannot be reached now is only reported.

        Raises:
            NotARepositoryError, CloneError: there is no mirror, and none could be made.
        """
        if not self.path(source.id).is_dir():
            await self.connect(source.id, source.url)
            return
        async with self._locks[source.id]:
            await asyncio.to_thread(self._prepare)
            try:
                await self._fetch(self.path(source.id), source.url, REFRESH_SECONDS)
            except (GitError, NotARepositoryError) as e:
                reason = str(e.args[0]).strip().splitlines()[-1]
                line = f"{source.name}: its source cannot be reached now ({reason}); "
                report(Concern(line + "going on with what was fetched before"))

    def keep(self, needed: Collection[str]) -> None:
        """Removes all mirrors but these, and those that were just made: who made them notes it.

        Raises:
            OSError: one could not be removed.
        """
        kept = {self.path(repository_id) for repository_id in needed}
        for head in self._root.glob("[!.]*/HEAD"):
            mirror = head.parent
            if mirror not in kept and time.time() - head.stat().st_mtime > _NEW_SECONDS:
                old = self._root / passing_name(_OLD)
                mirror.rename(old)
                remove_tree(old)
        remove_abandoned(self._root, _OLD)

    async def start_commit(self, source: RepositorySource, report: Progress) -> str | None:
        """The commit a workspace starts from: the default branch, else the source's HEAD.

        None when the repository has no commit.
        """
        mirror = self.path(source.id)
        found = await self._resolve(mirror, f"refs/heads/{source.default_branch}")
        if found:
            return found
        found = await self._resolve(mirror, HEAD_REF)
        if found:
            line = f"{source.name}: there is no branch {source.default_branch}; "
            report(Concern(line + "starting from its HEAD"))
        return found

    def _prepare(self) -> None:
        self._root.mkdir(parents=True, mode=0o700, exist_ok=True)
        write_configuration(self._git.configuration)

    async def _connect(self, repository_id: str, new: Path, url: str) -> MirrorInfo:
        try:
            await self._git.run("init", "--quiet", "--bare", "--template=", str(new))
            found = await self._fetch(new, url, FIRST_FETCH_SECONDS)
        except GitError as e:
            raise CloneError(f"{without_password(url)} could not be fetched.", str(e)) from e
        default = found.head or await self._likely_branch(new)
        (new / "HEAD").write_text(f"ref: refs/heads/{default}\n")
        if not self.path(repository_id).is_dir():
            await asyncio.to_thread(new.rename, self.path(repository_id))
        else:
            await self._fetch(self.path(repository_id), url, FIRST_FETCH_SECONDS)
        return MirrorInfo(
            default_branch=default, suggested_name=name_from(found.url), url=found.url
        )

    async def _fetch(self, mirror: Path, url: str, seconds: float) -> Source:
        source = await self._look(mirror, url)
        head = [f"+HEAD:{HEAD_REF}"] if source.born else []
        fetch = [*_FETCH, *head] if source.born else _FETCH
        await self._git.run(*fetch, directory=mirror, private=False, seconds=seconds)
        return source

    async def _look(self, mirror: Path, url: str) -> Source:
        """Finds the repository at an address, and notes it in the mirror as `origin`."""
        path = await asyncio.to_thread(local_path, url)
        address = url.strip() if path is None else await self._top_level(path)
        text = _CONFIGURATION.format(url=quoted(address))
        await asyncio.to_thread((mirror / "config").write_text, text)
        if path is None:
            return await self._look_far(mirror, address)
        return await self._look_here(address)

    async def _top_level(self, path: Path) -> str:
        for question in ("--show-toplevel", "--absolute-git-dir"):
            try:
                return await self._ask(path, "rev-parse", question)
            except GitTimeoutError:
                raise
            except GitError as e:
                said = str(e)
        raise NotARepositoryError(f"{path} is no git repository.", said)

    async def _look_here(self, address: str) -> Source:
        head = await self._answer(address, "symbolic-ref", "--quiet", "HEAD")
        commit = await self._answer(address, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
        return Source(address, _branch(head), born=commit is not None)

    async def _look_far(self, mirror: Path, address: str) -> Source:
        try:
            said = await self._git.run(
                *("ls-remote", "--symref", "origin", "HEAD"),
                directory=mirror,
                private=False,
                seconds=LOOK_SECONDS,
            )
        except GitError as e:
            shown = without_password(address)
            raise NotARepositoryError(
                f"git cannot read {shown}.", str(e).replace(address, shown)
            ) from e
        heads = [line.split("\t")[0] for line in said.splitlines() if line.endswith("\tHEAD")]
        pointed = next(
            (line.removeprefix("ref: ") for line in heads if line.startswith("ref: ")), None
        )
        return Source(address, _branch(pointed), born=bool(heads))

    async def _ask(self, path: Path | str, *question: str) -> str:
        return await self._git.run("-C", str(path), *question, private=False, seconds=LOOK_SECONDS)

    async def _answer(self, path: str, *question: str) -> str | None:
        try:
            return await self._ask(path, *question) or None
        except GitTimeoutError:
            raise
        except GitError:
            return None

    async def _resolve(self, mirror: Path, name: str) -> str | None:
        question = ("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}")
        return await self._answer(str(mirror), *question)

    async def _likely_branch(self, mirror: Path) -> str:
        """A default branch for a source whose HEAD is on none."""
        form = "--format=%(refname:lstrip=2)"
        here = await self._answer(
            str(mirror), "for-each-ref", form, f"--points-at={HEAD_REF}", "refs/heads"
        )
        names = (await self._answer(str(mirror), "for-each-ref", form, "refs/heads") or "").split()
        usual = [name for name in ("main", "master") if name in names]
        return next(iter([*(here or "").split(), *usual, *names, "main"]))


def _branch(ref: str | None) -> str | None:
    prefix = "refs/heads/"
    return ref.removeprefix(prefix) if ref and ref.startswith(prefix) else None
