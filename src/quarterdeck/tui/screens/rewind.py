"""The checkpoints of a replica's files, and rewinding to one."""

from datetime import datetime
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Static

from quarterdeck.client.errors import ClientError
from quarterdeck.store.commands import Commands
from quarterdeck.store.git import failure_of
from quarterdeck.store.losses import what_rewinds
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.tui.actions import KeyContext, bindings, keyed
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.kit.dialogs import ConfirmScreen, Dialog
from quarterdeck.tui.kit.rows import Row, RowList
from quarterdeck.tui.kit.spans import TextRole, line
from quarterdeck.tui.screens.choices import refusal_words
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.wire.git import Checkpoint

NONE = "No checkpoints yet. Each turn of the agent starts with one."
NOT_KEPT = "No checkpoint of this message. Available:"
TURNS = "turns/"
"""Prefix of the ids of checkpoints at the start of a turn; the id of the message follows."""


class RewindScreen(Dialog[None], SettledLayout[None]):
    """Lists checkpoints, the newest first; asks before it rewinds, and says how to undo it."""

    DEFAULT_CSS = """
    RewindScreen {
        align: center middle;
        & > Vertical {
            width: 84;
            max-width: 98%;
            height: auto;
            max-height: 90%;
            padding: 0 1;
            background: $surface;
            border: round $border;
            border-subtitle-color: $text-muted;
        }
        & RowList { height: auto; min-height: 3; max-height: 16; background: $surface; }
        & #result { height: auto; margin-top: 1; display: none; }
        & #result.failed { color: $text-error; }
        & #result.done { color: $text-success; }
    }
    """
    place: ClassVar[KeyContext] = KeyContext.REWIND
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyContext.REWIND)]

    def __init__(self, commands: Commands, state: ReplicaState, message_id: str = "") -> None:
        """With a `message_id` the question about the checkpoint of its turn is shown at once."""
        super().__init__()
        self._commands = commands
        self._state = state
        self._message_id = message_id
        self._checkpoints: list[Checkpoint] = []
        self._rows = RowList[str]()
        self._undo = ""
        self._chat = True
        self._busy = False

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title = Text(f"Rewind files: {name_line(self._state.name)}")
        box.border_subtitle = self._keys()
        with box:
            yield self._rows
            yield Static(id="result", markup=False)

    def _keys(self) -> str:
        informed = "yes" if self._chat else "no"
        keys = f"{{rewind.run}} rewind · {{rewind.tell}} inform the agent: {informed} · {{rewind.close}} close"
        return keyed(keys)

    def on_mount(self) -> None:
        self.set_focus(self._rows)
        self._open()

    @work(group="rewind")
    async def _open(self) -> None:
        with hold_keys(self, "Reading the checkpoints"):
            await self._read()
        if self._message_id:
            wanted = f"{TURNS}{self._message_id}"
            chosen = next(
                (checkpoint for checkpoint in self._checkpoints if checkpoint.id == wanted), None
            )
            if chosen is None:
                self._show_message(NOT_KEPT, "failed")
                return
            self._rows.cursor = self._checkpoints.index(chosen)
            await self._ask(chosen)

    @work(group="rewind")
    async def action_look(self) -> None:
        """Read the checkpoints again."""
        await self._read()

    async def _read(self) -> None:
        try:
            self._checkpoints = await self._commands.checkpoints(self._state.id)
        except ClientError as error:
            self._show_message(refusal_words(failure_of(error)), "failed")
            return
        self._rows.empty = NONE
        self._rows.show_rows(
            [
                Row(
                    checkpoint.id,
                    line(one_line(checkpoint.title) or checkpoint.id),
                    line(_moment(checkpoint.at), TextRole.DIM),
                )
                for checkpoint in self._checkpoints
            ]
        )

    def _show_message(self, text: str, kind: str = "") -> None:
        result = self.query_one("#result", Static)
        result.display = bool(text)
        result.set_classes(kind)
        result.update(text)

    @on(RowList.Chosen)
    def _clicked(self, event: RowList.Chosen) -> None:
        event.stop()
        self.action_run()

    @work(group="rewind")
    async def action_run(self) -> None:
        """Rewind to the checkpoint under the cursor."""
        chosen = next(
            (checkpoint for checkpoint in self._checkpoints if checkpoint.id == self._rows.chosen),
            None,
        )
        if chosen is not None:
            await self._ask(chosen)

    async def _ask(self, checkpoint: Checkpoint) -> None:
        if self._busy:
            return
        question = f'Rewind to {_moment(checkpoint.at)}, "{one_line(checkpoint.title)}"?'
        with hold_keys(self, "Reading the changes"):
            changes = await self._commands.changes_since(self._state.id, checkpoint)
        words = what_rewinds(checkpoint, changes, chat=self._chat)
        if await self.app.push_screen_wait(ConfirmScreen(question, words, "Rewind")):
            await self._rewind(checkpoint.id, f"Restored the files of {_moment(checkpoint.at)}.")

    @work(group="rewind")
    async def action_undo(self) -> None:
        """Restore the files as they were before the rewind."""
        if not self._undo:
            self._show_message("No rewind to undo.", "failed")
        elif not self._busy:
            await self._rewind(
                self._undo, "Undone: files restored to their state before the rewind."
            )

    async def _rewind(self, checkpoint: str, done: str) -> None:
        self._busy = True
        self._show_message("Rewinding …")
        text, kind = "Canceled.", "failed"
        try:
            rewound = await self._commands.rewind(self._state.id, checkpoint, chat=self._chat)
            self._undo = rewound.undo
            text, kind = keyed(f"{done} {{rewind.undo}} undoes it."), "done"
        except ClientError as error:
            text = refusal_words(failure_of(error))
        finally:
            self._busy = False
            if self.is_mounted:
                self._show_message(text, kind)
        await self._read()

    def action_tell(self) -> None:
        """Choose whether the chat and the agent are notified of a rewind."""
        self._chat = not self._chat
        self.query_one(Vertical).border_subtitle = self._keys()

    def action_close(self) -> None:
        """Close; wait for a running rewind."""
        if not self._busy:
            self.dismiss(None)


def _moment(at: datetime) -> str:
    return f"{at.astimezone():%d %b %H:%M:%S}"
