"""The composer of messages, and the masked field that replaces it for a secret.

Long pastes are shown as one token each; the text itself is kept separately.

pasted text --add--> "[paste 1: 75,000 lines, 1.0 MB]" --written--> pasted text
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Input
from textual.widgets.text_area import Edit, EditResult, Location, Selection

from quarterdeck.store.drafts import PromptHistory
from quarterdeck.transcript.text import clean, one_line
from quarterdeck.tui.actions import KeyContext, action_id_of, keyed, prompt_bindings
from quarterdeck.tui.clipboard import copy_text
from quarterdeck.tui.host_services import TakesImages
from quarterdeck.tui.kit.key_context import HasKeyContext, KeyContextChanged
from quarterdeck.tui.widgets.completions import Completion, Completions, Token, token_at

if TYPE_CHECKING:
    from quarterdeck.tui.widgets.vim_keys import VimKeys

LONG_LINES = 40
LONG_TEXT = 4_000
"""A paste of more lines, or more characters, becomes a token."""
HUGE_LINES = 2_000
HUGE_TEXT = 100_000
"""The same for a whole text that was not pasted: an area of that size is slow to edit."""
KEPT = 20
"""Texts that are kept without their token: it may come back by undo, or unsent."""

_TOKEN = re.compile(r"\[paste \d+: [^\[\]\n]*\]")


def is_long(text: str) -> bool:
    """Return whether a pasted text becomes a token."""
    return len(text) > LONG_TEXT or text.count("\n") >= LONG_LINES


def is_huge(text: str) -> bool:
    """Return whether any text becomes one."""
    return len(text) > HUGE_TEXT or text.count("\n") >= HUGE_LINES


class Pastes:
    """The texts of one composer's tokens."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._count = 0

    def add(self, text: str) -> str:
        """Return a token for a text."""
        known = next((token for token, one in self._texts.items() if one == text), None)
        if known is not None:
            return known
        self._count += 1
        token = f"[paste {self._count}: {_lines(text)}, {_size(text)}]"
        self._texts[token] = text
        return token

    def folded(self, text: str) -> str:
        """Return a pasted text, or its token if it is long."""
        return self.add(clean(text)) if is_long(text) else text

    def text_of(self, token: str) -> str | None:
        """Return the text of a token."""
        return self._texts.get(token)

    def written(self, shown: str) -> str:
        """Return a text with all of its tokens expanded."""
        return _TOKEN.sub(lambda found: self._texts.get(found[0], found[0]), shown)

    def shown(self, written: str) -> str:
        """Return the reverse, for a text that was shown before; a huge one becomes a token."""
        for token, text in self._texts.items():
            written = written.replace(text, token)
        return self.add(written) if is_huge(written) else written

    def forget(self, shown: str) -> None:
        """Forget all but the latest of the texts that are not used."""
        unused = [token for token in self._texts if token not in shown]
        for token in unused[: max(0, len(unused) - KEPT)]:
            del self._texts[token]

    def whole(self, text: str, start: int, end: int) -> tuple[int, int]:
        """Return a part of a text with all of the tokens that it cuts."""
        for first, last, _ in self.places(text):
            if first < end and start < last:
                start, end = min(start, first), max(end, last)
        return start, end

    def places(self, line: str) -> Iterator[tuple[int, int, str]]:
        """Yield the tokens of a line: start and end."""
        for found in _TOKEN.finditer(line):
            if found[0] in self._texts:
                yield found.start(), found.end(), found[0]


def _lines(text: str) -> str:
    count = text.count("\n") + (not text.endswith("\n"))
    return "1 line" if count == 1 else f"{count:,} lines"


def _size(text: str) -> str:
    size = len(text.encode(errors="replace"))
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1000:.1f} kB" if size < 999_950 else f"{size / 1_000_000:.1f} MB"


_TOKEN_STYLE = Style(italic=True, bold=True)
MOST_LINES = 8
QUITTING = "{app.exit} quits (agents keep running)"
ENDING = f"{{composer.interrupt}} interrupts a turn · {QUITTING}"
"""What a ctrl+c may have been meant for that has nothing to copy or clear."""


