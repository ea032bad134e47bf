"""A user message as the protocol's content blocks."""

from typing import Any

from quarterdeck.agents.acp.options import NotOfferedError
from quarterdeck.agents.port import Prompt
from quarterdeck.wire.chats import Base64Source, Image


def prompt_blocks(prompt: Prompt, images_welcome: bool) -> list[dict[str, Any]]:
    """Return the blocks of a prompt: its text, then its images.

    Raises:
        NotOfferedError: there are images and the agent does not accept any.
    """
    if prompt.images and not images_welcome:
        raise NotOfferedError("it does not accept images. Send the message without them.")
    text = [{"type": "text", "text": prompt.text}] if prompt.text or not prompt.images else []
    return [*text, *(_image_block(image) for image in prompt.images)]


def _image_block(image: Image) -> dict[str, Any]:
    source = image.source
    if isinstance(source, Base64Source):
        return {"type": "image", "mimeType": source.media_type, "data": source.data}
    name = source.url.rstrip("/").rpartition("/")[2] or source.url
    return {"type": "resource_link", "uri": source.url, "name": name}
