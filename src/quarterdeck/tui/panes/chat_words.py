"""What the lines around the composer say."""

from quarterdeck.store.chats import ChatState
from quarterdeck.wire.replicas import WorkspaceStatus


def turn_words(chat: ChatState, status: str) -> str:
    """What the chat is doing."""
    match status:
        case WorkspaceStatus.ERROR:
            return "✗ failed"
        case WorkspaceStatus.PREPARING:
            return "◌ preparing"
        case WorkspaceStatus.SLEEPING | WorkspaceStatus.ARCHIVED:
            return f"☾ {status}: a message wakes it, or w in the list"
        case _:
            pass
    if chat.record.awaiting_input:
        return "▲ waits for your answer"
    if chat.record.processing:
        since = chat.turn_started_at
        at = f" since {since.astimezone():%H:%M:%S}" if since else ""
        return f"● working{at} (ctrl+x interrupts)"
    return "○ idle"


def destination(chat: ChatState, status: str, *, online: bool) -> str:
    """What Enter does with the text."""
    if not online:
        return "enter keeps it and sends it later"
    match status:
        case WorkspaceStatus.SLEEPING | WorkspaceStatus.ARCHIVED:
            return "enter wakes and sends"
        case WorkspaceStatus.PREPARING:
            return "enter sends when it is ready"
        case WorkspaceStatus.ERROR:
            return "first wake it: tab, then w"
        case _:
            return "enter queues" if chat.record.processing else "enter sends"
