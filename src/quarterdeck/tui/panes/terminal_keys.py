"""Keys, texts and prompts of the Terminal tab."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Key
from textual.message import Message
from textual.widgets import Input

from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, action_id_of, keys_of
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.actions.tabs import PREFIX
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.terminal.core import Reading
from quarterdeck.wire.replicas import WorkspaceStatus
from quarterdeck.wire.terminals import MAX_SESSIONS


def is_prefix(key: str) -> bool:
    """Return whether a key is the prefix key."""
    return key in keys_of(PREFIX)


def prefix_key() -> str:
    """Return the prefix key; the default where the user configured none."""
    return next(iter(keys_of(PREFIX)), PREFIX.keys)


def meaning(where: KeyContext, key: str) -> str:
    """Return the id of the action of a key in a place; empty for none."""
    return action_id_of(where, key)


OPENING = "Opening a terminal …"
MOST_OPEN = f"Limit of {MAX_SESSIONS} terminals reached; close one first."
OFFER_SHOWN = 24
"""Characters shown of what a program wants to copy."""


def none_open_words() -> str:
    """Return the text for a replica whose only terminal was closed."""
    return keyed("No terminal is open. {terminal.again} open one · {app.list} list")


def reading_words(reading: Reading, back: int, needle: str, *, named: bool) -> str:
    """Return the position while reading; `named`: the search text is shown nowhere else."""
    parts = ["marking"] if reading.marking else []
    if needle:
        found = f"{reading.match} of {reading.matches}" if reading.matches else "not found"
        parts.append(f"{one_line(needle)}: {found}" if named else found)
    parts = parts or ["reading"]
    parts.append(f"{back} lines back" if back else "at the end")
    return " · ".join(parts)


def link_words(address: str, openable: bool) -> str:
    """Ask what to do with a link; `address` is safe to display."""
    keys = keyed("{link.open} open · {link.copy} copy" if openable else "{link.copy} copy")
    return f"{keys}: {address}"


def not_opened_words(opener: str) -> str:
    """Return the text for a browser that did not start."""
    return f"{opener} could not open it. Copy the address instead."


def offer_words(text: str, prefix: str) -> str:
    """Ask about what a program wants to copy."""
    shown = one_line(text)
    cut = shown if len(shown) <= OFFER_SHOWN else shown[: OFFER_SHOWN - 1] + "…"
    allow = keyed("{terminal.allow}")
    return f"{prefix} {allow} allow clipboard write ({len(text)} characters): {cut}"


def ended_words(code: int | None) -> str:
    """Return the line above a shell that has ended."""
    code_note = "" if code is None else f" ({code})"
    return f"ended{code_note}: " + keyed("{terminal.again} open another · {terminal.dismiss} close")


def failed_words(problem: str) -> str:
    """Return the text for a terminal that could not be opened."""
    keys = keyed("{terminal.again} retry · {app.list} list")
    return f"No terminal could be opened: {problem}\n\n{keys}"


def inactive_words(state: ReplicaState) -> str:
    """Return why a replica has no terminals now; empty when it can have some."""
    match state.status:
        case WorkspaceStatus.ACTIVE:
            return ""
        case WorkspaceStatus.PREPARING:
            return "The replica is being prepared. A terminal opens as soon as it is active."
        case WorkspaceStatus.ERROR:
            return keyed(
                "The replica failed, so it has no terminals. The chat ({tab.chat}) says why.\n\n"
                "{replica.wake} retries."
            )
        case status:
            return (
                f"The replica is {status}. Its terminals have ended; its files are kept.\n\n"
                + keyed("{replica.wake} wakes it and opens a new terminal.")
            )


LONGEST = 256


class TerminalPrompt(Input, HasKeyContext):
    """Replaces the sessions' line, so that the terminal keeps its size."""

    DEFAULT_CSS = """
    TerminalPrompt { display: none; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+shift+a", "select_all", show=False),
    ]

    class Did(Message):
        """The user pressed a key of the prompt; `action` is its id."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self) -> None:
        super().__init__(compact=True, max_length=LONGEST, select_on_focus=False)
        self.cursor_blink = False
        self.where = KeyContext.TERMINAL_FIND

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return self.where

    def open(self, where: KeyContext, placeholder: str, text: str = "") -> None:
        """Show the line; the caller focuses it."""
        self.where = where
        self.placeholder = placeholder
        with self.prevent(Input.Changed):
            self.value = text
        self.cursor_position = len(text)
        self.display = True

    async def _on_key(self, event: Key) -> None:
        action = meaning(self.where, event.key)
        if not action:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        self.post_message(self.Did(action))
