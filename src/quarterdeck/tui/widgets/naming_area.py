"""A text area that helps to name things, and goes back to what was written before."""

from textual import events
from textual.message import Message
from textual.widgets.text_area import Edit, EditResult

from quarterdeck.store.prompt_history import PromptHistory
from quarterdeck.transcript.clean import clean
from quarterdeck.tui.widgets.completions import Completions
from quarterdeck.tui.widgets.composer_tokens import Token, token_at
from quarterdeck.tui.widgets.styled_once import StyledOnce


class NamingArea(StyledOnce):
    """`completions` shows what the word at the cursor may become; it has no keys of its own."""

    completions: Completions | None = None
    prompts: PromptHistory | None = None

    class Naming(Message):
        """Another word is being named; None: none is."""

        def __init__(self, token: Token | None) -> None:
            super().__init__()
            self.token = token

    _token: Token | None = None
    _recalled: str | None = None
    """The older prompt that was put there last."""

    @property
    def token(self) -> Token | None:
        """The word at the cursor, if it names something."""
        row, column = self.cursor_location
        if not self.selection.is_empty:
            return None
        return token_at(self.document.get_line(row)[:column], row)

    @property
    def offers(self) -> Completions | None:
        """The completions, while they are open."""
        completions = self.completions
        return completions if completions is not None and completions.is_open else None

    def on_text_area_changed(self) -> None:
        """What is written on top of an older prompt is another text."""
        if self.prompts is not None and self.text != self._recalled:
            self.prompts.leave()
        self._look_again()

    def on_text_area_selection_changed(self) -> None:
        """The cursor may stand in another word."""
        self._look_again()

    def _look_again(self) -> None:
        token = self.token
        if token != self._token:
            self._token = token
            self.post_message(self.Naming(token))

    def take_key(self, event: events.Key) -> bool:
        """Keys that would leave the text serve what is offered first; True when they do.

        To be asked before the key is passed on."""
        if self.offers is None or event.key not in ("tab", "escape"):
            return False
        # Through the queue: what was typed before the key is in the text by then.
        self.call_later(self.accept if event.key == "tab" else self.offers.close)
        return True

    def accept(self) -> bool:
        """Puts the chosen completion in the word's place; False when nothing is offered."""
        offers, token = self.offers, self.token
        if offers is None or offers.chosen is None:
            return False
        chosen = offers.chosen.insert
        offers.close()
        if token is None:
            return False
        row, column = self.cursor_location
        self.replace(f"{chosen} ", (row, token.start), (row, column))
        return True

    def edit(self, edit: Edit) -> EditResult:
        """What is pasted or named comes from anywhere: control characters are no text."""
        edit.text = clean(edit.text)
        return super().edit(edit)

    def load_text(self, text: str) -> None:
        """The same for a whole text: one that was queued elsewhere, or came out of an editor."""
        super().load_text(clean(text))

    def insert_word(self, word: str) -> None:
        """Puts a word at the cursor, apart from what stands around it."""
        row, column = self.cursor_location
        before = self.document.get_line(row)[:column]
        apart = " " if before and not before[-1].isspace() else ""
        self.insert(f"{apart}{word.rstrip()} ")

    def move_at_edge(self, key: str) -> bool:
        """Up and down: in what is offered, or beyond the text to older prompts."""
        by = -1 if key == "up" else 1
        if self.offers is not None:
            self.offers.move(by)
            return True
        navigator = self.navigator
        at_edge = (
            navigator.is_first_wrapped_line(self.cursor_location)
            if by < 0
            else navigator.is_last_wrapped_line(self.cursor_location)
        )
        if self.prompts is None or not at_edge:
            return False
        text = self.prompts.back(self.text) if by < 0 else self.prompts.forward()
        if text is None:
            return False
        self.text = text
        self._recalled = self.text
        self.move_cursor((0, 0) if by < 0 else self.document.end)
        return True
