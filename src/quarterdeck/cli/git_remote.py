"""`git-remote-qd`: git starts it for addresses such as `qd::fix-login`, and in a replica for `origin`.

git -- stdin, stdout --> git-remote-qd -- HTTP --> the service -> git

To fetch, git speaks version 2 of its protocol through the helper (`stateless-connect` in
gitremote-helpers): each request ends with a flush packet, each answer with a response-end packet.
To push from within a replica git names branches and tags, and the service takes their commits from
the sandbox itself. Outside, the service is the one that `qd` uses; QD_PROFILE names another.
"""

import asyncio
import gc
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, BinaryIO, TypeVar
from uuid import UUID

from quarterdeck.cli.errors import FailedError
from quarterdeck.cli.output import print_message, safe_line
from quarterdeck.loading import leave_plugins_out
from quarterdeck.local.core_dumps import prevent_core_dumps
from quarterdeck.local.programs import drop_relative_path_entries
from quarterdeck.wire.inside import CHAT_VARIABLE, SECRET_VARIABLE

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.client.git import OriginApi

_FLUSH = b"0000"
_RESPONSE_END = b"0002"
_LENGTH_BYTES = 4
_LENGTH = re.compile(b"[0-9a-fA-F]{4}")
_MESSAGES = (b"\x02", b"\x03")
"""Bands of a multiplexed answer with text for a person: progress, and why it failed."""
MOST_BYTES = 4 << 30
"""Most bytes that are fetched from a replica at once; git puts them on the disk."""
REFS_BYTES = 64 << 20
"""Most bytes of an answer that names refs; git holds all of them in memory."""
_LIST_REFS = b"command=ls-refs"
_SERVICE = "git-upload-pack"
NAME_KEY = "qdRepository"
"""In a replica: the configuration key of the remote with the repository's name."""

Result = TypeVar("Result")
Parts = AbstractAsyncContextManager[AsyncGenerator[bytes]]


def main() -> None:
    """Run `git-remote-qd REMOTE ADDRESS`."""
    prevent_core_dumps()
    leave_plugins_out()
    drop_relative_path_entries()
    from quarterdeck.cli.exits import guarded

    remote, address = sys.argv[1], sys.argv[-1]
    inside = SECRET_VARIABLE in os.environ
    code = guarded(lambda: _serve_origin(remote, address) if inside else _serve_replica(address))
    gc.freeze()  # as in `quarterdeck.cli`
    sys.exit(code)


# outside: fetch from a replica


def _serve_replica(address: str) -> None:
    """Run git's commands until it closes standard input."""
    while command := _read_command():
        if command == "capabilities":
            _write(b"stateless-connect\n\n")
        elif command == f"stateless-connect {_SERVICE}":
            _connect(address)
            return
        elif command.startswith("stateless-connect "):
            _write(b"fallback\n")
        else:
            raise FailedError(
                "A replica can only be fetched from, with version 2 of git's protocol.",
                "To send commits to it, push them to its repository and use: qd replica update.",
            )


def _connect(address: str) -> None:
    from quarterdeck.cli.clients import with_client
    from quarterdeck.cli.options import Common
    from quarterdeck.cli.replica.git import find_replica_repository

    name, _, repository = address.removeprefix("qd::").partition("/")

    async def work(client: "Client") -> None:
        id, repository_name = await find_replica_repository(client, name, repository or None)
        git = client.git
        await _exchange(
            lambda: git.refs(id, repository_name),
            lambda data: git.upload_pack(id, repository_name, data),
        )

    with_client(Common(), work)


# inside: the source of the replica's repository


def _serve_origin(remote: str, address: str) -> None:
    """Run git's commands until it closes standard input.

    Args:
        remote: its name, or the typed address.
        address: the repository's name where git's configuration replaced the typed address by `qd::NAME`.
    """
    repository = _git_output("config", f"remote.{remote}.{NAME_KEY}") or address
    if not repository or "/" in repository:
        raise FailedError(
            f"The remote {remote} is not a source of this replica.",
            f"Set the repository's name with: git config remote.{remote}.{NAME_KEY} NAME.",
        )
    known: dict[str, str] = {}
    while command := _read_command():
        match command.split(" ", 2):
            case ["capabilities"]:
                _write(b"stateless-connect\npush\noption\n\n")
            case ["option", "cas", value]:
                ref, _, commit = value.rpartition(":")
                known[ref] = commit
                _write(b"ok\n")
            case ["option", "dry-run" | "push-option" as name, *rest] if rest != ["false"]:
                _write(f"error the service does not support {name}\n".encode())
            case ["option", "progress" | "verbosity" | "atomic" | "dry-run", *_]:
                _write(b"ok\n")
            case ["option", *_]:
                _write(b"unsupported\n")
            case ["stateless-connect", service] if service == _SERVICE:
                _with_origin(lambda origin: _fetch_origin(origin, repository))
                return
            case ["stateless-connect", *_]:
                _write(b"fallback\n")
            case ["list", *_]:
                refs = _with_origin(lambda origin: origin.source_refs(repository))
                lines = [f"{commit} {ref}\n" for ref, commit in refs.items() if ref != "HEAD"]
                _write(f"{''.join(lines)}\n".encode())
            case ["push", *_]:
                _push(repository, [command, *iter(_read_command, "")], known)
            case _:
                raise FailedError(
                    "Only version 2 of git's protocol can be fetched with.",
                    "Set it with: git config protocol.version 2.",
                )


