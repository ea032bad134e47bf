"""Ports of a workspace that can be opened from outside (docs/interface.md 6)."""

from typing import Annotated

from pydantic import Field, StrictInt

from quarterdeck.wire.base import INTEGRAL, Body, CamelRecord, Record, Timestamp

LAST_PORT = 65_535

Port = Annotated[StrictInt, Field(ge=1, le=LAST_PORT), INTEGRAL]


class Preview(CamelRecord):
    """A port of the workspace that can be opened from outside."""

    port: int
    """Port in the workspace."""
    public_url: str
    """Address to open in a browser."""
    created_at: Timestamp
    """When it was opened."""


class OpenPreview(Body):
    """Body of opening a preview from within a workspace."""

    port: Port
    """Port in the workspace."""


class PreviewAnswer(Record):
    """Answer of opening a preview."""

    preview: Preview
    """The preview."""


class PreviewList(Record):
    """Answer of `GET .../previews`, by port."""

    previews: list[Preview]
    """Previews, by port."""


class PreviewClosed(Record):
    """Answer of closing a preview."""

    success: bool = True
    """Always true: a failure is answered with an Error object."""
    port: int
    """Port of the closed preview."""
