"""The driver for replicas in containers, over whatever starts these (`container_engine`).

The container's engine process dials home (`switchboard`), fetches its configuration once, clones the
repositories from the service's mirrors, and keeps everything on the workspace's volume. Of the
workspace's directory in the installation there is only the book of its clones.
"""

import asyncio
import errno
import gzip
import logging
import zlib
from collections import defaultdict
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Collection,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from uuid import uuid4

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.clones import boot_clone, described, free_name, git_identity
from quarterdeck.sandboxes.container_engine import ContainerEngine, Launch, output_of
from quarterdeck.sandboxes.errors import (
    ArchiveError,
    DiskFullError,
    EngineAwayError,
    NotAwakeError,
    ProcessError,
    SandboxError,
)
from quarterdeck.sandboxes.git import SourceGitError
from quarterdeck.sandboxes.layout import packed_file, packed_files, places_of
from quarterdeck.sandboxes.mirrors import Mirrors
from quarterdeck.sandboxes.port import (
    Absence,
    Isolation,
    KeptContent,
    KeptFile,
    Layout,
    Progress,
    RepositorySource,
    Size,
    UncommittedCommit,
)
from quarterdeck.sandboxes.record import CloneBook, CloneEntry, load_book, store_book
from quarterdeck.sandboxes.saves import Saves
from quarterdeck.sandboxes.switchboard import Switchboard, digest_of, new_token
from quarterdeck.sandboxes.trees import remove_tree
from quarterdeck.wire.dial_home import (
    BOOT_VARIABLE,
    HOME_CA_NAME,
    HOME_CA_VARIABLE,
    BootClone,
    BootConfig,
)
from quarterdeck.wire.engine import EngineConfig
from quarterdeck.wire.git_state import EngineRepository
from quarterdeck.wire.inside import HOME_VARIABLE, WORKSPACE_VARIABLE

_PART = 1 << 20
_LIST = 'find "$1" -type f -printf "%P\\0%s\\0" 2>/dev/null | head -c "$2"'
_LISTED_BYTES = 10 << 20
"""Of the names and sizes of files: about 100,000 of them."""
_PACK = 'tar -C "$1" -c . && printf %s "$2"'
"""Prints an archive and a mark: a connection that breaks can look like the end of a command."""
_READ_SECONDS = 120.0
"""How long reading a kept file may take: programs inside may exchange it for a pipe at any moment."""
_SIZE_BYTES = 32
"""Of the line with a file's size, before its content."""
_READ = '[ -f "$1" ] && [ ! -L "$1" ] || exit 0; stat -c %s -- "$1"; exec head -c "$2" -- "$1"'
_COPY = 'cd /source && exec cp --archive --no-target-directory -- "$1" "$2"'

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HomeAddress:
    """Where containers reach this service: a URL, empty while there is none.

    `ca` is the certificate, in PEM, that they check the service's against; without it they trust the
    authorities of their image.
    """

    url: str = ""
    ca: str | None = None


