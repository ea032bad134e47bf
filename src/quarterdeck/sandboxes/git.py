"""Runs git, and streams its output."""

import asyncio
import logging
import os
import re
import signal
import struct
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from quarterdeck.local.files import write_file
from quarterdeck.local.git_directory import remove_git_locks, unreadable_file
from quarterdeck.local.processes import (
    ProcessRef,
    end_process,
    find,
    kill_group,
    process_ids,
    read_environment,
    read_stat,
    send,
    wait_for_exit,
)
from quarterdeck.sandboxes.errors import DiskFullError, ProcessError
from quarterdeck.sandboxes.git_limits import Limits, prefix_for, room_beside, usual_limits
from quarterdeck.sandboxes.processes import wait_for_end
from quarterdeck.sandboxes.source_port import Login, upload_pack_arguments

log = logging.getLogger(__name__)

CHUNK = 1 << 16
_ERROR_BYTES = 1 << 16
ERRORS_SECONDS = 5.0
"""How long to wait for the end of standard error once the process has ended."""


async def stream_process(
    process: asyncio.subprocess.Process, data: bytes = b""
) -> AsyncGenerator[bytes]:
    """Feed a process and yield its output. Its whole process group ends with the generator.

    Args:
        process: leads a process group; its standard streams are pipes.
        data: its whole input.

    Raises:
        ProcessError: its exit status was not 0.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    error_tail = bytearray()
    errors = asyncio.create_task(_read_end(process.stderr, error_tail), name="a process's errors")
    feeding = asyncio.create_task(_feed(process.stdin, data), name="a process's input")
    try:
        while chunk := await process.stdout.read(CHUNK):
            yield chunk
        if await wait_for_exit(process) != 0:
            # A process left by a hook may keep the pipe open.
            await asyncio.wait({errors}, timeout=ERRORS_SECONDS)
            raise ProcessError(bytes(error_tail))
    finally:
        await end_process(process)
        for task in (errors, feeding):
            task.cancel()
        await asyncio.gather(errors, feeding, return_exceptions=True)


async def _feed(stream: asyncio.StreamWriter | None, data: bytes) -> None:
    """Write all data, then close. A process that ends early does not read the rest."""
    if stream is None:
        return
    try:
        with suppress(ConnectionError):
            for start in range(0, len(data), CHUNK):
                if stream.is_closing():  # uvloop raises RuntimeError for a write after this
                    break
                stream.write(data[start : start + CHUNK])
                await stream.drain()
    finally:
        stream.close()


async def _read_end(stream: asyncio.StreamReader, end: bytearray) -> None:
    """Keep the last bytes of a stream."""
    while chunk := await stream.read(CHUNK):
        end += chunk
        del end[:-_ERROR_BYTES]


PACK_LIMIT = 4 << 30
"""Most bytes of a pack that an agent could write."""
OBJECT_LIMIT = 10_000_000
"""Most objects of such a pack."""
CHECK_MEMORY = 2 << 30
"""Most bytes of memory for checking such a pack: a small one may expand to any size."""
CHECK_SECONDS = 900
"""Most seconds of processor time for checking such a pack."""
UNFOLDED_LIMIT = 8 << 30
"""Most bytes of the objects of a pack that git keeps as files: one of up to `transfer.unpackLimit`."""
OUTPUT_LIMIT = 256 << 20
"""Most bytes of git's output, and of its errors, that are read; a remote may send any number."""
_SMALL_INDEX = 1 << 16
"""The index of such a pack is smaller than this many bytes."""
_PACK_HEADER = struct.Struct(">4sII")
"""Signature, version and number of objects: the start of a pack."""
_INDEX_PACK = (
    *("-c", "transfer.fsckObjects=true", "-c", "pack.threads=1"),
    *("index-pack", "--stdin", "--fix-thin", "--strict"),
)
_BOUNDED_MEMORY = (
    *("-c", "pack.windowMemory=256m", "-c", "pack.threads=1"),
    *("-c", "core.bigFileThreshold=64m"),
)
"""However large the objects are that a program inside asks for, git takes little memory for them."""
_TAIL_LINES = 12
_NO_MEMORY = re.compile(r"^(?:fatal|error): .*(?:out of|cannot allocate) memory", re.I | re.M)
_FULL_DISK = ("No space left on device", "Disk quota exceeded", "Out of diskspace")
_PROXIES = frozenset(("http_proxy", "https_proxy", "all_proxy"))
_PROTOCOLS, _OPEN_PROTOCOLS = "file:http:https:ssh", "file:http:https"
_UNANSWERED = re.compile(r"could not read (?:Username|Password) for '(https?://[^'\s]+)'")
"""git's message when none of the user's credential helpers has answered."""
_TOKEN_HELPER = '!f() { [ "$1" != get ] || printf "username=%s\\npassword=%s\\n" "$QD_GIT_USER" "$QD_GIT_TOKEN"; }; f'


