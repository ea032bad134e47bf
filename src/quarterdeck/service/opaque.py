"""Opaque cursors: what a model says, as text that goes into an address."""

import base64
import binascii
from typing import TypeVar

from pydantic import BaseModel, ValidationError

Cursor = TypeVar("Cursor", bound=BaseModel)


def encode(cursor: BaseModel) -> str:
    """The cursor as text for a client."""
    return base64.urlsafe_b64encode(cursor.model_dump_json().encode()).decode().rstrip("=")


def decode(kind: type[Cursor], text: str) -> Cursor:
    """The cursor of a text.

    Raises:
        ValueError: it is none of this kind.
    """
    try:
        padded = text + "=" * (-len(text) % 4)
        return kind.model_validate_json(base64.urlsafe_b64decode(padded))
    except (binascii.Error, ValidationError, ValueError) as e:
        raise ValueError("it is not a cursor of this service") from e
