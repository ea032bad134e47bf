"""Saves of replicas whose files are not on this machine (`wire.saves`), in `saves/WORKSPACE.git`.

engine.saving -> pack -> the save (alternates: the mirrors of its repositories)

What an agent wrote is checked while it arrives, as when it is pushed. All refs change at once.

A save is checked before it is used: each time whether its objects exist, and once whether they can be
read. A damaged one is kept as `WORKSPACE.damaged-N.git`, and replaced by what can be read of it
(`save_repair`).
"""

import asyncio
import logging
import re
import shutil
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterable, Collection, Sequence
from contextlib import aclosing
from itertools import count
from pathlib import Path

from pydantic import ValidationError

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.errors import SandboxError, SaveRepairedError
from quarterdeck.sandboxes.git import SourceGitError, remove_remains
from quarterdeck.sandboxes.layout import places_of
from quarterdeck.sandboxes.mirrors import Mirrors
from quarterdeck.sandboxes.outgoing import write_alternates
from quarterdeck.sandboxes.port import KeptContent, KeptFile, RepositorySource
from quarterdeck.sandboxes.record import load_book, store_book
from quarterdeck.sandboxes.save_fork import fork_save
from quarterdeck.sandboxes.save_repair import SaveRepair, find_damage, read_work
from quarterdeck.sandboxes.trees import remove_tree
from quarterdeck.wire.base import first_error, utc_now
from quarterdeck.wire.json_size import VALUES_LIMIT, has_too_many_values
from quarterdeck.wire.saves import FILES_REF, HEADER_REF, SAVED_REF, SaveFork, WorkSave, saved_refs

HEADER_BYTES = 16 << 20
"""Most bytes of the first line."""
MOST_PARTS = 1_000_000
"""Most parts of all names of refs: each may be a directory on the service's disk."""
DEEPEST_REF = 200
"""Most parts of one name: directories are copied and removed one in the other."""
MOST_PACKS = 20
"""With more of them, what is not needed any more is removed."""
TIDY_SECONDS = 900.0
_SAVED = SAVED_REF.removeprefix("refs/")
_PLAIN_FILES = (b"100644", b"100755")
_OBJECT = re.compile(r"[0-9a-f]{40}")
_DURABLE = ("-c", "core.fsync=committed,loose-object,reference")
"""git itself does not bring all of this to the disk."""
_TIDY = (
    *("-c", "pack.threads=1", "-c", "pack.windowMemory=256m", "-c", "core.bigFileThreshold=64m"),
    *("gc", "--quiet", "--prune=now"),
)

log = logging.getLogger(__name__)