class SourceGitError(Exception):
    """git failed. `args[0]` holds its last lines."""


class GitTimeoutError(SourceGitError):
    """git was stopped at its time limit."""


class UnreadableError(GitTimeoutError):
    """git was not started: it would wait for what is in the place of a file."""


class PackTooLargeError(SourceGitError):
    """A pack exceeds a limit."""


class GitLimitError(SourceGitError):
    """git reached its limit of memory or of processor time."""


def no_login(url: str) -> Login | None:
    """Return None: there are no credentials besides the user's."""


@dataclass(frozen=True)
class GitRunner:
    """Runs git with a fixed environment.

    `private` ignores the user's configuration (filters, templates, aliases): for mirrors and
    workspaces. Otherwise the user's configuration at `configuration` is
    read, which is needed to reach remote repositories as the user does.

    Args:
        login: returns the login for an address when the user has no credentials for it. With None
            git uses no credentials at all: neither the user's configuration, helpers and
            password files nor SSH.
        proxy: whether it uses the proxies of the service's environment, which connect by their
            own rules to what they are asked for.
    """

    configuration: Path
    login: Callable[[str], Login | None] | None = no_login
    proxy: bool = True

    async def run(
        self,
        *arguments: str,
        directory: Path | None = None,
        private: bool = True,
        seconds: float = 120.0,
        with_errors: bool = False,
        data: bytes | None = None,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """Run git to its end and return its standard output, without the last newline.

        Args:
            with_errors: also return standard error, and raise with both.
            data: its standard input.
            variables: added to its environment.

        Raises:
            GitTimeoutError: it took too long, and was killed with its children.
            UnreadableError: it was not started, because it could not read `directory`.
            DiskFullError: the disk is full.
            SourceGitError: any other failure, also when git is not installed.
        """
        fed = data is not None
        process = await self._start(arguments, directory, private, fed, variables)
        out, errors = await _finish(process, seconds, data)
        if process.returncode != 0 and not private and (login := self._login_for(errors)):
            process = await self._start(
                arguments, directory, private, variables={**variables, **login}
            )
            out, errors = await _finish(process, seconds, data)
        if with_errors:
            out = errors = out + errors
        if process.returncode != 0:
            raise _failure(errors.decode(errors="replace"), process.returncode)
        return out.decode(errors="surrogateescape").removesuffix("\n")

    def _login_for(self, errors: bytes) -> dict[str, str]:
        """Return variables that give git the login for the address that it lacked one for.

        git uses it only for that address, even when it is redirected, and none of the user's
        helpers can store it.
        """
        match = _UNANSWERED.search(errors.decode(errors="replace"))
        if match is None or self.login is None or (login := self.login(match[1])) is None:
            return {}
        key = f"credential.{match[1]}.helper"
        return {
            "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": key,
            "GIT_CONFIG_VALUE_0": "",
            "GIT_CONFIG_KEY_1": key,
            "GIT_CONFIG_VALUE_1": _TOKEN_HELPER,
            "QD_GIT_USER": login.user,
            "QD_GIT_TOKEN": login.token,
        }

    async def index_pack(self, directory: Path, data: AsyncIterable[bytes]) -> None:
        """Check a pack from an agent while it arrives, and put it into a repository.

        Raises:
            PackTooLargeError: it exceeds a limit; the part already written is left.
            GitError, DiskFullError: as `run`; what `data` raises.
        """
        arguments = (*_INDEX_PACK, f"--max-input-size={PACK_LIMIT}")
        limits = Limits(CHECK_MEMORY, CHECK_SECONDS)
        process = await self._start(arguments, directory, private=True, fed=True, limits=limits)
        try:
            await self._feed(process, _checked(data))
        except SourceGitError as e:
            if "pack exceeds maximum allowed size" in str(e):
                raise PackTooLargeError(f"They are more than {PACK_LIMIT} bytes.") from e
            if isinstance(e, GitLimitError):
                raise PackTooLargeError("Checking them takes too much memory or time.") from e
            raise
        for index in await asyncio.to_thread(_small_indexes, directory):
            await self._refuse_unfolding(directory, index)

    async def _refuse_unfolding(self, directory: Path, index: bytes) -> None:
        """Refuse a pack that would fill the disk of its receiver.

        git stores the objects of a small pack as separate files, each in full.

        Raises:
            PackTooLargeError: it would.
        """
        listed = await self.run("show-index", directory=directory, data=index)
        names = "\n".join(line.split()[1] for line in listed.splitlines())
        arguments = ("cat-file", "--batch-check=%(objectsize)")
        sizes = await self.run(*arguments, directory=directory, data=names.encode())
        if (unfolded := sum(map(int, sizes.split()))) > UNFOLDED_LIMIT:
            raise PackTooLargeError(f"They have {unfolded} bytes when they are unpacked.")

    async def _feed(
        self,
        process: asyncio.subprocess.Process,
        data: AsyncIterable[bytes],
        seconds: float = 3600.0,
    ) -> None:
        """Write data to a git process until it has ended.

        Raises:
            GitError, DiskFullError: as `run`; what `data` raises.
        """
        writing = asyncio.create_task(_write(process, data), name="git's input")
        try:
            async with asyncio.timeout(seconds):
                out, errors = await asyncio.gather(_read(process.stdout), _read(process.stderr))
                await process.wait()
                if process.returncode == 0:
                    await writing
        except TimeoutError as e:
            raise GitTimeoutError(f"git took longer than {seconds:.0f} seconds") from e
        finally:
            await _kill(process)
            writing.cancel()
            (result,) = await asyncio.gather(writing, return_exceptions=True)
        if isinstance(result, Exception):
            raise result
        if process.returncode != 0:
            raise _failure((out + errors).decode(errors="replace"), process.returncode)

    async def write_tree(self, directory: Path, entries: Sequence[str]) -> str:
        """Store files as a tree in a bare repository; return it.

        Args:
            entries: as `git ls-tree` prints them.

        Raises:
            SourceGitError: git refused, or an object is missing.
        """
        index = directory / "index"
        variables = {"GIT_DIR": str(directory), "GIT_INDEX_FILE": str(index)}
        data = "".join(f"{entry}\0" for entry in entries).encode(errors="surrogateescape")
        await asyncio.to_thread(index.unlink, missing_ok=True)
        await self.run("update-index", "-z", "--index-info", data=data, variables=variables)
        tree = await self.run("write-tree", variables=variables)
        await asyncio.to_thread(index.unlink, missing_ok=True)
        return tree

    async def upload_pack(
        self, directory: Path, body: bytes | None, protocol: str
    ) -> AsyncGenerator[bytes]:
        """Serve one request of git's HTTP protocol; without a body advertise the refs.

        Raises:
            SourceGitError: git refused.
        """
        arguments = (*_BOUNDED_MEMORY, *upload_pack_arguments(body))
        variables = {"GIT_PROTOCOL": protocol}
        process = await self._start(arguments, directory, True, fed=True, variables=variables)
        try:
            async with aclosing(stream_process(process, body or b"")) as parts:
                async for chunk in parts:
                    yield chunk
        except ProcessError as e:
            raise _failure(str(e), process.returncode) from e

    async def pack(self, directory: Path, commit: str, known: str | None) -> AsyncGenerator[bytes]:
        """Yield a pack with the objects of a commit that are not of another one.

        Raises:
            SourceGitError: git refused.
        """
        arguments = ("pack-objects", "--revs", "--thin", "--stdout", "--quiet")
        revisions = "".join([f"{commit}\n", f"^{known}\n" if known else ""])
        process = await self._start(arguments, directory, True, fed=True)
        try:
            async with aclosing(stream_process(process, revisions.encode())) as parts:
                async for chunk in parts:
                    yield chunk
        except ProcessError as e:
            raise _failure(str(e), process.returncode) from e

    async def _start(
        self,
        arguments: Sequence[str],
        directory: Path | None,
        private: bool,
        fed: bool = False,
        variables: Mapping[str, str] = MappingProxyType({}),
        limits: Limits | None = None,
    ) -> asyncio.subprocess.Process:
        """Start git; without `limits` it has the usual ones."""
        if directory and (reason := await asyncio.to_thread(unreadable_file, directory)):
            raise UnreadableError(reason)
        room = await asyncio.to_thread(room_beside, self.configuration)
        prefix = prefix_for(limits or usual_limits(), room)
        try:
            return await asyncio.create_subprocess_exec(
                *(*prefix, "git", *_OPTIONS, *arguments),
                stdin=asyncio.subprocess.PIPE if fed else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                # Not where the service was started: git would read the configuration of a checkout.
                cwd=directory or "/",
                env={**self._environment_in(directory, private), **variables},
                start_new_session=True,
            )
        except (FileNotFoundError, NotADirectoryError, PermissionError) as e:
            reason = "git is not installed, or the directory does not exist or cannot be entered"
            raise SourceGitError(reason) from e

    async def end_abandoned(self) -> None:
        """End what an earlier service of this home left; return when nothing of it writes any more.

        A git process may wait for a remote forever. On SIGTERM it removes its locks.
        """
        left = await asyncio.to_thread(self._abandoned)
        for number in (signal.SIGTERM, signal.SIGKILL):
            for ref in left:
                send(ref, number)
            await asyncio.gather(*(wait_for_end(ref, _END_SECONDS) for ref in left))

    def _abandoned(self) -> list[ProcessRef]:
        mark = f"{_MARK}={self.configuration}".encode()
        left: list[ProcessRef] = []
        end = time.monotonic() + _SCAN_SECONDS
        for ref in filter(None, map(find, process_ids())):
            if time.monotonic() > end:
                log.warning(
                    "git of an earlier service may still run: not all processes were looked at"
                )
                break
            if mark not in read_environment(ref.pid) or (stat := read_stat(ref.pid)) is None:
                continue
            leader = read_stat(stat.session)
            if leader is None or leader.parent != os.getpid():
                left.append(ref)
        return left

    def _environment_in(self, directory: Path | None, private: bool) -> dict[str, str]:
        environment = self.environment(private)
        if private and directory is not None:  # else git would use one above a damaged one
            environment["GIT_CEILING_DIRECTORIES"] = str(directory.absolute().parent)
        return environment

    def environment(self, private: bool) -> dict[str, str]:
        """Return git's environment: the service's without variables that could change git's behavior."""
        private = private or self.login is None
        left_out = ("GIT_", "SSH_ASKPASS", "QD_HOST_")
        variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(left_out) and (self.proxy or name.lower() not in _PROXIES)
        }
        if self.login is None:
            # Where curl and git look for passwords.
            variables |= {"HOME": os.devnull, "XDG_CONFIG_HOME": os.devnull, "SSH_AUTH_SOCK": ""}
        return variables | {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": _PROTOCOLS if self.login is not None else _OPEN_PROTOCOLS,
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_CONFIG_NOSYSTEM": "1" if private else "0",
            "GIT_CONFIG_GLOBAL": os.devnull if private else str(self.configuration),
            "SSH_ASKPASS_REQUIRE": "never",
            "LC_ALL": "C",
            _MARK: str(self.configuration),
        }


