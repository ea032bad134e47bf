"""Damage of a save, and a new one with what can still be read of it.

find_damage -> SaveRepair: every ref whose objects can be read; for the newest files a tree without
those that cannot, else the newest checkpoint

The damaged repository is neither changed nor opened: its refs are read as files, and its objects are
borrowed until they are copied.
"""

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from quarterdeck.sandboxes.git import GitRunner, GitTimeoutError, SourceGitError
from quarterdeck.sandboxes.outgoing import write_alternates
from quarterdeck.sandboxes.trees import remove_tree
from quarterdeck.wire.saves import (
    FILES_REF,
    HEADER_REF,
    SAVED_REF,
    SAVES,
    STASHES,
    WorkSave,
    saved_refs,
)

CHECK_SECONDS = 900.0
_OBJECT = re.compile(r"[0-9a-f]{40}")
_NOT_DAMAGE = (
    *("git failed without output", "git is not installed", "Out of memory"),
    *("Cannot allocate memory", "Resource temporarily unavailable", "Too many open files"),
)
_COMMITTER = {
    f"GIT_{who}_{field}": value
    for who in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "quarterdeck"), ("EMAIL", "quarterdeck@localhost"))
}


async def find_damage(git: GitRunner, place: Path, contents: bool) -> str | None:
    """Return what is wrong with a save, or None.

    Args:
        contents: read the objects as well. Otherwise it is only checked that they exist.

    Raises:
        SourceGitError: git cannot be run, or takes too long.
    """
    opened = {"GIT_DIR": str(place)}
    walked = ("rev-list", "--objects", "--quiet", "--all", "--not", "--alternate-refs")
    try:
        await git.run(*walked, variables=opened, seconds=CHECK_SECONDS)
        indexes = await asyncio.to_thread(lambda: [*place.glob("objects/pack/*.idx")])
        if contents and indexes:
            verified = ("verify-pack", "--", *map(str, indexes))
            await git.run(*verified, variables=opened, seconds=CHECK_SECONDS)
        listed = await git.run("for-each-ref", "--format=%(refname)", variables=opened)
        if not listed:
            return None  # the first save was not finished
        work = await read_work(git, place, HEADER_REF)
    except SourceGitError as e:
        if isinstance(e, GitTimeoutError) or any(text in str(e) for text in _NOT_DAMAGE):
            raise
        return str(e)
    except ValidationError as e:
        return str(e)
    needed = {FILES_REF, *(_saved_ref(id) for id in work.heads)}
    missing = needed.difference(listed.splitlines())
    return f"Refs are missing: {', '.join(sorted(missing))}" if missing else None


async def read_work(git: GitRunner, place: Path, header: str) -> WorkSave:
    """Return what a save says about itself.

    Raises:
        SourceGitError, ValidationError: it cannot be read.
    """
    text = await git.run("cat-file", "blob", header, variables={"GIT_DIR": str(place)})
    return WorkSave.model_validate_json(text)


def _saved_ref(repository_id: str) -> str:
    return SAVED_REF.replace("refs", saved_refs(repository_id), 1)


