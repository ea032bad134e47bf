"""Brings the work of a replica into the user's repository.

Only `apply` and `merge` change the checkout, each all or nothing. The trees and commits are made
first, outside the checkout. Then they are noted in `qd-pending.json` in git's directory, the files
are changed, and the note is removed; an interrupted change is completed by the next call. Meanwhile
`index.lock` keeps other git processes away.
"""

import asyncio
import json
import os
import shutil
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Literal

from quarterdeck.local.files import write_file
from quarterdeck.local.git import CheckoutError
from quarterdeck.local.repository import LocalRepository, copy_index, split_names
from quarterdeck.local.tree_changes import (
    SUBMODULE,
    TreeChange,
    entry,
    has_other_files,
    is_in_the_way,
    read_changes,
    read_link_or_file,
    remove_files,
)

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
OWN_PREFIX = "qd/"
"""Prefix of replicas' branches, in the replica and in the user's repository."""
PENDING = "qd-pending.json"
START_REF = "refs/qd/start"
"""In a replica: the commit with the uncommitted changes that it started from, if there were any."""
_FETCH = (
    *("-c", "protocol.version=2", "-c", "fetch.fsckObjects=true", "-c", "fetch.uriProtocols="),
    *("fetch", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"),
)
MOST_FILES = 500_000
"""Most files that a replica may change here at once: a few commits can name any number of them."""
FILE_BYTES = 8 << 30
"""Most bytes of those files: compressed, a thousandth of that may come."""
_REBASE = "qd-rebase-"
_REBASE_SECONDS = 86_400.0
"""A rebase that is older was killed."""
_SAME_LINES = "Nothing was changed here: the replica and this branch changed the same lines."
_LOCAL_CHANGES = "Nothing was changed here: these files have local changes."
MergeStrategy = Literal["merge", "squash", "rebase"]


class DivergedError(CheckoutError):
    """The local branch has commits that the replica's branch does not have."""


class OverlapError(CheckoutError):
    """The changes touch `files`, which have changes here."""

    def __init__(self, message: str, files: Sequence[str]) -> None:
        super().__init__(message, ", ".join(files))
        self.files = list(files)


class ConflictingLinesError(OverlapError):
    """The same lines of `files` were changed here and in the replica."""


@dataclass(frozen=True)
class _Step:
    """A change of the checkout: from one tree to another and, for a merge, from commit to commit."""

    tree_from: str
    tree_to: str
    commit_from: str | None = None
    commit_to: str | None = None


class LocalCheckout(LocalRepository):
    """A work tree that can receive the work of a replica."""

    bounded: ClassVar[bool] = True

    async def fetch(
        self, address: str, source: str, branch: str, *, force: bool = False, progress: bool = False
    ) -> str:
        """Fetch a branch of a replica into a branch here; return its newest commit.

        Args:
            address: of the replica, such as `qd::fix-login`.
            source: the replica's branch.
            branch: the branch here. The checkout stays as it is.
            force: replace a branch that has diverged.
            progress: print the progress to standard error.

        Raises:
            DivergedError: the branch here has other commits.
        """
        refspec = f"{'+' if force else ''}refs/heads/{source}:refs/heads/{branch}"
        options = ("--progress",) if progress else ()
        try:
            await self._git(*_FETCH, *options, address, refspec, printed=progress)
        except CheckoutError as error:
            if "non-fast-forward" in (error.details or ""):
                raise DivergedError(
                    f"The local branch {branch} has diverged from the replica's.", error.details
                ) from error
            raise
        return await self._text("rev-parse", f"refs/heads/{branch}")

    async def apply(self, patch: bytes, replica: str | None = None) -> list[str]:
        """Apply a patch to the files, without committing or staging it; return their names.

        Later commits of the checkout are merged with it.

        Args:
            patch: all changes of a replica.
            replica: its address. Files that still are as it started with them may change.

        Raises:
            OverlapError: the same lines were committed differently here, or a file has changes.
        """
        await self.complete()
        before = await self._optional("rev-parse", "--quiet", "--verify", "HEAD^{tree}")
        async with self._index() as index:
            await self._git("read-tree", before or EMPTY_TREE, index=index)
            try:
                options = ("--cached", "--3way", "--whitespace=nowarn")
                await self._git("apply", *options, "-", index=index, data=patch)
            except CheckoutError as error:
                output = await self._git(
                    "diff", "--name-only", "--diff-filter=U", "-z", index=index
                )
                if files := split_names(output):
                    raise ConflictingLinesError(
                        "Nothing was changed: these files were changed differently here.", files
                    ) from error
                raise
            after = await self._text("write-tree", index=index)
        return await self._advance(_Step(before or EMPTY_TREE, after), replica)

    async def merge(
        self, branch: str, strategy: MergeStrategy, message: str, replica: str | None = None
    ) -> str | None:
        """Merge a branch into the one that is checked out; return the new commit.

        Return None when everything was already there.

        Args:
            strategy: `merge` fast-forwards where it can, `squash` makes one commit, `rebase` puts
                the branch's commits on top of those here.
            message: of the commit, if one is made.
            replica: its address. Files that still are as it started with them may change.

        Raises:
            OverlapError: there are conflicts, or a file that would change has changes.
        """
        await self.complete()
        head = await self._optional("rev-parse", "--quiet", "--verify", "HEAD")
        incoming = await self._text("rev-parse", f"refs/heads/{branch}^{{commit}}")
        if head is None:
            commit = incoming
        elif await self._is_ancestor(incoming, head):
            return None
        elif strategy == "rebase":
            commit = await self._rebased(head, incoming)
        elif strategy == "merge" and await self._is_ancestor(head, incoming):
            commit = incoming
        else:
            tree = await self._merged(head, incoming)
            parents = ["-p", head, *(("-p", incoming) if strategy == "merge" else ())]
            commit = await self._commit(tree, parents, message)
        tree_from = await self._text("rev-parse", f"{head}^{{tree}}") if head else EMPTY_TREE
        tree_to = await self._text("rev-parse", f"{commit}^{{tree}}")
        await self._advance(_Step(tree_from, tree_to, head or "", commit), replica)
        return commit

    async def complete(self) -> bool:
        """Complete a change that was interrupted; return whether there was one."""
        try:
            step = _Step(**json.loads(await asyncio.to_thread(self._pending.read_text)))
        except FileNotFoundError:
            return False
        head = await self._optional("rev-parse", "--quiet", "--verify", "HEAD") or ""
        if step.commit_to is not None and head not in (step.commit_from, step.commit_to):
            raise CheckoutError(
                "A merge was interrupted here, and the branch has moved since.",
                f"Check the files, then remove {self._pending}.",
            )
        changes = await self._changes(step)
        edited = [change.path for change in changes if not await self._is_ours(change)]
        if edited:
            raise OverlapError(
                f"A change was interrupted here, and files were edited since. Check them, then"
                f" remove {self._pending}.",
                edited,
            )
        for name in ("index.lock", "index.lock.lock"):  # ours, and git's
            (self.git_directory / name).unlink(missing_ok=True)
        paths = [change.path for change in changes if change.new is not None]
        removed = [change.path for change in changes if change.new is None]
        async with self._index() as index:
            await self._git("read-tree", step.tree_to, index=index)
            try:
                await self._write(paths, index)
            except CheckoutError as error:
                raise CheckoutError(
                    "A change was interrupted here, and git refuses to complete it.",
                    f"{error.details or error}\nCheck the files, then remove {self._pending}.",
                ) from error
        await asyncio.to_thread(remove_files, self.top, removed)
        async with self._locked():
            if step.commit_to is not None:
                head_tree = f"{step.commit_from}^{{tree}}" if step.commit_from else EMPTY_TREE
                started = await self._changes(_Step(head_tree, step.tree_from))
                await self._update_index(self._lock, started)
                trees = (step.tree_from, step.tree_to)
                await self._git("read-tree", "-i", "-m", *trees, index=self._lock)
            await self._finish(step)
        return True

    # a change, all or nothing

    async def _advance(self, step: _Step, replica: str | None) -> list[str]:
        """Change the files from one tree to another."""
        changes = await self._changes(step)
        edited = await self._edited(step, changes)
        started = await self._same(step, changes, edited)
        others = [path for path in edited if path not in {change.path for change in started}]
        if others and replica is not None:
            started += await self._started(step, changes, others, replica)
        if started:
            step = replace(step, tree_from=await self._tree(step.tree_from, started))
            changes = await self._changes(step)
            remaining = set(edited) - {change.path for change in started}
            edited = [
                *(path for path in edited if path in remaining),
                *(
                    path
                    for path in await self._edited(step, changes, started)
                    if path not in remaining
                ),
            ]
        if edited:
            raise OverlapError(_LOCAL_CHANGES, edited)
        if not changes and step.commit_to is None:
            return []
        await self._refuse_large(changes)
        async with self._locked():
            await asyncio.to_thread(self._note, step)
            try:
                if started:
                    await self._update_index(self._lock, started)
                    await self._refresh(self._lock)  # git then treats them as unchanged
                trees = (step.tree_from, step.tree_to)
                await self._git("read-tree", "-m", "-u", *trees, index=self._lock)
            except CheckoutError as error:
                # Such as a filter of the user's that failed after some files.
                try:
                    await self._restore(changes)
                except CheckoutError as second:
                    raise CheckoutError(
                        "git failed while it wrote files, and could not put all of them back."
                        " The next apply or merge completes the change.",
                        f"{error.details or error}\n{second.details or second}",
                    ) from error
                await asyncio.to_thread(self._pending.unlink)
                raise
            await self._finish(step)
        return [change.path for change in changes]

    async def _restore(self, changes: Sequence[TreeChange]) -> None:
        """Put the files that a failed change has written back, as they are in the index in `_lock`.

        Files that the user has edited meanwhile stay as they are.
        """
        self._lock.with_name("index.lock.lock").unlink(missing_ok=True)  # of a git that was killed
        await self._refresh(self._lock)
        named = await self._git("diff-files", "--name-only", "-z", index=self._lock)
        touched = set(split_names(named))
        ours = [
            change
            for change in changes
            if (change.old is None or change.path in touched) and await self._was_written(change)
        ]
        created = [change.path for change in ours if change.old is None]
        await asyncio.to_thread(remove_files, self.top, created)
        paths = {one.path for one in ours if one.old is not None}
        # Those with attributes first: by them the others are written.
        first = {path for path in paths if Path(path).name == ".gitattributes"}
        for names in (first, paths - first):
            await self._write(sorted(names), self._lock)

    async def _was_written(self, change: TreeChange) -> bool:
        """Return whether a file is what git left of a change, and not what the user has written since."""
        if self._is_missing(change.path):
            return True
        try:
            return await self._is_ours(change)
        except CheckoutError:
            return False  # a filter of the user's fails, so it cannot be compared

    async def _write(self, paths: Sequence[str], index: Path) -> None:
        """Write files as they are in an index."""
        data = b"".join(os.fsencode(path) + b"\0" for path in paths)
        await self._git("checkout-index", "--force", "-z", "--stdin", index=index, data=data)

    async def _refuse_large(self, changes: Sequence[TreeChange]) -> None:
        """Refuse files that together would fill the disk."""
        blobs = [one.new for one in changes if one.new is not None and one.new_mode != SUBMODULE]
        if not blobs:
            return
        asked = ("cat-file", "--batch-check=%(objectsize)")
        sizes = (await self._git(*asked, data="\n".join(blobs).encode())).split()
        if (size := sum(map(int, sizes))) > FILE_BYTES:
            raise CheckoutError(
                f"Nothing was changed: the replica's files have {size / (1 << 30):.1f} GB.",
                f"At most {FILE_BYTES >> 30} GB are written at once.",
            )

    async def _same(
        self, step: _Step, changes: Sequence[TreeChange], edited: Sequence[str]
    ) -> list[TreeChange]:
        """Return the changes to files that already are as they would become, by git's comparison.

        An earlier `apply` may have written them, or the replica started with them.
        """
        paths = set(edited)
        candidates = [
            change
            for change in changes
            if change.path in paths and SUBMODULE not in (change.old_mode, change.new_mode)
        ]
        if not candidates:
            return []
        async with self._index(copied=True) as index:
            await self._update_index(index, candidates)
            await self._refresh(index)
            arguments = ("diff-index", "--name-only", "--no-renames", "-z", step.tree_to)
            differing = set(split_names(await self._git(*arguments, index=index)))
        same = [
            change
            for change in candidates
            if change.path not in differing
            and (change.new is not None or self._is_missing(change.path))
        ]
        return await self._unstaged(step, same)

    async def _started(
        self, step: _Step, changes: Sequence[TreeChange], edited: Sequence[str], replica: str
    ) -> list[TreeChange]:
        """Return the changes to `step.tree_from` that a replica started with.

        Left out are edited files that the replica did not start with, and whose edit the change
        would undo.

        An agent can move the reference, but only to files whose content here it knows exactly.
        """
        try:
            arguments = ("-c", "protocol.version=2", "ls-remote", replica, START_REF)
            lines = (line.split("\t") for line in (await self._text(*arguments)).splitlines())
            commit = next((commit for commit, ref in lines if ref == START_REF), None)
            if commit is None:
                return []
            await self._git(*_FETCH, replica, commit)
            initial = await self._changes(_Step(step.tree_from, f"{commit}^{{tree}}"))
        except CheckoutError as error:
            raise OverlapError(_LOCAL_CHANGES, edited) from error
        target = {change.path: change for change in changes if change.path in edited}
        started = [
            change
            for change in initial
            if change.path in target
            and SUBMODULE not in (change.old_mode, change.new_mode)
            and not await self._undoes(change, target[change.path])
        ]
        return await self._unstaged(step, started)

    async def _unstaged(self, step: _Step, changes: Sequence[TreeChange]) -> list[TreeChange]:
        """Leave out, when the index is to change, files of which it has another content."""
        if step.commit_to is None:
            return list(changes)
        staged = await self._staged()
        return [
            change
            for change in changes
            if staged.get(change.path)
            in (entry(change.old_mode, change.old), entry(change.new_mode, change.new))
        ]

    async def _undoes(self, started: TreeChange, change: TreeChange) -> bool:
        """Return whether a change undoes an edit, as that of a commit without the edit does."""
        if started.old is None or started.new is None or change.new is None:
            return False
        if started.new_mode != started.old_mode == change.new_mode:
            return True
        with TemporaryDirectory(prefix="qd-edit-") as directory:
            files = [Path(directory, name) for name in ("edited", "before", "after")]
            for file, blob in zip(files, (started.new, started.old, change.new), strict=True):
                await asyncio.to_thread(file.write_bytes, await self._git("cat-file", "blob", blob))
            try:
                both = await self._git("merge-file", "--stdout", *map(str, files))
            except CheckoutError:
                return False  # the edited lines were changed again, or the file is binary
            return both != await asyncio.to_thread(files[-1].read_bytes)

    async def _staged(self) -> dict[str, str]:
        """Return the index entries by path, without files with conflicts."""
        entries: dict[str, str] = {}
        for line in split_names(await self._git("ls-files", "--stage", "-z", "--full-name")):
            staged, _, path = line.partition("\t")
            entries[path] = staged.removesuffix(" 0")
        return entries

    async def _update_index(self, index: Path, changes: Sequence[TreeChange]) -> None:
        """Update an index to the files after changes."""
        lines = [
            f"{entry(change.new_mode, change.new) or entry('0', '0' * len(change.old or ''))}\t{change.path}\0"
            for change in changes
        ]
        options = ("update-index", "-z", "--index-info")
        if lines:
            await self._git(*options, index=index, data=os.fsencode("".join(lines)))

    async def _refresh(self, index: Path) -> None:
        with suppress(CheckoutError):  # its status only says that something has changed
            await self._git("update-index", "-q", "--refresh", index=index)

    async def _tree(self, tree: str, changes: Sequence[TreeChange]) -> str:
        """Return a tree with changes applied."""
        if not changes:
            return tree
        async with self._index() as index:
            await self._git("read-tree", tree, index=index)
            await self._update_index(index, changes)
            return await self._text("write-tree", index=index)

    async def _finish(self, step: _Step) -> None:
        if step.commit_to is not None:
            await asyncio.to_thread(self._lock.replace, self.git_directory / "index")
            update = ("update-ref", "-m", "qd: merge", "HEAD", step.commit_to)
            head = await self._optional("rev-parse", "--quiet", "--verify", "HEAD")
            if head != step.commit_to:
                await self._git(*update, step.commit_from or "0" * len(step.commit_to))
        await asyncio.to_thread(self._pending.unlink)

    @property
    def _pending(self) -> Path:
        return self.git_directory / PENDING

    @property
    def _lock(self) -> Path:
        return self.git_directory / "index.lock"

    @asynccontextmanager
    async def _locked(self) -> AsyncGenerator[None]:
        """Keep other git processes away, as git does; `_lock` is a copy of the index meanwhile."""
        try:
            os.close(os.open(self._lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except FileExistsError as error:
            raise CheckoutError(
                "Another git process seems to be running in this repository.",
                f"If not, remove {self._lock}.",
            ) from error
        try:
            await asyncio.to_thread(copy_index, self.git_directory / "index", self._lock)
            yield
        finally:
            self._lock.unlink(missing_ok=True)

    def _note(self, step: _Step) -> None:
        write_file(self._pending, json.dumps(asdict(step)), mode=None)

    async def _changes(self, step: _Step) -> list[TreeChange]:
        arguments = ("diff-tree", "-r", "-z", "--no-renames", step.tree_from, step.tree_to)
        output = await self._git(*arguments)
        if output.count(b"\0") > 2 * MOST_FILES:
            raise CheckoutError(f"The replica's changes are of more than {MOST_FILES:,} files.")
        return read_changes(output)

    async def _edited(
        self, step: _Step, changes: Sequence[TreeChange], started: Sequence[TreeChange] = ()
    ) -> list[str]:
        """Return the changed files that have local changes, and files in the way of new ones.

        Args:
            started: in the tree that the step starts with, but not in the index.
        """
        async with self._index(copied=True) as index:
            await self._update_index(index, started)
            await self._refresh(index)
            arguments = ("diff-index", "--name-only", "--no-renames", "-z", step.tree_from)
            changed = set(split_names(await self._git(*arguments, index=index)))
        return await asyncio.to_thread(self._overlaps, changes, changed)

    def _overlaps(self, changes: Sequence[TreeChange], changed: set[str]) -> list[str]:
        removed = {change.path for change in changes if change.new is None}
        return [
            change.path
            for change in changes
            if change.path in changed
            or (change.old is None and is_in_the_way(self.top, change.path, removed))
            or (change.replaces_submodule and has_other_files(self.top, change.path, ()))
        ]

    def _is_missing(self, path: str) -> bool:
        return not os.path.lexists(self.top / path)

    async def _is_ours(self, change: TreeChange) -> bool:
        """Return whether a file is as before the change, as after it, or half written."""
        current = await self._hash(change.path)
        if current is None or current in (change.old, change.new):
            return True
        if change.new is None:
            return False
        link, data = await asyncio.to_thread(read_link_or_file, self.top / change.path)
        filters = () if link else ("--filters", f"--path={change.path}")
        whole = await self._git("cat-file", *(filters or ("blob",)), change.new)
        return whole.startswith(data)

    async def _hash(self, path: str) -> str | None:
        """Return the object that a file would become; None when there is no file."""
        try:
            link, data = await asyncio.to_thread(read_link_or_file, self.top / path)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        filters = ("--no-filters",) if link else ("--path", path)
        return await self._text("hash-object", "--stdin", *filters, data=data)

    # trees and commits

    async def _merged(self, ours: str, incoming: str) -> str:
        """Return the tree of a merge."""
        try:
            return await self._text("merge-tree", "--write-tree", ours, incoming)
        except CheckoutError as error:
            output = await self._git(
                *("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z"),
                *(ours, incoming),
                allowed=(0, 1),
            )
            if files := split_names(output)[1:]:
                raise ConflictingLinesError(_SAME_LINES, files) from error
            raise

    async def _rebased(self, head: str, incoming: str) -> str:
        """Rebase commits onto `head`, in a separate work tree; return the newest."""
        await asyncio.to_thread(_remove_old, self.git_directory)
        await self._git("worktree", "prune")
        # In git's directory, which the user's tools ignore.
        with TemporaryDirectory(prefix=_REBASE, dir=self.git_directory) as directory:
            path = Path(directory, "tree")
            await self._git("worktree", "add", "--quiet", "--detach", str(path), incoming)
            checkout = replace(self, top=path, git_directory=path)
            try:
                await checkout._git("rebase", "--quiet", head)
                return await checkout._text("rev-parse", "HEAD")
            except CheckoutError as error:
                output = await checkout._git("diff", "--name-only", "--diff-filter=U", "-z")
                if files := split_names(output):
                    raise ConflictingLinesError(_SAME_LINES, files) from error
                raise
            finally:
                await self._git("worktree", "remove", "--force", str(path))

    async def _commit(self, tree: str, parents: Sequence[str], message: str) -> str:
        signed = await self._optional("config", "--type=bool", "commit.gpgSign") == "true"
        options = [*parents, *(["-S"] if signed else []), "-F", "-"]
        return await self._text("commit-tree", tree, *options, data=message.encode())

    async def _is_ancestor(self, first: str, second: str) -> bool:
        try:
            await self._git("merge-base", "--is-ancestor", first, second)
        except CheckoutError:
            return False
        return True


def _remove_old(git_directory: Path) -> None:
    """Remove work trees of rebases that were killed."""
    for path in git_directory.glob(f"{_REBASE}*"):
        if time.time() - path.stat().st_mtime > _REBASE_SECONDS:
            shutil.rmtree(path)