class ContainerDriver:
    """A `SandboxDriver` over a container engine.

    Args:
        home: the installation.
        mirrors: of its repositories.
        containers: what starts the containers.
        address: returns where containers reach this service.
    """

    def __init__(
        self,
        home: Home,
        mirrors: Mirrors,
        containers: ContainerEngine,
        address: Callable[[], HomeAddress],
    ) -> None:
        self._home = home
        self._mirrors = mirrors
        self._containers = containers
        self._address = address
        self._clones: dict[str, list[BootClone]] = {}
        self._configs: dict[str, str] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._reports: dict[str, Progress] = {}
        self.switchboard = Switchboard(self._wanted_digest, self._adopt, containers.has_volume)
        self.saved_work = Saves(home, mirrors)

    async def _wanted_digest(self, workspace_id: str) -> str | None:
        container = await self._containers.find(workspace_id)
        return container.digest if container.is_wanted else None

    async def _reads(self, workspace_id: str) -> bool:
        """Return whether commands can run on a workspace's volume without its engine."""
        return not self._containers.moves and await self._containers.has_volume(workspace_id)

    async def _adopt(
        self, workspace_id: str, digest: str | None, repositories: Sequence[EngineRepository]
    ) -> None:
        """Note what another service has started; older saves and archives here must not replace it."""
        places = places_of(self._home, workspace_id)
        clones = {
            str(one.id): CloneEntry(directory=one.name, base_commit=one.base_commit, objects=None)
            for one in repositories
        }
        newest = [digest] if digest and self._containers.moves else []
        book = CloneBook(clones=clones, incarnations=newest, adopted=True)
        try:
            async with self._locks[workspace_id]:
                await asyncio.to_thread(places.root.mkdir, parents=True, mode=0o700, exist_ok=True)
                await asyncio.to_thread(self._archive(workspace_id).unlink, missing_ok=True)
                await self.saved_work.remove(workspace_id)
                await asyncio.to_thread(store_book, places.clones, book)
        except OSError as e:
            raise _disk_error(e) from e
        if newest:
            await self._note_files(workspace_id)

    async def isolation(self) -> Isolation:
        return await self._containers.isolation()

    async def provision(
        self,
        workspace_id: str,
        repositories: list[RepositorySource],
        branch: str,
        report: Progress,
        uncommitted: Mapping[str, UncommittedCommit] = MappingProxyType({}),
    ) -> list[EngineRepository]:
        """Choose the commits and directories of the clones; the engine makes them."""
        places = places_of(self._home, workspace_id)
        inside = self._containers.layout(workspace_id).workspace_dir
        async with self._locks[workspace_id]:
            await asyncio.to_thread(places.root.mkdir, parents=True, mode=0o700, exist_ok=True)
            book = await asyncio.to_thread(load_book, places.clones)
            clones: list[BootClone] = []
            for source in repositories:
                if source.id not in book.clones:
                    report(f"{source.name}: bringing its mirror up to date")
                    await self._mirrors.refresh(source, report)
                    base = await self._mirrors.start_commit(source, report)
                    directory = free_name(places, book, source)
                    book.clones[source.id] = CloneEntry(
                        directory=directory, base_commit=base, objects=None
                    )
                clones.append(
                    boot_clone(described(inside, book, source), source, branch, uncommitted)
                )
            await asyncio.to_thread(store_book, places.clones, book)
            self._clones[workspace_id], self._reports[workspace_id] = clones, report
            return [described(inside, book, source) for source in repositories]

    async def copy_files(self, source_id: str, workspace_id: str) -> bool:
        book = await asyncio.to_thread(load_book, places_of(self._home, source_id).clones)
        if not await self._reads(source_id):
            return False
        inside = Path(self._containers.layout(workspace_id).workspace_dir)
        part = inside.with_name("copy")
        places = places_of(self._home, workspace_id)
        async with self._locks[workspace_id]:
            if places.clones.exists():
                return True
            script = f'rm -rf "$2" && {_COPY.replace("exec ", "")} && rm -rf "$3" && mv "$2" "$3"'
            command = ("/bin/sh", "-c", script, "sh", inside.name, str(part), str(inside))
            await self._finish(workspace_id, command, "The files could not be copied.", source_id)
            await asyncio.to_thread(places.root.mkdir, parents=True, mode=0o700, exist_ok=True)
            book.incarnations = []
            await asyncio.to_thread(store_book, places.clones, book)
        return True

    async def _finish(
        self, workspace_id: str, command: Sequence[str], failure: str, source_id: str | None = None
    ) -> None:
        try:
            running = self._containers.run(workspace_id, command, source_id=source_id)
            async with aclosing(running) as parts:
                async for _ in parts:
                    pass
        except ProcessError as e:
            raise SandboxError(failure, str(e)) from e

    async def layout(self, workspace_id: str) -> Layout:
        layout, address = self._containers.layout(workspace_id), self._address()
        ca = f"{layout.run_dir}/{HOME_CA_NAME}" if address.ca is not None else None
        return replace(layout, service_url=address.url, service_ca=ca)

    async def write_config(self, workspace_id: str, text: str) -> None:
        """Keep the configuration until the engine fetches it; it is not written anywhere."""
        self._configs[workspace_id] = text

    async def start(self, workspace_id: str, size: Size = "small") -> None:
        async with self._locks[workspace_id]:
            if (await self._containers.find(workspace_id)).is_wanted:
                return
            address = self._address()
            if not address.url:
                raise EngineAwayError("The service does not listen for containers yet.")
            self.switchboard.end(workspace_id)
            token = new_token()
            book = await asyncio.to_thread(load_book, places_of(self._home, workspace_id).clones)
            save = await self.saved_work.newest(workspace_id)
            needs_files = book.adopted and save is None
            boot = BootConfig(
                config=EngineConfig.model_validate_json(self._configs.pop(workspace_id)),
                token=token,
                clones=self._clones.pop(workspace_id, []),
                git_config=await git_identity(self._mirrors.git),
                save=save,
            )
            if self._containers.moves:
                boot.incarnation, boot.newest = digest_of(token), book.incarnations
                boot.needs_files = needs_files
                await self._note_incarnations(workspace_id, *book.incarnations, digest_of(token))
            opening = self.switchboard.keep_boot(workspace_id, boot.model_dump_json(by_alias=True))
            environment = {
                HOME_VARIABLE: address.url,
                WORKSPACE_VARIABLE: workspace_id,
                BOOT_VARIABLE: opening,
            }
            if address.ca is not None:
                environment[HOME_CA_VARIABLE] = address.ca
            launch = Launch(workspace_id, digest_of(token), environment, size, needs_files)
            try:
                report = self._reports.pop(workspace_id, _ignore)
                await self._containers.start(launch, report)
                await self._until_arrived(workspace_id, token)
                if self._containers.moves:
                    await self._note_incarnations(workspace_id, digest_of(token))
                    await self._note_files(workspace_id)
            finally:
                self.switchboard.drop_boot(workspace_id)

    async def _note_incarnations(self, workspace_id: str, *incarnations: str) -> None:
        path = places_of(self._home, workspace_id).clones
        book = await asyncio.to_thread(load_book, path)
        book.incarnations = [*incarnations]
        await asyncio.to_thread(path.parent.mkdir, parents=True, mode=0o700, exist_ok=True)
        await asyncio.to_thread(store_book, path, book)

    async def _note_files(self, workspace_id: str) -> None:
        try:
            await self._containers.note_files(workspace_id)
        except SandboxError as e:
            log.warning(
                "Workspace %s cannot be taken over by another service while it sleeps: %s",
                workspace_id,
                e,
            )

    async def _until_arrived(self, workspace_id: str, token: str) -> None:
        arriving = asyncio.create_task(self.switchboard.arrived(workspace_id, token))
        ending = asyncio.create_task(self._containers.ended(workspace_id))
        try:
            await asyncio.wait({arriving, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not arriving.done():
                raise SandboxError("The replica's container ended at once.", await ending)
        finally:
            for task in (arriving, ending):
                task.cancel()
            await asyncio.gather(arriving, ending, return_exceptions=True)

    async def repositories(
        self, workspace_id: str, sources: Sequence[RepositorySource]
    ) -> list[EngineRepository]:
        inside = self._containers.layout(workspace_id).workspace_dir
        book = await asyncio.to_thread(load_book, places_of(self._home, workspace_id).clones)
        return [described(inside, book, one) for one in sources if one.id in book.clones]

    async def show_commit(
        self, workspace_id: str, repository: EngineRepository, source: RepositorySource, commit: str
    ) -> None:
        pack = self._mirrors.pack(source, commit, repository.base_commit)
        command = ("git", "-C", repository.path, "index-pack", "--stdin", "--fix-thin")
        try:
            async with aclosing(self._containers.run(workspace_id, command, data=pack)) as parts:
                async for _ in parts:
                    pass
        except (ProcessError, SourceGitError) as e:
            raise SandboxError(f"{source.name}: its news cannot be brought here.", str(e)) from e

    async def stream_command(
        self,
        workspace_id: str,
        command: Sequence[str],
        *,
        directory: str,
        data: bytes = b"",
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> AsyncGenerator[bytes]:
        if not await self._reads(workspace_id):
            raise NotAwakeError("The replica's files cannot be reached while it sleeps.")
        running = self._containers.run(
            workspace_id, command, directory=directory, data=data, environment=environment
        )
        async with aclosing(running) as parts:
            async for part in parts:
                yield part

    async def require_engine(self) -> None:
        await self._containers.require()

    def absence(self, workspace_id: str) -> Absence | None:
        # A container that is connected is reached without the container engine.
        return None if self.switchboard.has(workspace_id) else self._containers.absence

    async def alive(self, workspace_id: str) -> bool:
        return (await self._containers.find(workspace_id)).is_wanted

    async def connect(self, workspace_id: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await self.switchboard.take(workspace_id)

    async def dial(
        self, workspace_id: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await self.switchboard.take(workspace_id, port)

    async def stop(self, workspace_id: str) -> None:
        if self._containers.moves:
            book = await asyncio.to_thread(load_book, places_of(self._home, workspace_id).clones)
            if len(book.incarnations) == 1:  # the last start has connected
                await self._note_files(workspace_id)
        await self._containers.stop(workspace_id)
        self.switchboard.end(workspace_id)

    async def destroy(self, workspace_id: str) -> None:
        self.switchboard.end(workspace_id)
        await self._containers.destroy(workspace_id)
        self.switchboard.end(workspace_id)  # its token was good until then
        places = places_of(self._home, workspace_id)
        async with self._locks[workspace_id]:
            await asyncio.to_thread(remove_tree, places.root)
            await asyncio.to_thread(self._archive(workspace_id).unlink, missing_ok=True)
        await self.saved_work.remove(workspace_id)
        for kept in (self._locks, self._clones, self._configs, self._reports):
            kept.pop(workspace_id, None)

    async def tidy(self, needed: Collection[str]) -> None:
        await self._containers.tidy()
        for part in await asyncio.to_thread(lambda: [*self._home.archives.glob("*.container")]):
            await asyncio.to_thread(part.unlink, missing_ok=True)

    # Archives

    def _archive(self, workspace_id: str) -> Path:
        return self._home.archives / f"{workspace_id}.tar.gz"

    async def pack(self, workspace_id: str) -> None:
        await self.stop(workspace_id)
        archive = self._archive(workspace_id)
        async with self._locks[workspace_id]:
            if not await self._reads(workspace_id):
                if await self.saved_work.newest(workspace_id) is not None:
                    await self._containers.destroy(workspace_id)
                elif not archive.exists():
                    await self._require_readable(workspace_id)
                    raise SandboxError("The workspace has no files that could be packed.")
                return
            await asyncio.to_thread(self._home.archives.mkdir, mode=0o700, exist_ok=True)
            part = archive.with_suffix(".container")
            try:
                await self._write_archive(workspace_id, part)
                part.replace(archive)
            except ProcessError as e:
                raise SandboxError("The replica's files could not be packed.", str(e)) from e
            except OSError as e:
                raise _disk_error(e) from e
            finally:
                part.unlink(missing_ok=True)
            await self._containers.destroy(workspace_id)

    async def _write_archive(self, workspace_id: str, part: Path) -> None:
        top = str(Path(self._containers.layout(workspace_id).workspace_dir).parent)
        mark = uuid4().hex
        command = ("/bin/sh", "-c", _PACK, "sh", top, mark)
        held = b""
        with await asyncio.to_thread(gzip.open, part, "wb", 1) as file:
            async with aclosing(self._containers.run(workspace_id, command)) as parts:
                async for data in parts:
                    held += data
                    await asyncio.to_thread(file.write, held[: -len(mark)])
                    held = held[-len(mark) :]
        if held != mark.encode():  # the volume is removed next
            raise SandboxError(
                "The replica's files could not be packed: the container engine sent a part of them."
            )

    async def unpack(self, workspace_id: str, packed: bool) -> None:
        archive = self._archive(workspace_id)
        async with self._locks[workspace_id]:
            if not await asyncio.to_thread(archive.exists):
                lost = packed and not await self._containers.has_volume(workspace_id)
                # With a save the engine restores that, as it does for a lost volume.
                if lost and await self.saved_work.newest(workspace_id) is None:
                    raise ArchiveError(
                        "The archive with the replica's files is missing. "
                        "Bring it back to its place, then wake the replica.",
                        str(archive),
                    )
                if not packed:
                    await self._require_files(workspace_id)
                return
            # An archive is removed once its files are on the volume: an earlier try may have left some.
            await self._containers.destroy(workspace_id)
            try:
                await self._read_archive(workspace_id, archive)
            except (ProcessError, EOFError, gzip.BadGzipFile, zlib.error) as e:
                raise ArchiveError(
                    "The archive with the replica's files is damaged. "
                    "Put a whole copy in its place, then wake the replica.",
                    f"{archive}: {e}",
                ) from e
            await asyncio.to_thread(archive.unlink)

    async def _require_files(self, workspace_id: str) -> None:
        """Check that a start of a workspace from another service has its files, or a save of them."""
        book = await asyncio.to_thread(load_book, places_of(self._home, workspace_id).clones)
        if not book.adopted or await self._containers.has_volume(workspace_id):
            return
        if await self.saved_work.newest(workspace_id) is None:
            raise SandboxError(
                "The volume with the replica's files is missing or out of reach, and they were not "
                "saved here yet. "
                f"Their last save is saves/{workspace_id}.git in the directory of the service that "
                "had the replica before."
            )

    async def _require_readable(self, workspace_id: str) -> None:
        """Check that what cannot be read without an engine is not all that there is."""
        book = await asyncio.to_thread(load_book, places_of(self._home, workspace_id).clones)
        if book.adopted and await self.saved_work.newest(workspace_id) is None:
            raise NotAwakeError(
                "The replica's files cannot be reached while it sleeps: it was taken over from "
                "another service, and has not been saved here yet."
            )

    async def _read_archive(self, workspace_id: str, archive: Path) -> None:
        top = str(Path(self._containers.layout(workspace_id).workspace_dir).parent)
        command = ("tar", "-C", top, "-x", "-p")
        running = self._containers.run(workspace_id, command, data=_unzipped(archive))
        try:
            async with aclosing(running) as parts:
                async for _ in parts:
                    pass
        except BaseException:
            await self._containers.destroy(workspace_id)  # a part must not pass for the whole
            raise

    async def kept_files(self, workspace_id: str, directory: str) -> list[KeptFile]:
        archive = self._archive(workspace_id)
        home = Path(self._containers.layout(workspace_id).home_dir)
        if await asyncio.to_thread(archive.exists):
            prefix = f"./{home.name}/{directory}/"
            return await asyncio.to_thread(lambda: list(packed_files(archive, prefix)))
        if not await self._reads(workspace_id):
            await self._require_readable(workspace_id)
            return await self.saved_work.files(workspace_id, f"{home.name}/{directory}/")
        command = ("/bin/sh", "-c", _LIST, "sh", str(home / directory), str(_LISTED_BYTES))
        output = await self._output(workspace_id, command, _LISTED_BYTES)
        fields = output.split(b"\0")[:-1]  # the last one may be cut off
        sizes = fields[1::2]
        with _readable():
            return [
                KeptFile(name, int(size))
                for name, size in zip(fields[: 2 * len(sizes) : 2], sizes, strict=True)
            ]

    async def kept_file(
        self, workspace_id: str, directory: str, name: bytes, most: int
    ) -> KeptContent | None:
        if b".." in name.split(b"/") or b"\0" in name:
            return None
        archive = self._archive(workspace_id)
        home = Path(self._containers.layout(workspace_id).home_dir)
        text = name.decode(errors="surrogateescape")
        if await asyncio.to_thread(archive.exists):
            member = f"./{home.name}/{directory}/{text}"
            return await asyncio.to_thread(packed_file, archive, member, most)
        if not await self._reads(workspace_id):
            await self._require_readable(workspace_id)
            path = f"{home.name}/{directory}/{text}"
            return await self.saved_work.file(workspace_id, path, most)
        command = ("/bin/sh", "-c", _READ, "sh", str(home / directory / text), str(most))
        output = await self._output(workspace_id, command, most + _SIZE_BYTES)
        size, found, data = output.partition(b"\n")
        with _readable():
            return KeptContent(int(size), data) if found else None

    async def _output(self, workspace_id: str, command: Sequence[str], most: int) -> bytes:
        with _readable():
            async with asyncio.timeout(_READ_SECONDS):
                return await output_of(self._containers.run(workspace_id, command), most)


@contextmanager
def _readable() -> Generator[None]:
    try:
        yield
    except (ProcessError, TimeoutError, ValueError) as e:
        raise SandboxError("The replica's files cannot be read.", str(e) or "time-out") from e


def _ignore(line: str) -> None:
    """Drop a line of progress."""


async def _unzipped(archive: Path) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(gzip.open, archive, "rb") as file:
        while data := await asyncio.to_thread(file.read, _PART):
            yield data


def _disk_error(error: OSError) -> SandboxError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError("The disk is full. Make room, and try again.", str(error))
    return SandboxError("The archive cannot be written.", str(error))
