"""Ports of a workspace that can be looked at from outside (INTERFACE 6)."""

from typing import Annotated

from pydantic import Field

from quarterdeck.wire.base import Body, Record, Whole
from quarterdeck.wire.events import Preview

LAST_PORT = 65_535

Port = Annotated[Whole, Field(ge=1, le=LAST_PORT)]


class OpenPreview(Body):
    """Body of opening a preview from within a workspace."""

    port: Port


class PreviewAnswer(Record):
    """Answer of opening a preview."""

    preview: Preview


class PreviewList(Record):
    """Answer of `GET .../previews`, by port."""

    previews: list[Preview]


class PreviewClosed(Record):
    """Answer of closing a preview."""

    success: bool = True
    port: int
