"""A user message as codex takes it."""

from typing import Any

from quarterdeck.agents.port import Prompt
from quarterdeck.wire.messages import Base64Source, Image


def input_of(prompt: Prompt) -> list[dict[str, Any]]:
    """The text, then the images."""
    text = [_text(prompt.text)] if prompt.text or not prompt.images else []
    return [*text, *({"type": "image", "url": _url(image)} for image in prompt.images)]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "text_elements": []}


def _url(image: Image) -> str:
    source = image.source
    if isinstance(source, Base64Source):
        return f"data:{source.media_type};base64,{source.data}"
    return source.url