class SaveRepair:
    """Makes a new repository from a damaged save. Created for one repair.

    Args:
        place: the damaged save.
        part: where the new one is made.
        mirrors: of its repositories, by their ids.
        names: of its repositories, for a person.
        bases: the commits from which the replica's branches start.
    """

    def __init__(
        self,
        git: GitRunner,
        place: Path,
        part: Path,
        mirrors: Mapping[str, Path],
        names: Mapping[str, str],
        bases: Mapping[str, str | None],
    ) -> None:
        self._git = git
        self._place = place
        self._part = part
        self._mirrors = mirrors
        self._names = names
        self._bases = bases
        self._known: list[str] = []
        self._found: dict[str, str | None] = {}
        self._kept: dict[str, str] = {}
        self._lost: list[str] = []

    async def run(self) -> None:
        """Make it. Its header says what was lost.

        Raises:
            SourceGitError, DiskFullError, OSError: that failed.
        """
        await asyncio.to_thread(remove_tree, self._part)
        await self._git.run("init", "--quiet", "--bare", "--template=", str(self._part))
        borrowed = [path / "objects" for path in self._mirrors.values()]
        information = self._part / "objects/info"
        await asyncio.to_thread(write_alternates, information, *borrowed, self._place / "objects")
        for mirror in self._mirrors.values():
            listed = ("for-each-ref", "--format=%(objectname)")
            self._known += (await self._git.run(*listed, directory=mirror)).split()
        self._found = await asyncio.to_thread(read_refs, self._place)
        objects = {object for object in self._found.values() if object is not None}
        copied = await self._copy(sorted(objects))
        self._kept = {
            ref: one for ref, one in self._found.items() if one is not None and one in copied
        }
        await self._store(await self._repaired())
        await asyncio.to_thread(write_alternates, information, *borrowed)

    async def _repaired(self) -> WorkSave:
        """Choose other objects for the refs that were lost; return the new header."""
        work = WorkSave(refs={}, heads={})
        if HEADER_REF in self._kept:
            with suppress(SourceGitError, ValidationError):
                work = await read_work(self._git, self._part, self._kept.pop(HEADER_REF))
        repositories = {name.split("/")[2] for name in self._found if name.count("/") > 2}
        for id in sorted(repositories):
            await self._repair_repository(id, work)
        if FILES_REF not in self._kept:
            await self._repair_files()
        for ref in self._found:
            if ref not in self._kept and ref != HEADER_REF:
                self._lost.append(self._described(ref))
        work.lost = [*dict.fromkeys(self._lost)]
        return work

    async def _repair_repository(self, id: str, work: WorkSave) -> None:
        name, place, saved_ref = self._names.get(id, id), saved_refs(id), _saved_ref(id)
        base, head = self._bases.get(id), work.heads.get(id)
        checkpoint = await self._newest(self._checkpoints(place))
        tips = [await self._parent(checkpoint), base]
        if saved_ref not in self._kept:
            chosen = await self._partial_commit(name, self._found.get(saved_ref), tips)
            if chosen is None:
                branch = self._kept.get(head.replace("refs", place, 1)) if head else None
                chosen = await self._newest([one for one in (branch, checkpoint) if one])
                what = "all of its work" if chosen is None else "its newest changes"
                self._lost.append(f"{name}: {what}")
            chosen = chosen or base
            if chosen is None:
                work.heads.pop(id, None)
                return
            self._kept[saved_ref] = chosen
        saved = self._kept[saved_ref]
        tip = base if saved == base else await self._parent(saved)
        if head is None:
            head = self._branch_at(place, tip) or tip
        elif not head.startswith("refs/"):
            head = head if head in await self._copy([head]) else tip
        elif (ref := head.replace("refs", place, 1)) not in self._kept and tip is not None:
            self._kept[ref] = tip
            self._lost.append(f"{name}: the newest commits of {head.removeprefix('refs/heads/')}")
        if head is not None:
            work.heads[id] = head

    async def _partial_commit(
        self, name: str, commit: str | None, tips: Sequence[str | None]
    ) -> str | None:
        """Return a commit with those files of another one that can be read; None if there is none."""
        tree = commit and await self._parsed(f"{commit}^{{tree}}")
        if not tree:
            return None
        partial = await self._partial_tree(tree)
        if partial is None:
            return None
        parents = [one for one in (await self._parent(commit), *tips) if one is not None]
        parent: list[str] = []
        for one in parents:
            if not parent and one in await self._copy([one]):
                parent = ["-p", one]
        made = ("commit-tree", partial[0], *parent, "-m", "Saved")
        copy = await self._run(*made, variables=_COMMITTER)
        if copy not in await self._copy([copy]):
            return None
        self._lost += [f"{name}/{path}" for path in partial[1]]
        return copy

    async def _repair_files(self) -> None:
        tree = self._found.get(FILES_REF)
        partial = await self._partial_tree(tree) if tree else None
        if partial is None:
            self._lost.append("the canvas and the sessions of agents")
            self._kept[FILES_REF] = await self._run("mktree", data=b"")
        else:
            self._kept[FILES_REF], lost = partial
            self._lost += lost

    async def _partial_tree(self, tree: str) -> tuple[str, list[str]] | None:
        """Return a tree with the files of another one that can be read, and the paths of the rest."""
        try:
            listed = await self._run("ls-tree", "-r", "-z", "--full-tree", tree)
        except SourceGitError:
            return None
        entries = [(line.split(" ", 2), line) for line in listed.split("\0") if line]
        blobs = {rest[:40] for (_, kind, rest), _ in entries if kind == "blob"}
        there = await self._in_mirrors(blobs)
        there |= await self._copy(sorted(blobs - there), walked=False)
        kept = [line for (_, kind, rest), line in entries if kind != "blob" or rest[:40] in there]
        made = await self._git.write_tree(self._part, kept)
        # git did not write the trees that it could borrow from the damaged repository.
        if made not in await self._copy([made]):
            return None
        lines = {*kept}
        return made, [line.partition("\t")[2] for _, line in entries if line not in lines]

    async def _in_mirrors(self, objects: Collection[str]) -> set[str]:
        data = "".join(f"{object}\n" for object in objects).encode()
        there: set[str] = set()
        for mirror in self._mirrors.values() if objects else ():
            asked = ("cat-file", "--batch-check=%(objectname)")
            lines = (await self._git.run(*asked, directory=mirror, data=data)).splitlines()
            there |= {line for line in lines if _OBJECT.fullmatch(line)}
        return there

    async def _copy(self, objects: Sequence[str], walked: bool = True) -> set[str]:
        """Copy the objects that can be read; return them.

        Args:
            walked: with all that they consist of, except what the mirrors have.
        """
        if not objects:
            return set()
        excluded = [f"^{object}" for object in self._known] if walked else []
        data = "".join(f"{line}\n" for line in (*objects, *excluded)).encode()
        packed = ("pack-objects", "--quiet", "--non-empty", *(("--revs",) if walked else ()))
        try:
            await self._run(*packed, str(self._part / "objects/pack/pack"), data=data)
            return {*objects}
        except GitTimeoutError:
            raise
        except SourceGitError:
            if len(objects) == 1:
                return set()
        middle = len(objects) // 2
        first = await self._copy(objects[:middle], walked)
        return first | await self._copy(objects[middle:], walked)

    def _checkpoints(self, place: str) -> list[str]:
        stashes = STASHES.replace("refs", place, 1)
        return [
            object
            for name, object in self._kept.items()
            if name.startswith(f"{place}/qd/") and not name.startswith(f"{stashes}/")
        ]

    async def _newest(self, commits: Sequence[str]) -> str | None:
        """Return the newest of some commits; of several the first."""
        if not commits:
            return None
        data = "".join(f"{commit}\n" for commit in commits).encode()
        chosen = ("rev-list", "--no-walk=sorted", "--max-count=1", "--stdin")
        return await self._run(*chosen, data=data) or None

    def _branch_at(self, place: str, commit: str | None) -> str | None:
        heads = f"{place}/heads/"
        names = (
            name for name, one in self._kept.items() if name.startswith(heads) and one == commit
        )
        return next((name.replace(place, "refs", 1) for name in sorted(names)), None)

    async def _parent(self, commit: str | None) -> str | None:
        return commit and await self._parsed(f"{commit}^")

    async def _parsed(self, revision: str) -> str | None:
        with suppress(SourceGitError):
            return await self._run("rev-parse", "--quiet", "--verify", revision)
        return None

    async def _run(
        self,
        *arguments: str,
        data: bytes | None = None,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        opened = {"GIT_DIR": str(self._part), **variables}
        return await self._git.run(*arguments, data=data, variables=opened, seconds=CHECK_SECONDS)

    async def _store(self, work: WorkSave) -> None:
        header = work.model_dump_json(by_alias=True).encode()
        written = await self._run("hash-object", "-w", "--stdin", data=header)
        lines = (
            f"update {ref}\0{one}\0\0" for ref, one in {**self._kept, HEADER_REF: written}.items()
        )
        await self._run("update-ref", "-z", "--stdin", data="".join(lines).encode())

    def _described(self, ref: str) -> str:
        """Return a lost ref for a person."""
        _, _, id, kind, *rest = ref.split("/")
        name = "/".join(rest)
        match kind, rest:
            case "heads", _:
                what = f"branch {name}"
            case "tags", _:
                what = f"tag {name}"
            case _, ["stash", *_]:
                what = "a stash"
            case _:
                what = "a checkpoint"
        return f"{self._names.get(id, id)}: {what}"


def read_refs(place: Path) -> dict[str, str | None]:
    """Return the refs in the files of a save; None for one that names nothing."""
    refs: dict[str, str | None] = {}
    with suppress(OSError):
        for line in (place / "packed-refs").read_text(errors="replace").splitlines():
            object, _, name = line.partition(" ")
            if _OBJECT.fullmatch(object) and name.startswith(f"{SAVES}/"):
                refs[name] = object
    for path in (place / SAVES).rglob("*"):
        if path.is_file():
            text = path.read_text(errors="replace").strip()
            refs[str(path.relative_to(place))] = text if _OBJECT.fullmatch(text) else None
    return refs