_END_SECONDS = 5.0
_SCAN_SECONDS = 5.0
"""Time limit for the search, because there may be any number of processes."""
_MARK = "QUARTERDECK_MIRRORS"
"""Variable of git and of what it starts; it names the home."""
NOTHING_RUN: Sequence[str] = (
    *("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false"),
    *("-c", "core.alternateRefsCommand=true"),
)
"""For a repository whose configuration is not ours: git starts none of the programs that it names."""
_OPTIONS: Sequence[str] = (
    *(*NOTHING_RUN, "-c", "submodule.recurse=false"),
    # No packs at further addresses, which nobody has judged: the user may have allowed them.
    *("-c", "fetch.uriProtocols=", "-c", "transfer.bundleURI=false"),
    # Names that some file systems take for `.git`, such as Linux's own where they fold case.
    *("-c", "core.protectHFS=true", "-c", "core.protectNTFS=true"),
)


def write_configuration(path: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Write a configuration that includes the user's own and trusts every owner.

    A checkout may belong to another user; git refuses to read it unless a file says otherwise (a
    setting in the environment does not reach the process that serves a local path).
    """
    home = environment.get("HOME", "")
    general = environment.get("XDG_CONFIG_HOME") or f"{home}/.config"
    included = [
        environment.get("GIT_CONFIG_GLOBAL") or f"{general}/git/config",
        f"{home}/.gitconfig",
    ]
    lines = ["[safe]", "\tdirectory = *"]
    for name in dict.fromkeys(included):
        lines += ["[include]", f"\tpath = {quoted(name)}"]
    write_file(path, "\n".join(lines) + "\n", mode=None, durable=False)


def remove_remains(repository: Path) -> None:
    """Remove what a git that was killed left in a bare repository. No other one may write there."""
    remove_git_locks(repository)
    for pattern in ("objects/pack/tmp_*", "objects/*/tmp_obj_*"):
        for path in repository.glob(pattern):
            path.unlink(missing_ok=True)


def quoted(value: str) -> str:
    """Return a value quoted for git's configuration files."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


async def _finish(
    process: asyncio.subprocess.Process, seconds: float, data: bytes | None
) -> tuple[bytes, bytes]:
    try:
        async with asyncio.timeout(seconds):
            out, errors, _ = await asyncio.gather(
                _read(process.stdout), _read(process.stderr), _feed(process.stdin, data or b"")
            )
            await process.wait()
            return out, errors
    except BaseException as e:
        await _kill(process)
        if isinstance(e, TimeoutError):
            raise GitTimeoutError(f"git took longer than {seconds:.0f} seconds") from e
        raise


def _small_indexes(directory: Path) -> list[bytes]:
    paths = directory.glob("objects/pack/*.idx")
    return [path.read_bytes() for path in paths if path.stat().st_size < _SMALL_INDEX]


async def _checked(data: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    """Pass a pack on, unless it claims too many objects: git makes room for all of them at once."""
    head: bytes | None = b""
    async for chunk in data:
        if head is None:
            yield chunk
            continue
        head += chunk
        if len(head) < _PACK_HEADER.size:
            continue
        _, _, objects = _PACK_HEADER.unpack_from(head)
        if objects > OBJECT_LIMIT:
            raise PackTooLargeError(f"They claim to have {objects:,} objects.")
        yield head
        head = None
    if head:
        yield head  # too short, which git reports


async def _write(process: asyncio.subprocess.Process, data: AsyncIterable[bytes]) -> None:
    """Write all data, then close; a git process that ended early has reported why."""
    assert process.stdin is not None
    try:
        with suppress(ConnectionError):
            async for chunk in data:
                if process.stdin.is_closing():  # uvloop raises RuntimeError for a write after this
                    break
                process.stdin.write(chunk)
                await process.stdin.drain()
    finally:
        process.stdin.close()


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    """Read all that git writes; a remote decides how much that is.

    Raises:
        SourceGitError: it is more than `OUTPUT_LIMIT`.
    """
    assert stream is not None
    output = bytearray()
    while chunk := await stream.read(1 << 16):
        output += chunk
        if len(output) > OUTPUT_LIMIT:
            raise SourceGitError(
                f"the other side, or git, wrote more than {OUTPUT_LIMIT >> 20} MiB"
            )
    return bytes(output)


async def _kill(process: asyncio.subprocess.Process) -> None:
    kill_group(process.pid)  # it may have ended already while its helpers (ssh, http) still run
    await end_process(process)


def _failure(output: str, status: int | None) -> Exception:
    lines = output.strip().splitlines()
    tail = "\n".join(lines[-_TAIL_LINES:])
    own = "\n".join(line for line in lines if not line.startswith("remote:"))
    if any(text in own for text in _FULL_DISK) or _ended_by(signal.SIGXFSZ, own, status):
        return DiskFullError("The disk is full. Make room, and try again.", tail)
    if _ended_by(signal.SIGXCPU, own, status):
        return GitLimitError(f"git reached its limit of processor time\n{tail}".strip())
    if _NO_MEMORY.search(own):
        return GitLimitError(f"git reached its limit of memory\n{tail}")
    return SourceGitError(tail or "git failed without output")


def _ended_by(number: signal.Signals, output: str, status: int | None) -> bool:
    """Return whether git, or a program that it started, was ended by a signal."""
    return status in (-number, 128 + number) or f"died of signal {number.value}" in output