class Saves:
    """All saves of an installation; `SavedWork` of the port."""

    def __init__(self, home: Home, mirrors: Mirrors) -> None:
        self._home = home
        self._mirrors = mirrors
        self._git = mirrors.git
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._read: set[str] = set()
        """Workspaces whose save was read completely, and could be."""
        self.notices: dict[str, str] = {}
        """By workspace: that its save was damaged, for a person who was not told yet."""

    def _path(self, workspace_id: str) -> Path:
        return self._home.saves / f"{workspace_id}.git"

    async def known(self, workspace_id: str, sources: Sequence[RepositorySource]) -> list[str]:
        """Return what need not be sent, with all that it consists of.

        Raises:
            SandboxError: the save is damaged and cannot be repaired, or a mirror is damaged.
        """
        async with self._locks[workspace_id]:
            try:
                await self._repair(workspace_id)
            except (SourceGitError, OSError) as e:
                raise SandboxError("The replica's save cannot be checked.", str(e)) from e
        mirrors = [self._mirrors.path(source.id) for source in sources]
        known: set[str] = set()
        for path in (self._path(workspace_id), *mirrors):
            if await asyncio.to_thread(path.is_dir):
                try:
                    refs = await self._refs(path)
                except SourceGitError as e:
                    raise SandboxError(f"{path} is damaged.", str(e)) from e
                known |= {one for kind, one, _ in refs if kind in ("commit", "tree")}
                # The next save does not descend from this one: its files have to be named.
                known |= {f"{one}^{{tree}}" for _, one, name in refs if name.endswith(f"/{_SAVED}")}
        return sorted(known)

    async def receive(
        self,
        workspace_id: str,
        sources: Sequence[RepositorySource],
        output: AsyncGenerator[bytes],
    ) -> WorkSave:
        """Store the output of `engine.saving`; return what it says.

        Raises:
            SandboxError: it is damaged or too large, or the disk is full. The earlier save stays.
            SaveRepairedError: the earlier save was damaged.
        """
        place = self._path(workspace_id)
        async with self._locks[workspace_id], aclosing(output):
            try:
                await self._prepare(place, sources)
                work, rest = await read_header(output)
                await self._git.index_pack(place, rest)
                await self._store(place, work, {source.id for source in sources})
                if len(list(place.glob("objects/pack/*.pack"))) > MOST_PACKS:
                    await self._git.run(*_TIDY, directory=place, seconds=TIDY_SECONDS)
            except SourceGitError as e:
                self._read.discard(workspace_id)
                if await self._is_repaired(workspace_id):
                    raise SaveRepairedError("The replica's save was damaged.", str(e)) from e
                raise SandboxError("The replica's work cannot be saved.", str(e)) from e
            except OSError as e:
                raise SandboxError("The save cannot be written.", str(e)) from e
        return work

    async def newest(self, workspace_id: str) -> WorkSave | None:
        """Return the last save of a workspace, as far as it can be read."""
        async with self._locks[workspace_id]:
            await self._is_repaired(workspace_id)
            return await self._header(self._path(workspace_id))

    async def _header(self, place: Path) -> WorkSave | None:
        if not await asyncio.to_thread(place.is_dir):
            return None
        try:
            return await read_work(self._git, place, HEADER_REF)
        except (SourceGitError, ValidationError):
            return None  # the first one was not finished

    async def _is_repaired(self, workspace_id: str) -> bool:
        """As `_repair`; a failure of that is logged."""
        try:
            return await self._repair(workspace_id)
        except (SourceGitError, SandboxError, OSError):
            log.exception("The save of %s could not be checked or repaired", workspace_id)
            return False

    async def _repair(self, workspace_id: str) -> bool:
        """Replace the save if it is damaged; return whether it was. The caller holds its lock.

        Raises:
            SourceGitError, SandboxError, OSError: that failed. It can be repeated.
        """
        place = self._path(workspace_id)
        part = place.with_suffix(".part")
        if await asyncio.to_thread(_replaced, place, part):
            return False
        book = await asyncio.to_thread(load_book, places_of(self._home, workspace_id).clones)
        mirrors = {id: self._mirrors.path(id) for id in book.clones}
        borrowed = [self._mirrors.objects(id) for id in mirrors]
        if not all(path.is_dir() for path in borrowed):
            return False  # without what it borrows nothing can be said
        if borrowed:  # the installation's directory may have been moved
            await asyncio.to_thread(write_alternates, place / "objects/info", *borrowed)
        await asyncio.to_thread(remove_remains, place)
        damage = await find_damage(self._git, place, contents=workspace_id not in self._read)
        if damage is None:
            self._read.add(workspace_id)
            return False
        aside = await asyncio.to_thread(_free_place, place)
        log.error("The save of %s is damaged, and kept as %s: %s", workspace_id, aside, damage)
        names = {id: clone.directory for id, clone in book.clones.items()}
        bases = {id: clone.base_commit for id, clone in book.clones.items()}
        await SaveRepair(self._git, place, part, mirrors, names, bases).run()
        await asyncio.to_thread(place.rename, aside)
        await asyncio.to_thread(part.rename, place)
        self._read.add(workspace_id)
        self.notices[workspace_id] = (
            f"The replica's save was damaged. It is kept as {aside}, and was replaced by one with"
            " what could be read of it. The next save has everything again that the replica has."
        )
        return True

    async def files(self, workspace_id: str, prefix: str) -> list[KeptFile]:
        """Return the plain files below a directory of the volume, as they were saved."""
        listed = await self._show(workspace_id, "ls-tree", "-rlz", FILES_REF, "--", prefix)
        kept: list[KeptFile] = []
        for line in listed.split(b"\0")[:-1]:
            about, _, name = line.partition(b"\t")
            mode, _, _, size = about.split()
            if mode in _PLAIN_FILES:
                kept.append(KeptFile(name.removeprefix(prefix.encode()), int(size)))
        return kept

    async def file(self, workspace_id: str, path: str, most: int) -> KeptContent | None:
        """Return one of them, `most` bytes of it; None when it was not saved."""
        if "\n" in path:
            return None
        asked = f"{FILES_REF}:{path}\n".encode(errors="surrogateescape")
        answer = await self._show(workspace_id, "cat-file", "--batch", data=asked)
        about, _, content = answer.partition(b"\n")
        if not about.endswith(b" %d" % len(content)) or b" blob " not in about:
            return None
        return KeptContent(len(content), content[:most])

    async def _show(self, workspace_id: str, *arguments: str, data: bytes | None = None) -> bytes:
        place = self._path(workspace_id)
        if not await asyncio.to_thread(place.is_dir):
            return b""
        try:
            text = await self._git.run(*arguments, directory=place, data=data)
        except SourceGitError as e:
            raise SandboxError("The replica's save cannot be read.", str(e)) from e
        return text.encode(errors="surrogateescape")

    async def upload_pack(
        self, workspace_id: str, body: bytes | None, protocol: str
    ) -> AsyncGenerator[bytes]:
        """Serve one request of a fetch from a save.

        Raises:
            SandboxError: there is none.
        """
        try:
            running = self._git.upload_pack(self._path(workspace_id), body, protocol)
            async with aclosing(running) as parts:
                async for part in parts:
                    yield part
        except SourceGitError as e:
            self._read.discard(workspace_id)  # the next start reads it completely
            raise SandboxError("The replica's save cannot be read.", str(e)) from e

    async def fork(self, source_id: str, workspace_id: str, fork: SaveFork) -> None:
        """Give a workspace without files a copy of another one's save, to start from; safe to repeat.

        Raises:
            SandboxError: the other one has no save, or it cannot be copied.
        """
        source, place = self._path(source_id), self._path(workspace_id)
        part = place.with_suffix(".fork")
        async with self._locks[source_id]:
            if await asyncio.to_thread(place.is_dir):
                return
            await self._is_repaired(source_id)
            work = await self._header(source)
            if work is None:
                raise SandboxError("The other replica has no save; it has to be woken first.")
            book = await asyncio.to_thread(load_book, places_of(self._home, source_id).clones)
            book.incarnations = []
            try:
                await asyncio.to_thread(remove_tree, part)
                await asyncio.to_thread(shutil.copytree, source, part)
                await fork_save(self._git, part, work, fork)
                target = places_of(self._home, workspace_id)
                await asyncio.to_thread(target.root.mkdir, parents=True, mode=0o700, exist_ok=True)
                await asyncio.to_thread(store_book, target.clones, book)
                await asyncio.to_thread(part.rename, place)
            except (SourceGitError, OSError, shutil.Error) as e:
                raise SandboxError("The other replica's save cannot be copied.", str(e)) from e

    async def remove(self, workspace_id: str) -> None:
        """Remove the save of a workspace, with its damaged ones."""
        self._read.discard(workspace_id)
        self.notices.pop(workspace_id, None)
        async with self._locks.pop(workspace_id, asyncio.Lock()):
            for place in await asyncio.to_thread(
                lambda: [*self._home.saves.glob(f"{workspace_id}.*")]
            ):
                await asyncio.to_thread(remove_tree, place)

    async def _prepare(self, place: Path, sources: Sequence[RepositorySource]) -> None:
        if not await asyncio.to_thread((place / "HEAD").exists):
            await asyncio.to_thread(self._home.saves.mkdir, mode=0o700, exist_ok=True)
            # A reader takes a directory of this name for a whole repository.
            is_new = not await asyncio.to_thread(place.exists)
            made = place.with_suffix(".new") if is_new else place
            await self._git.run("init", "--quiet", "--bare", "--template=", str(made))
            if is_new:
                await asyncio.to_thread(made.rename, place)
        objects = [self._mirrors.objects(source.id) for source in sources]
        there = [path for path in objects if path.is_dir()]
        await asyncio.to_thread(write_alternates, place / "objects/info", *there)

    async def _store(self, place: Path, work: WorkSave, repositories: Collection[str]) -> None:
        """Let all refs name what was received."""
        earlier = await self._header(place)
        kept = {saved_refs(id) for id in work.failed}
        if earlier is not None:
            failed = {id: head for id, head in earlier.heads.items() if id in work.failed}
            work.heads = {**failed, **work.heads}
        require_own_refs(work, repositories)
        work.at = utc_now()
        header = work.model_copy(update={"refs": {}}).model_dump_json(by_alias=True).encode()
        stored = (*_DURABLE, "hash-object", "-w", "--stdin")
        written = await self._git.run(*stored, directory=place, data=header)
        wanted = {**work.refs, HEADER_REF: written}
        old = [ref for _, _, ref in await self._refs(place) if ref not in wanted]
        gone = [ref for ref in old if not ref.startswith(tuple(f"{one}/" for one in kept))]
        lines = [
            *(f"delete {ref}\0\0" for ref in gone),
            *(f"update {ref}\0{object}\0\0" for ref, object in wanted.items()),
        ]
        changed = (*_DURABLE, "update-ref", "-z", "--stdin")
        await self._git.run(*changed, directory=place, data="".join(lines).encode())

    async def _refs(self, path: Path) -> list[tuple[str, str, str]]:
        """Return type, object and name of each ref."""
        listed = ("for-each-ref", "--format=%(objecttype) %(objectname) %(refname)")
        lines = (await self._git.run(*listed, directory=path)).splitlines()
        return [(kind, object, name) for kind, object, name in (one.split(" ", 2) for one in lines)]


