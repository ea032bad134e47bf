"""What the canvas's pane says."""

from quarterdeck.store.canvas import OpenItem
from quarterdeck.store.files_content import size_words
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.reading.row_list import Row
from quarterdeck.tui.text import one_line
from quarterdeck.tui.transcript_view.lines import Role, Span
from quarterdeck.wire.canvas import CANVAS_LIMIT, CanvasItem, CanvasUpload
from quarterdeck.wire.replicas import WorkspaceStatus

WAITING = "waiting\0"
"""Begins the key of a row of what waits."""
READING = "reading …"
NOTHING = (
    "Nothing is on the canvas.\n\n"
    "Agents put plans, reports and other files here,\n"
    "in ~/.quarterdeck/canvas. {canvas.upload} puts one of yours there."
)


def item_row(item: CanvasItem) -> Row:
    """The row of what lies there."""
    note = f"{item.kind:>8}  {size_words(item.size_bytes):>10}"
    return Row(item.filename, (Span(f" {one_line(item.filename)}"),), (Span(note, Role.DIM),))


def waiting_row(upload: CanvasUpload) -> Row:
    """The row of what is put there when the replica starts."""
    words = (Span(" ◌ ", Role.ASKING), Span(one_line(upload.original_name)))
    note = f"waits for the start  {size_words(upload.size_bytes):>10}"
    return Row(f"{WAITING}{upload.upload_id}", words, (Span(note, Role.DIM),))


def empty_words(state: ReplicaState | None, *, was_read: bool) -> str:
    """What stands where no item is."""
    reason = unreadable_words(state)
    if reason:
        return reason
    return keyed(NOTHING) if was_read else READING


def unreadable_words(state: ReplicaState | None) -> str:
    """Why the canvas cannot be looked at in this state; empty when it can."""
    match state.status if state else WorkspaceStatus.ACTIVE:
        case WorkspaceStatus.ACTIVE:
            return ""
        case WorkspaceStatus.PREPARING:
            return keyed(
                "It is being prepared: its canvas can be read in a moment.\n"
                "{canvas.upload}: what you upload is put there when it has started."
            )
        case WorkspaceStatus.ERROR:
            return keyed(
                "It failed: {replica.wake} tries again, then its canvas can be read and uploaded to."
            )
        case status:
            return f"It is {status}: " + keyed(
                "{replica.wake} wakes it, then its canvas can be read.\n"
                "{canvas.upload}: what you upload is put there when it starts."
            )


def item_facts(item: OpenItem) -> str:
    """What is said at the title's right."""
    return f"{one_line(item.mime_type)}  {size_words(item.size)}"


def instead_words(item: OpenItem) -> str:
    """What stands where an item cannot be shown."""
    if item.data is None:
        most = size_words(CANVAS_LIMIT)
        return f"It is larger than {most} ({size_words(item.size)}), so it is not sent.\n\nm mentions it in a message."
    return f"{item.kind} of type {item.mime_type}, {size_words(item.size)}.\n\nA terminal does not show it: s saves it to a file of this machine."


def uploaded_words(upload: CanvasUpload) -> str:
    """What has become of an upload."""
    name = upload.file_path
    if upload.upload_id is None:
        return f"Put there as {name}."
    return f"It waits: {name} is written when the replica starts. A message wakes it (m mentions the file)."
