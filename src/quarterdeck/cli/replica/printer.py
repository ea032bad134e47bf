"""Print a growing transcript as plain text."""

from collections.abc import Callable, Iterable
from uuid import UUID

from quarterdeck.transcript.blocks import Block, SpeechBlock, ToolBlock, ToolState
from quarterdeck.transcript.export import plain_lines
from quarterdeck.transcript.fold import Transcript
from quarterdeck.wire.events import Event, TurnDelta, payload_of
from quarterdeck.wire.history import AgentEvent

_ENDED = {ToolState.COMPLETED, ToolState.FAILED, ToolState.STOPPED}


class TranscriptPrinter:
    """Prints speech letter by letter, tool output line by line, everything else when it changes.

    `write` gets text that is safe to show, with its newlines.
    """

    def __init__(self, chat_id: UUID, write: Callable[[str], None]) -> None:
        self._chat_id = str(chat_id)
        self._write = write
        self._transcript = Transcript()
        self._shown: dict[int, list[str]] = {}
        self._open: int | None = None
        """The block whose last line is not complete yet."""

    def take_page(self, events: Iterable[AgentEvent]) -> None:
        """Print the events of a page of history together."""
        for event in events:
            self._transcript.append(event)
        for block in self._transcript.blocks:
            self._show(block)

    def take(self, event: Event) -> None:
        """Print one event of the stream; those of other chats are ignored."""
        payload = payload_of(event)
        if not isinstance(payload, TurnDelta) or payload.chat_id != self._chat_id:
            return
        change = self._transcript.append(payload.event)
        for block_id in (*change.added, *change.changed):
            block = self._transcript.block(block_id)
            if block is not None:
                self._show(block)

    def finish(self) -> None:
        """End an incomplete line."""
        if self._open is not None:
            self._open = None
            self._write("\n")

    def _show(self, block: Block) -> None:
        lines = plain_lines(block)
        shown = self._shown.get(block.id, [])
        if lines == shown:
            return
        self._shown[block.id] = lines
        match block:
            case SpeechBlock():
                self._show_speech(block, "\n".join(lines), "\n".join(shown))
            case ToolBlock():
                self._show_tool(block, lines, shown)
            case _:
                self._show_lines(lines)

    def _show_speech(self, block: Block, text: str, shown: str) -> None:
        if self._open != block.id:
            self.finish()
            fresh = text.removeprefix(shown).removeprefix("\n")
        elif text.startswith(shown):
            fresh = text[len(shown) :]
        else:
            fresh = "\n" + text
        self._open = block.id
        self._write(fresh)

    def _show_tool(self, block: ToolBlock, lines: list[str], shown: list[str]) -> None:
        ended = block.state in _ENDED
        if ended and not shown:
            self._show_lines(lines)
            return
        # The last line of output may still grow, so it is printed at the end.
        output = lines[1:] if ended else lines[1:-1]
        before = shown[1:]
        self._shown[block.id] = [lines[0], *output]
        fresh = output[len(before) :] if output[: len(before)] == before else output
        head = [] if shown else [f"[started]  {' '.join(block.name.split())}"]
        tail = [lines[0]] if ended and shown[0] != lines[0] else []
        if head or fresh or tail:
            self._show_lines([*head, *fresh, *tail])

    def _show_lines(self, lines: Iterable[str]) -> None:
        self.finish()
        self._write("".join(f"{line}\n" for line in lines))
