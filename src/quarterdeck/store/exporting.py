"""A chat as a file: its events as JSON lines, or its blocks as markdown."""

import asyncio
import base64
import binascii
import json
from collections.abc import AsyncGenerator, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from quarterdeck.transcript.export import markdown_of
from quarterdeck.transcript.fold import Transcript
from quarterdeck.wire.history import AgentEvent, AgentEventType, History

if TYPE_CHECKING:
    from quarterdeck.client.client import Client

PAGE = 2_000
SUFFIXES = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}


async def export_chat(client: "Client", replica_id: UUID, chat_id: UUID, path: Path) -> None:
    """Write a whole chat: as events to a `.jsonl` file, otherwise as markdown.

    Raises:
        FileExistsError: the file exists; it is not changed.
        OSError: the file cannot be written.
        ClientError: the history cannot be read.
    """
    pages = _pages(client, replica_id, chat_id)
    text = await (_as_lines(pages) if path.suffix == ".jsonl" else _as_markdown(pages))
    await asyncio.to_thread(write_new, path, text.encode("utf-8", errors="replace"))


def write_new(path: Path, content: bytes) -> None:
    """Write a new file.

    Raises:
        FileExistsError: the file exists; it is not changed.
        OSError: it cannot be written; nothing is left of it.
    """
    with path.open("xb") as file:
        try:
            file.write(content)
            file.flush()
        except OSError:
            path.unlink(missing_ok=True)
            raise


async def _as_lines(pages: AsyncGenerator[History]) -> str:
    pages_of_lines: list[list[str]] = []
    async for page in pages:
        # ASCII only: an agent's text cannot affect a terminal that shows the file.
        pages_of_lines.append([json.dumps(event.model_dump(mode="json")) for event in page.events])
    return "".join(f"{line}\n" for lines in reversed(pages_of_lines) for line in lines)


async def _as_markdown(pages: AsyncGenerator[History]) -> str:
    transcript = Transcript()
    async for page in pages:
        transcript.prepend(page.events)
    return markdown_of(transcript.blocks)


def _pages(client: "Client", replica_id: UUID, chat_id: UUID) -> AsyncGenerator[History]:
    return client.history.pages(replica_id, chat_id=chat_id, limit=PAGE)


async def find_images(
    client: "Client", replica_id: UUID, chat_id: UUID, start: datetime, end: datetime | None
) -> list[tuple[str, bytes]]:
    """Return the images of the events from `start` up to `end`, with their file extensions.

    Raises:
        ClientError: the history cannot be read.
    """
    images: list[tuple[str, bytes]] = []
    async for page in _pages(client, replica_id, chat_id):
        here = [
            image
            for event in page.events
            if start <= event.timestamp and (end is None or event.timestamp < end)
            for image in images_of(event)
        ]
        images = here + images
        if page.events and page.events[0].timestamp < start:
            break
    return images


def images_of(event: AgentEvent) -> Iterator[tuple[str, bytes]]:
    """Yield the images inside an event; those at a URL are not fetched."""
    payload = event.payload
    if event.type == AgentEventType.USER_MESSAGE:
        images = payload.get("images")
        for image in cast("list[Any]", images) if isinstance(images, list) else []:
            source = image.get("source") if isinstance(image, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            if isinstance(source, dict):
                yield from _decoded(source.get("media_type"), source.get("data"))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        return
    for content in _contents(payload):
        if content.get("type") == "image":
            yield from _decoded(content.get("mimeType"), content.get("data"))


def _contents(payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the content blocks of a message, or inside the content of a call."""
    content = payload.get("content")
    entries: list[Any] = cast("list[Any]", content) if isinstance(content, list) else [content]
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        known = cast("dict[str, Any]", entry)
        inner = known.get("content")
        yield cast("dict[str, Any]", inner) if isinstance(inner, dict) else known


def _decoded(media_type: object, data: object) -> Iterator[tuple[str, bytes]]:
    if not isinstance(data, str):
        return
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return
    yield SUFFIXES.get(str(media_type), "img"), content
