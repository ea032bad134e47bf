"""Listing and reading a canvas in every state; nothing is woken.

| state | read from |
|---|---|
| active | the engine |
| preparing, sleeping, error, or about to sleep | the files as they lie there |
| archived | the archive, which stays packed |
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from quarterdeck.engine.link import EngineLink
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.records.workspaces import WorkspaceRow
from quarterdeck.wire.canvas import CANVAS_DIRECTORY, CANVAS_LIMIT, CanvasFile, CanvasList
from quarterdeck.wire.canvas_items import file_of, items_of
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.names import meant, shown
from quarterdeck.wire.replicas import WorkspaceStatus

T = TypeVar("T")


async def list_canvas(context: ServiceContext, fleet: Fleet, row: WorkspaceRow) -> CanvasList:
    """Every file of the canvas.

    Raises:
        ApiError: the engine of an active replica does not answer.
        SandboxError: the files cannot be read.
    """
    told = await _asked(fleet, row, lambda link: link.canvas_list())
    if told is not None:
        return told
    return items_of(await _kept(context, row.id))


async def kept_names(context: ServiceContext, workspace_id: str) -> set[str]:
    """The names of all files of a canvas, as they lie there or in the archive.

    Raises:
        SandboxError: the files cannot be read.
    """
    return {name for name, _ in await _kept(context, workspace_id)}


async def read_canvas(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, filename: str
) -> CanvasFile:
    """One file with its content, unless it is too large.

    Raises:
        ApiError: NOT_FOUND; or as `list_canvas`.
        SandboxError: as `list_canvas`.
    """
    told = await _asked(fleet, row, lambda link: link.canvas_get(filename))
    if told is not None:
        return told
    for name in meant(filename):
        kept = await context.sandboxes.kept_file(
            row.id, CANVAS_DIRECTORY, name, most=CANVAS_LIMIT + 1
        )
        if kept is not None:
            return file_of(filename, kept.data, max(kept.size, len(kept.data)))
    raise ApiError(ErrorCode.NOT_FOUND, "The canvas has no item of this name.")


async def _kept(context: ServiceContext, workspace_id: str) -> list[tuple[str, int]]:
    kept = await context.sandboxes.kept_files(workspace_id, CANVAS_DIRECTORY)
    return [(shown(file.name), file.size) for file in kept]


async def _asked(
    fleet: Fleet, row: WorkspaceRow, ask: Callable[[EngineLink], Awaitable[T]]
) -> T | None:
    """What the engine says; None when the replica is not active, or not any more."""
    supervisor = fleet.of(row.id)
    if row.status != WorkspaceStatus.ACTIVE or supervisor.stopping:
        return None
    try:
        return await supervisor.call(row, ask)
    except ApiError as e:
        if e.code != ErrorCode.WORKSPACE_NOT_ACTIVE:
            raise
        return None