def _replaced(place: Path, part: Path) -> bool:
    """Finish a replacement that was cut off; return whether there is nothing else to do."""
    if not place.is_dir():
        if part.is_dir():
            part.rename(place)
        return True
    return False


def _free_place(place: Path) -> Path:
    """Return a name for a damaged save that no other one has."""
    names = (place.with_name(f"{place.stem}.damaged-{number}.git") for number in count(1))
    return next(name for name in names if not name.exists())


def require_own_refs(work: WorkSave, repositories: Collection[str]) -> None:
    """Check that a save names objects for refs of its own repositories, and nothing else.

    Raises:
        SandboxError: it does not, or the names have too many parts.
    """
    parts = [ref.count("/") for ref in work.refs]
    if sum(parts) > MOST_PARTS or max(parts, default=0) > DEEPEST_REF:
        raise SandboxError(
            "The replica's work cannot be saved.",
            f"The names of its branches and tags have more than {MOST_PARTS:,} parts, or one has more "
            f"than {DEEPEST_REF}.",
        )
    owned = (*(f"{saved_refs(id)}/" for id in repositories), FILES_REF)
    for ref, object in work.refs.items():
        if not ref.startswith(owned) or "\0" in ref or not _OBJECT.fullmatch(object):
            raise SandboxError("The replica's work cannot be saved.", f"{ref}: {object}")


async def read_header(output: AsyncIterable[bytes]) -> tuple[WorkSave, AsyncIterable[bytes]]:
    """Return the first line, and the pack that follows it.

    Raises:
        SandboxError: the line is damaged, too long or missing.
    """
    head = bytearray()  # what is added to it is not copied: the replica chooses the chunks
    async for chunk in output:
        end = chunk.find(b"\n")
        head += chunk if end < 0 else chunk[:end]
        if len(head) > HEADER_BYTES:
            break
        if end >= 0:
            return _as_save(bytes(head)), _from(chunk[end + 1 :], output)
    raise SandboxError("The replica sent no save.")


def _as_save(line: bytes) -> WorkSave:
    refused = "What the replica sent cannot be read."
    if has_too_many_values(line):
        raise SandboxError(refused, f"It has more than {VALUES_LIMIT} values.")
    try:
        return WorkSave.model_validate_json(line)
    except ValidationError as e:
        raise SandboxError(refused, first_error(e)) from e


async def _from(start: bytes, rest: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    yield start
    async for chunk in rest:
        yield chunk
