"""What a host's webhook tells, the same for both hosts; parsers make it of payloads.

The first word of a comment that is meant for an automation is `/qd`.
"""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from quarterdeck.wire.automations import PullRequestRef
from quarterdeck.wire.stored_text import ONE_LINE

COMMAND = "/qd"
LONGEST_LINE = 500
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_SHA = re.compile("[0-9a-f]{40}(?:[0-9a-f]{24})?")

FullName = Annotated[str, Field(min_length=1, max_length=500), ONE_LINE]
Number = Annotated[int, Field(ge=1, le=1 << 53)]


class Shape(BaseModel):
    """The part of a payload that is read. Whatever else there is may change."""

    model_config = ConfigDict(extra="ignore", defer_build=True)


@dataclass(frozen=True)
class HostEvent:
    """One event of a pull request. `urls` are all the addresses under which git finds it."""

    name: str
    actor: str
    repository: str
    urls: tuple[str, ...]
    pull_request: PullRequestRef


def is_command(text: str) -> bool:
    """Whether a comment begins with the word that automations listen to."""
    words = text.split(maxsplit=1)
    return bool(words) and words[0].casefold() == COMMAND


def as_line(text: str | None) -> str | None:
    """A text of the host's as one line of bounded length."""
    return text and (_UNSEEN.sub(" ", text).strip()[:LONGEST_LINE] or None)


def as_sha(text: str | None) -> str | None:
    """A commit's name, None for what is none."""
    return text if text is not None and _SHA.fullmatch(text) else None
