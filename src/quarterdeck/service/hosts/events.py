"""The event of a host's webhook, the same for both hosts, parsed from payloads.

The first word of a comment that is meant for an automation is `/qd`.
"""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from quarterdeck.wire.automation_runs import PullRequestRef
from quarterdeck.wire.base import ONE_LINE

COMMAND = "/qd"
LONGEST_LINE = 500
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_SHA = re.compile("[0-9a-f]{40}(?:[0-9a-f]{24})?")

FullName = Annotated[str, Field(min_length=1, max_length=500), ONE_LINE]
Number = Annotated[int, Field(ge=1, le=1 << 53)]


class EventShape(BaseModel):
    """The part of a payload that is read. Other fields are ignored."""

    model_config = ConfigDict(extra="ignore", defer_build=True)


@dataclass(frozen=True)
class HostEvent:
    """One event of a pull request. `urls` are all the addresses under which git finds it.

    `trusted` says that the payload shows that the author has access to the repository; otherwise it
    is not trusted. `author` is the host's id of who wrote the pull request, which, unlike a name,
    nobody else can get; None when it is not in the payload.
    """

    name: str
    actor: str
    repository: str
    urls: tuple[str, ...]
    pull_request: PullRequestRef
    trusted: bool
    author: str | None

    @property
    def is_push(self) -> bool:
        """Whether commits were pushed to an existing pull request."""
        return self.name.endswith(".synchronize")


def is_command(text: str) -> bool:
    """Return whether a comment begins with the word that automations listen to."""
    parts = text.split(maxsplit=1)
    return bool(parts) and parts[0].casefold() == COMMAND


def as_line(text: str | None) -> str | None:
    """Return a host's text as one line of bounded length."""
    return text and (_UNSEEN.sub(" ", text).strip()[:LONGEST_LINE] or None)


def as_sha(text: str | None) -> str | None:
    """Return a commit's hash, None for an invalid one."""
    return text if text is not None and _SHA.fullmatch(text) else None
