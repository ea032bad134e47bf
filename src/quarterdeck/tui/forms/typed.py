"""What was typed into the dialog and not used, for the next time that it opens."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quarterdeck.tui.attachments import Attachment


@dataclass(frozen=True)
class Typed:
    """The fields of the create dialog."""

    repository: str
    name: str
    message: str
    model: str = ""
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What stood in the folded fields."""
    attachments: "tuple[Attachment, ...]" = ()
    """Images that go with the message."""
