"""`qd replica files` and `canvas`: files of the repositories, and those that agents produce."""

import base64
import errno
import shlex
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import click

from quarterdeck.cli.errors import FailedError, UsageError
from quarterdeck.cli.lookup import with_replica
from quarterdeck.cli.options import Common, common_options, replica_argument
from quarterdeck.cli.output import print_json, print_message, print_table, print_text
from quarterdeck.cli.program import LazyGroup, Verb
from quarterdeck.local.files import write_file
from quarterdeck.wire.files import (
    CANVAS_LIMIT,
    CONTENT_LIMIT,
    DEFAULT_FILES,
    MOST_FILES,
    CanvasList,
    FileStatus,
    FoundFile,
    FoundFiles,
)

if TYPE_CHECKING:
    from quarterdeck.client import Client


FILE_VERBS = {
    "search": Verb(__name__, "Find files by name or path, best match first.", "search"),
    "cat": Verb(__name__, "Print a file, or write it to disk.", "cat"),
}


@click.group(name="files", cls=LazyGroup, verbs=FILE_VERBS)
def files() -> None:
    """Search and read the files of a replica's repositories."""


CANVAS_VERBS = {
    "ls": Verb(__name__, "List the files of the canvas.", "list_canvas"),
    "get": Verb(__name__, "Print a file, or write it to disk.", "get_canvas_file"),
    "put": Verb(__name__, "Put a file there.", "put_canvas_file"),
}


@click.group(name="canvas", cls=LazyGroup, verbs=CANVAS_VERBS)
def canvas() -> None:
    """List, get and put the files that agents produce: plans, reports, pictures."""


def _decoded(content: str | None, encoded: str | None) -> bytes:
    """Return the bytes of an answer that holds text or base64."""
    return content.encode() if content is not None else base64.b64decode(encoded or "")


def _output_file(content: str | None, encoded: str | None, output: Path | None) -> None:
    """Print text without control sequences, or write the bytes to `output`.

    Raises:
        FailedError: it is no text and there is nowhere to write it, or it cannot be written.
    """
    if output is not None:
        data = _decoded(content, encoded)
        target = output.resolve()
        try:
            if output.exists() and not output.is_file():  # such as a pipe
                output.write_bytes(data)
            else:
                mode = target.stat().st_mode & 0o777 if target.exists() else None
                write_file(target, data, mode=mode, durable=False)
        except OSError as e:
            step = None
            if isinstance(e, FileNotFoundError):
                step = f"Create its directory: mkdir -p {shlex.quote(str(target.parent))}"
            elif e.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                step = f"You cannot create files in {target.parent}: give another --output."
            raise FailedError(f"{output} cannot be written: {e.strerror or e}.", step) from e
        print_message(f"{len(data)} bytes are in {output}.")
    elif content is None:
        raise FailedError("Not a text file.", "Write it to disk with: --output FILE.")
    else:
        print_text(content, end="")


_MARKS = {FileStatus.CHANGED: "M", FileStatus.UNTRACKED: "?"}


@click.command(name="search")
@replica_argument
@click.argument("query", default="")
@click.option("--prefix", default="", metavar="PATH", help="Only below this path.")
@click.option(
    "--limit",
    type=click.IntRange(1, MOST_FILES),
    default=DEFAULT_FILES,
    show_default=True,
    help="Show at most N.",
)
@click.option("--refresh", is_flag=True, help="Wait until an active replica has scanned its files.")
@common_options
def search(
    common: Common, replica: str, query: str, prefix: str, limit: int, refresh: bool
) -> None:
    """Find files by name or path, best match first; without a query, list them.

    Works in every state without waking the replica. M marks a changed file, ? an untracked one.
    """

    async def find(client: "Client", replica_id: UUID) -> FoundFiles:
        return await client.files.search(
            replica_id, query, prefix=prefix, limit=limit, refresh=refresh
        )

    result = with_replica(common, replica, find)
    if common.json:
        print_json(result)
        return
    for file in result.files:
        print_text(_line(file))
    if result.truncated:
        print_message("The index is not complete.")
    if result.next_cursor is not None:
        print_message("There are more; raise --limit to see them.")


def _line(file: FoundFile) -> str:
    mark = _MARKS.get(FileStatus(file.status)) if file.status in list(FileStatus) else None
    return f"{mark or ' '} {' '.join(file.display_path.splitlines())}"


@click.command(name="cat")
@replica_argument
@click.argument("path", metavar="REPOSITORY/PATH")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file."
)
@common_options
def cat(common: Common, replica: str, path: str, output: Path | None) -> None:
    """Print a file of a repository, or write it to disk; the replica must be active.

    REPOSITORY/PATH is what `search` prints.
    """
    repository, slash, inner = path.partition("/")
    if not slash or not inner:
        raise UsageError(f"{path!r} names no file.", "Give it as: REPOSITORY/PATH.")
    file = with_replica(
        common,
        replica,
        lambda client, replica_id: client.files.content(replica_id, repository, inner),
    )
    if common.json:
        print_json(file)
        return
    _output_file(file.content, file.base64, output)
    if file.truncated:
        print_message(f"These are the first {CONTENT_LIMIT} of {file.size_bytes} bytes.")


@click.command(name="ls")
@replica_argument
@common_options
def list_canvas(common: Common, replica: str) -> None:
    """List the files of a replica's canvas."""
    items = with_replica(common, replica, lambda client, id: client.canvas.list(id))
    if common.json:
        print_json(CanvasList(items=items))
        return
    print_table(
        ("NAME", "KIND", "BYTES"),
        [(item.filename, item.kind, str(item.size_bytes)) for item in items],
    )


@click.command(name="get")
@replica_argument
@click.argument("filename", metavar="NAME")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file."
)
@common_options
def get_canvas_file(common: Common, replica: str, filename: str, output: Path | None) -> None:
    """Print a text file of the canvas, or write any file to disk."""
    file = with_replica(common, replica, lambda client, id: client.canvas.get(id, filename))
    if common.json:
        print_json(file)
        return
    if file.too_large:
        raise FailedError(f"{filename} has {file.size_bytes} bytes, which is too large to be sent.")
    _output_file(file.content, file.base64, output)


@click.command(name="put")
@replica_argument
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--name", metavar="NAME", help="Name in the canvas; default: the file's.")
@common_options
def put_canvas_file(common: Common, replica: str, file: Path, name: str | None) -> None:
    """Put a file into the canvas; a replica that is not active gets it when it starts."""
    try:
        with file.open("rb") as opened:
            content = opened.read(CANVAS_LIMIT + 1)
    except OSError as e:
        raise FailedError(f"{file} cannot be read: {e.strerror or e}.") from e
    done = with_replica(
        common,
        replica,
        lambda client, replica_id: client.canvas.upload(replica_id, name or file.name, content),
    )
    if common.json:
        print_json(done)
        return
    print_text(done.file_path)
    if done.upload_id is not None:
        print_message(f"Queued: written when the replica starts (upload {done.upload_id}).")