class Composer(TakesImages, HasKeyContext):
    """A text area that grows to eight lines. Its text is never lost.

    `text` is shown, `written` is the same with all pastes expanded. `completions` shows those of
    the word at the cursor and has no focus. Up and down move beyond the text to `prompts`.
    """

    DEFAULT_CSS = """
    Composer {
        height: 3;
        min-height: 3;
        border: round $panel-lighten-2;
        padding: 0 1;
        background: $background;
        border-title-color: $text-muted;
        border-subtitle-color: $text-muted;
        &:focus { border: round $border; }
        &.plan { border: round $text-warning; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.COMPOSER)]

    plan_mode: reactive[bool] = reactive(False)
    goal_mode: reactive[bool] = reactive(False)
    model: reactive[str] = reactive("")
    """The chosen model, empty for the agent's default."""

    class Submitted(Message):
        """The text should be sent to the agent."""

        def __init__(
            self, text: str, plan_mode: bool, goal_mode: bool = False, steer: bool = False
        ) -> None:
            super().__init__()
            self.text = text
            self.plan_mode = plan_mode
            self.goal_mode = goal_mode
            self.steer = steer
            """Whether to put it into the running turn."""

    class Cleared(Message):
        """The user cleared a draft of this text."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class TokenChanged(Message):
        """Another word at the cursor can be completed; None when none can."""

        def __init__(self, token: Token | None) -> None:
            super().__init__()
            self.token = token

    completions: Completions | None = None
    prompts: PromptHistory | None = None
    vim: "VimKeys | None" = None
    """The keys of vim, if the user wants them."""
    sends_empty = False
    """Something else is sent with the message, so it needs no text."""

    def __init__(self, *, id: str | None = None) -> None:
        self.pastes = Pastes()  # the base class loads the first text
        self._token: Token | None = None
        self._send_label = "send"
        self._recalled: str | None = None
        """The older prompt that was shown last."""
        super().__init__(id=id, show_line_numbers=False, soft_wrap=True, compact=False)
        self.cursor_blink = False
        self.highlight_cursor_line = False
        self._asked_to_clear = ""
        """The draft that the next ctrl+c clears."""
        self._show_title()

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return KeyContext.COMPOSER if self._typing else KeyContext.COMPOSER_NORMAL

    @property
    def without(self) -> frozenset[str]:
        """Part of `HasKeyContext`: Escape leads to normal mode first."""
        leaves = self.vim is None or not self._typing
        return frozenset[str]() if leaves else frozenset({"composer.list"})

    @property
    def _typing(self) -> bool:
        """Whether a letter is text: always, except in the other modes of vim."""
        return self.vim is None or self.vim.typing

    def use_vim(self, on: bool) -> None:
        """Turn vim keys on or off."""
        if on == (self.vim is not None):
            return
        self.vim = self._vim_keys() if on else None
        self._mode_changed()

    def _vim_keys(self) -> "VimKeys":
        from quarterdeck.tui.vim.editor import VimEditor
        from quarterdeck.tui.widgets.vim_keys import VimKeys

        editor = VimEditor(
            copy=lambda text: copy_text(self, self.pastes.written(text)),
            clipboard=lambda: self.pastes.folded(self.app.clipboard),
            whole=self.pastes.whole,
        )
        return VimKeys(self, editor, self._mode_changed)

    def _mode_changed(self) -> None:
        self._show_title()
        self._token_may_change()
        self.post_message(KeyContextChanged())

    @property
    def labels(self) -> Mapping[str, str]:
        """Part of `HasKeyContext`."""
        return {"composer.send": self._send_label}

    def show_destination(self, label: str, words: str) -> None:
        """Show what Enter does with the text, for the bottom line and in full."""
        self.border_subtitle = words
        if label != self._send_label:
            self._send_label = label
            self.post_message(KeyContextChanged())

    def watch_plan_mode(self, on: bool) -> None:
        self.set_class(on, "plan")
        self._show_title()

    def watch_goal_mode(self) -> None:
        self._show_title()

    def watch_model(self) -> None:
        self._show_title()

    def _show_title(self) -> None:
        words = ["Message"]
        words += [self.vim.words] if self.vim is not None else []
        words += ["plan mode"] if self.plan_mode else []
        words += ["goal mode"] if self.goal_mode else []
        words += [one_line(self.model).replace("[", "(")] if self.model else []
        self.border_title = " · ".join(words)

    def on_text_area_changed(self) -> None:
        lines = max(1, min(MOST_LINES, self.wrapped_document.height))
        if self.styles.height is None or self.styles.height.value != lines + 2:
            self.styles.height = lines + 2
        if self.prompts is not None and self.text != self._recalled:
            self.prompts.leave()  # an older prompt that is changed is another text
        self._token_may_change()

    async def _on_key(self, event: events.Key) -> None:
        if self.vim is not None and self.vim.press(event):
            self._stop(event)
            return
        match action_id_of(KeyContext.COMPOSER, event.key):
            case "composer.send":
                self._enter(event)
            case "composer.steer":
                self._stop(event)
                self._submit(steer=True)
            case "" if event.key in ("up", "down") and self.move_at_edge(event.key):
                self._stop(event)
            case "composer.newline" if self._typing:
                self._stop(event)
                self.insert("\n")
            case "composer.plan":
                self._stop(event)
                self.plan_mode = not self.plan_mode
            case "composer.goal":
                self._stop(event)
                self.goal_mode = not self.goal_mode
            case _ if self._typing:
                await super()._on_key(event)
            case _:
                pass

    def _enter(self, event: events.Key) -> None:
        self._stop(event)
        if not self._typing:
            self._submit()
            return
        row, column = self.cursor_location
        if self.text and self.document.get_line(row)[:column].endswith("\\"):
            self.action_delete_left()
            self.insert("\n")
            return
        chosen = self.offers.chosen if self.offers is not None else None
        is_whole = chosen is not None and chosen.is_message and not self.sends_empty
        command = chosen.insert if chosen is not None and is_whole else ""
        if self._wants_completion() and self.accept() and self.text.strip() != command:
            return
        self._submit()

    def _submit(self, *, steer: bool = False) -> None:
        if self.text.strip() or self.sends_empty:
            # Removed at once: what is typed from here on is another message.
            self.post_message(self.Submitted(self.written, self.plan_mode, self.goal_mode, steer))
            self.text = ""
            self.plan_mode = self.goal_mode = False

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Part of `Widget`: keys of `TextArea` change nothing where letters are no text."""
        if not self._typing and action.startswith(("delete", "cut", "paste", "undo", "redo")):
            return False
        return super().check_action(action, parameters)

    def action_copy(self) -> None:
        """Copy the selection; without one the second press clears the draft, if there is any."""
        if self.vim is not None and self.vim.copy_selection():
            return
        if self.selected_text:
            super().action_copy()
        elif not self.text:
            self.app.notify(keyed(ENDING), markup=False)
        elif self._asked_to_clear != self.text:
            self._asked_to_clear = self.text
            self.app.notify(f"ctrl+c again clears the draft · {keyed(QUITTING)}", markup=False)
        else:
            self.post_message(self.Cleared(self.written))
            self.text = self._asked_to_clear = ""

    def on_blur(self) -> None:
        """Check again when the composer has the focus again."""
        self._asked_to_clear = ""

    def _stop(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()

    # the text, and the pastes in it

    @property
    def written(self) -> str:
        """The whole text."""
        return self.pastes.written(self.text)

    @property
    def selected_text(self) -> str:
        """Part of `TextArea`: pastes are copied in full."""
        return self.pastes.written(super().selected_text)

    @property
    def paste_at_cursor(self) -> str | None:
        """The paste whose token the cursor touches, else the only one."""
        row, column = self.cursor_location
        for start, end, token in self.pastes.places(self.document.get_line(row)):
            if start <= column <= end:
                return self.pastes.text_of(token)
        found = {token for line in self.document.lines for _, _, token in self.pastes.places(line)}
        return self.pastes.text_of(found.pop()) if len(found) == 1 else None

    def load_text(self, text: str) -> None:
        """Part of `TextArea`. A whole text may come out of an editor, or was queued elsewhere."""
        super().load_text(self.pastes.shown(clean(text)))
        self.pastes.forget(self.text)
        if self.vim is not None:
            self.vim.begin()

    def _replace_via_keyboard(
        self, insert: str, start: Location, end: Location
    ) -> EditResult | None:
        # Here, since both ways to paste come through it.
        return super()._replace_via_keyboard(self.pastes.folded(insert), start, end)

    def edit(self, edit: Edit) -> EditResult:
        """Part of `TextArea`: a token is changed as a whole, and control characters are no text."""
        first, last = sorted((edit.from_location, edit.to_location))
        if first != last:
            edit.from_location = self._outside(first, after=False)
            edit.to_location = self._outside(last, after=True)
        edit.text = clean(edit.text)
        return super().edit(edit)

    def validate_selection(self, selection: Selection) -> Selection:
        """Part of `TextArea`: the cursor steps over a token, whichever way it comes."""
        before = self.selection.end
        start, end = selection
        after = end >= before
        moved = self._outside(end, after=after)
        return Selection(moved if start == end else self._outside(start, after=not after), moved)

    def _outside(self, location: Location, *, after: bool) -> Location:
        row, column = location
        if row >= self.document.line_count:
            return location
        for start, end, _ in self.pastes.places(self.document.get_line(row)):
            if start < column < end:
                return row, end if after else start
        return location

    def get_line(self, line_index: int) -> Text:
        """Part of `TextArea`: tokens look like no text."""
        line = super().get_line(line_index)
        for start, end, _ in self.pastes.places(line.plain):
            line.stylize(_TOKEN_STYLE, start, end)
        return line

    def insert_word(self, word: str) -> None:
        """Insert a word at the cursor, separated from the text around it."""
        row, column = self.cursor_location
        before = self.document.get_line(row)[:column]
        apart = " " if before and not before[-1].isspace() else ""
        self.insert(f"{apart}{word.rstrip()} ")

    def put_back(self, text: str, plan_mode: bool, goal_mode: bool = False) -> None:
        """Insert a message that was refused before what was written since."""
        self.text = f"{text}\n{self.written}" if self.text else text
        self.plan_mode = self.plan_mode or plan_mode
        self.goal_mode = self.goal_mode or goal_mode
        self.move_cursor(self.document.end)

    # completions, and older prompts

    @property
    def token(self) -> Token | None:
        """The word at the cursor, if it can be completed."""
        row, column = self.cursor_location
        if not self.selection.is_empty or not self._typing:
            return None
        return token_at(self.document.get_line(row)[:column], row)

    @property
    def offers(self) -> Completions | None:
        """The completions, while they are open."""
        completions = self.completions
        return completions if completions is not None and completions.is_open else None

    def on_text_area_selection_changed(self) -> None:
        """Check whether the cursor is in another word."""
        self._token_may_change()

    def _token_may_change(self) -> None:
        token = self.token
        if token != self._token:
            self._token = token
            self.post_message(self.TokenChanged(token))

    def take_key(self, event: events.Key) -> bool:
        """Part of `TakesKeys`: a key that would leave the text is for the completions or the mode of vim."""
        if event.key == "escape" and self.vim is not None:
            if self.vim.escape():
                return True
            if action_id_of(KeyContext.COMPOSER, "escape") == "composer.list":
                self.vim.resume()  # for the next time
        if self.offers is None or event.key not in ("tab", "escape"):
            return False
        # Through the queue: what was typed before the key is in the text by then.
        self.call_later(self.accept if event.key == "tab" else self.offers.close)
        return True

    def accept(self) -> bool:
        """Replace the word by the selected completion; False when nothing is offered."""
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

    def begin_command(self, command: Completion) -> None:
        """Put a command before the text, and send it if it is the whole message."""
        self.text = f"{command.insert} {self.written}"
        self.move_cursor((0, len(command.insert) + 1))
        is_whole = self.text.strip() == command.insert and not self.sends_empty
        if command.is_message and is_whole:
            self._submit()

    def move_at_edge(self, key: str) -> bool:
        """Move in the completions, or beyond the text to older prompts; False when neither applies."""
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

    def _wants_completion(self) -> bool:
        """Return whether the selected completion would change the word; a complete one is sent."""
        offers, token = self.offers, self.token
        if offers is None or token is None or offers.chosen is None:
            return False
        return offers.chosen.insert.lstrip("/@") != token.query


class SecretField(Vertical, HasKeyContext):
    """Replaces the composer while a secret is requested: its text is never a draft.

    The line is mounted with the first request.
    """

    DEFAULT_CSS = """
    SecretField {
        display: none;
        height: 3;
        border: round $needs-you;
        padding: 0 1;
        border-title-color: $needs-you;
        border-subtitle-color: $text-muted;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.SECRET)]

    class Given(Message):
        """The user answered the question with the secret."""

        def __init__(self, request_id: str, text: str) -> None:
            super().__init__()
            self.request_id = request_id
            self.text = text

    def __init__(self) -> None:
        super().__init__()
        self._request_id = ""
        self.border_title = "Secret answer"
        self.border_subtitle = keyed("{secret.give} submit · never stored")
        self.field = Input(password=True, compact=True)
        """The widget that gets the focus."""
        self.field.cursor_blink = False

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return KeyContext.SECRET

    def ask(self, request_id: str) -> None:
        """Note that a secret is requested: another question starts with an empty field."""
        if not self.field.is_attached:
            self.mount(self.field)
        if request_id != self._request_id:
            self._request_id = request_id
            self.clear()

    def clear(self) -> None:
        """Forget what was typed."""
        self.field.clear()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value:
            self.post_message(self.Given(self._request_id, event.value))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
