"""Messages that go into the running turn of a chat."""

from typing import TYPE_CHECKING
from uuid import UUID

from textual.widget import Widget

from quarterdeck.client.errors import ClientError
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.textual_ext.type_ahead import hold_keys

if TYPE_CHECKING:
    from quarterdeck.tui.panes.chat_messages import ShownChat


async def may_steer(asker: Widget, shown: "ShownChat") -> bool:
    """Return whether to steer; asks where that interrupts the turn. For a worker of the caller."""
    from quarterdeck.tui.kit.dialogs import ConfirmScreen

    provider = shown.state.record.provider if shown.state else ""
    try:
        with hold_keys(asker, "Reading the agents"):
            agents = await shown.app_state.chat_commands.agents()
    except ClientError as error:
        shown.refused("not steered", error)
        return False
    agent = next((one for one in agents if one.id == provider), None)
    if agent is not None and agent.supports_steer:
        return True
    name = one_line(agent.name if agent else provider)
    return await asker.app.push_screen_wait(
        ConfirmScreen(
            "Interrupt the running turn?",
            f"{name} takes no messages while it works. Its turn is interrupted, and this message "
            "is sent next, before all others that wait.",
            "Interrupt and send",
        )
    )


async def steer(shown: "ShownChat", chat_id: UUID, message_id: UUID) -> None:
    """Put a message that waits into the running turn; a refusal is shown, and it still waits."""
    try:
        await shown.app_state.chat_commands.steer(shown.replica_id, chat_id, message_id)
    except ClientError as error:
        shown.refused("not steered", error)
