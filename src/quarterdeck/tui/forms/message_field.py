"""The first message of a replica: text of several lines, with the composer's keys for a new one."""

from textual import events
from textual.widgets import TextArea

from quarterdeck.tui.actions import Where, which


class MessageField(TextArea):
    """Tab leaves it, as it does every other field."""

    def __init__(self, text: str, *, id: str) -> None:
        super().__init__(text, id=id, tab_behavior="focus")

    async def _on_key(self, event: events.Key) -> None:
        if which(Where.COMPOSER, event.key) == "composer.newline":
            event.stop()
            event.prevent_default()
            self.insert("\n")
        else:
            await super()._on_key(event)