async def _fetch_origin(origin: "OriginApi", repository: str) -> None:
    await _exchange(
        lambda: origin.refs(repository), lambda data: origin.upload_pack(repository, data)
    )


def _push(repository: str, commands: list[str], known: dict[str, str]) -> None:
    """Push the refs of `push [+]SOURCE:TARGET` lines; report each."""
    from quarterdeck.client.errors import ClientError
    from quarterdeck.wire.git import OriginUpdate

    updates: list[OriginUpdate] = []
    for command in commands:
        source, _, target = command.removeprefix("push ").partition(":")
        forced = source.startswith("+")
        name = source.removeprefix("+")
        commit = _git_output("rev-parse", "--verify", "--end-of-options", name) if name else None
        expected = known.get(target) or None
        updates.append(
            OriginUpdate(ref=target, commit=commit, force=forced or target in known, known=expected)
        )
    chat = UUID(os.environ[CHAT_VARIABLE]) if os.environ.get(CHAT_VARIABLE) else None
    try:
        message = _with_origin(lambda origin: origin.push(repository, updates, chat))
    except ClientError as error:
        details = getattr(error, "details", None)
        if details:
            print_message(details)
        lines = [f"error {update.ref} {safe_line(str(error))}\n" for update in updates]
    else:
        if said := [line for line in message.splitlines() if line.startswith("remote:")]:
            print_message("\n".join(said))
        lines = [f"ok {update.ref}\n" for update in updates]
    _write(f"{''.join(lines)}\n".encode())


def _with_origin(work: Callable[["OriginApi"], Awaitable[Result]]) -> Result:
    from quarterdeck.cli.clients import with_inside_client

    return with_inside_client(lambda client: work(client.origin))


def _git_output(*arguments: str) -> str:
    process = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    return process.stdout.strip()


# the protocol


async def _exchange(refs: Callable[[], Parts], upload_pack: Callable[[bytes], Parts]) -> None:
    """Pass requests and answers on until git is done."""
    many_refs = FailedError(
        f"The names of the branches and tags take more than {REFS_BYTES >> 20} MiB.",
        "Ask the agent to remove those that nobody needs.",
    )
    large = FailedError(
        f"The fetched data is larger than {MOST_BYTES >> 30} GiB.",
        "Ask the agent why its history is so large.",
    )
    async with refs() as parts:
        _write(b"\n")
        await _pass_on(parts, REFS_BYTES, many_refs)
    left = MOST_BYTES
    while request := await asyncio.to_thread(_read_request, sys.stdin.buffer):
        async with upload_pack(request) as parts:
            if _LIST_REFS in request[: 2 * len(_LIST_REFS)]:
                await _pass_on(harmless(parts), REFS_BYTES, many_refs)
            else:
                left -= await _pass_on(harmless(parts), left, large)
        _write(_RESPONSE_END)


async def _pass_on(parts: AsyncIterable[bytes], most: int, refusal: FailedError) -> int:
    """Pass an answer on to git; return its length. Raise the refusal when it has more than `most` bytes."""
    read = 0
    async for part in parts:
        read += len(part)
        if read > most:
            raise refusal
        _write(part)
    return read


async def harmless(parts: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    """Yield an answer whose messages are text: git prints them on the terminal as they are.

    Raises:
        FailedError: it does not consist of packets.
    """
    data = bytearray()
    multiplexed = False
    async for part in parts:
        data += part
        start = 0
        while len(data) >= start + _LENGTH_BYTES:
            header = bytes(data[start : start + _LENGTH_BYTES])
            if not _LENGTH.fullmatch(header):
                raise FailedError("The replica's answer is not of git's protocol.")
            end = start + max(int(header, 16), _LENGTH_BYTES)
            if len(data) < end:
                break
            text = start + _LENGTH_BYTES
            if not multiplexed:
                multiplexed = data[text:end].rstrip(b"\n") == bytearray(b"packfile")
            elif header == _FLUSH:
                multiplexed = False
            elif data[text : text + 1].startswith(_MESSAGES):
                data[text + 1 : end] = _printable(data[text + 1 : end])
            start = end
        yield bytes(data[:start])
        del data[:start]
    yield bytes(data)


def _printable(message: bytearray) -> bytes:
    """Return a message of the same length without control characters but those of its lines."""
    text = message.decode(errors="surrogateescape")
    return b"".join(
        encoded if one.isprintable() or one in "\n\r\t" else b"?" * len(encoded)
        for one in text
        for encoded in (one.encode(errors="surrogateescape"),)
    )


def _read_command() -> str:
    return sys.stdin.buffer.readline().decode().rstrip("\n")


def _read_request(stream: BinaryIO) -> bytes:
    """Read packets up to a flush packet; empty at the end of the stream."""
    request = bytearray()
    while length := stream.read(_LENGTH_BYTES):
        request += length
        if length == _FLUSH:
            break
        request += stream.read(max(0, int(length, 16) - _LENGTH_BYTES))
    return bytes(request)


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
