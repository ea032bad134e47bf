"""What the tests of the chat do again and again."""

from quarterdeck.tui.panes.chat import ChatPane
from tests.support.waiting import eventually
from tests.tui_shell.live import Desk


async def opened(desk: Desk, name: str) -> ChatPane:
    """Opens a replica's chat, its composer in focus."""
    await desk.see(name)
    await desk.press("enter")
    await eventually(lambda: desk.focus == "Composer", "the composer")
    return desk.app.screen.query_one(ChatPane)
