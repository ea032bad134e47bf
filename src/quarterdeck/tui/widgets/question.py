"""A question of the agent, docked above the composer until it is answered.

    transcript --show--> QuestionDock --Answered, Rejected--> pane

It shows the oldest open question of a chat, so also one whose block is out of view.
"""

from collections.abc import Callable, Sequence
from math import inf
from time import monotonic
from typing import ClassVar, Final, NamedTuple

from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from quarterdeck.transcript.blocks import DiffPart, QuestionBlock, ToolBlock, question_text
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import (
    ACTIONS,
    KeyContext,
    action_id_of,
    action_named,
    keyed,
    prompt_bindings,
    shown_key,
)
from quarterdeck.tui.actions.tabs import ADD_RULE, CHOICES, PERMISSIONS, REJECT_WHY
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.kit.spans import (
    ROLE_COMPONENTS,
    Line,
    Span,
    SpanPainter,
    TextRole,
    indent,
    line,
    role_css,
    wrap,
)
from quarterdeck.tui.transcript_view.blocks import diff_rows

GRACE_SECONDS = 0.5
"""Seconds after a question came to the focus in which a letter cannot be meant for it."""
LEAST_ROWS = 5
"""Rows of the dialog, without its border, on the smallest screen."""
GAP = 3


def place_of(question: QuestionBlock) -> KeyContext:
    """Return the place of a question's keys.

    Agents also assign kinds to the options of questions that are no permission requests: all the same one.
    """
    kinds = [option.kind for option in question.options or ()]
    is_permission = kinds.count("allow_once") == 1 or (
        "allow_once" not in kinds and any(kind in PERMISSIONS for kind in kinds)
    )
    return KeyContext.PERMISSION if is_permission else KeyContext.CHOICE


def answer_ids(question: QuestionBlock) -> list[str]:
    """Return the action id of each answer; empty where none is left for it."""
    is_permission = place_of(question) is KeyContext.PERMISSION
    free = iter(CHOICES[1:] if is_permission else CHOICES)
    ids: list[str] = []
    for option in question.options or ():
        meant = PERMISSIONS.get(option.kind, "") if is_permission else ""
        ids.append(meant if meant and meant not in ids else next(free, ""))
    return ids


class Entry(NamedTuple):
    """A row of the dialog that can be chosen: the action whose key does it, and its text."""

    action_id: str
    name: str

    @property
    def key(self) -> str:
        """The displayed key; empty when it has none."""
        return shown_key(action_named(self.action_id)) if self.action_id else ""


def entries_of(question: QuestionBlock) -> list[Entry]:
    """Return the answers of a question.

    A permission can also be rejected with a reason, and a command be allowed from now on by a rule.
    """
    options = question.options or ()
    entries = [
        Entry(id, one_line(option.name))
        for id, option in zip(answer_ids(question), options, strict=True)
    ]
    if PERMISSIONS["reject_once"] in (entry.action_id for entry in entries):
        entries.append(Entry(REJECT_WHY.id, REJECT_WHY.help))
    if question.patterns and PERMISSIONS["allow_once"] in (entry.action_id for entry in entries):
        named = ", ".join(f"`{pattern}`" for pattern in question.patterns)
        entries.append(Entry(ADD_RULE.id, f"Always allow {named} by a rule"))
    return entries


def question_rows(question: QuestionBlock, tool: ToolBlock | None, width: int) -> list[Line]:
    """Return the whole question: what it is about, the command, and the changes of an edit."""
    text = question_text(question, tool)
    rows = [row for part in text.split("\n") for row in wrap([Span(part)], width)]
    if question.command:
        parts = question.command.split("\n")
        code = (row for part in parts for row in wrap([Span(part, TextRole.CODE)], width - 2))
        rows += indent(code, line("$ ", TextRole.DIM), line("  "))
    for part in tool.shown_parts if tool else ():
        if isinstance(part, DiffPart):
            rows += diff_rows(part, width)
    if question.takes_text:
        words = "Or type an answer below." if question.options else "Type an answer below."
        rows.append(line(words, TextRole.DIM))
    return rows


def _entry_rows(
    entries: Sequence[Entry], marked: int | None, width: int, *, abreast: bool
) -> list[list[Line]]:
    """Return the rows of each answer; one that shares the row of another before it has none.

    Several are in a row where `abreast`, or when all fit into one.
    """
    spans = [_entry_spans(entry, number == marked, number) for number, entry in enumerate(entries)]
    sizes = [sum(cell_len(span.text) for span in row) for row in spans]
    if abreast or sum(sizes) + GAP * (len(entries) - 1) <= width:
        return _abreast(spans, sizes, width)
    room = max((cell_len(entry.key) for entry in entries), default=0) + 1
    return [_entry_lines(key, name, room, width) for key, name in spans]


def _abreast(
    spans: Sequence[tuple[Span, Span]], sizes: Sequence[int], width: int
) -> list[list[Line]]:
    made: list[list[Line]] = []
    first, left = 0, -1
    for number, (row, size) in enumerate(zip(spans, sizes, strict=True)):
        left -= GAP + size
        if left < 0:
            key, name = row
            made.append(_entry_lines(key, name, cell_len(key.text), width))
            first, left = number, width - size
        else:
            made[first][0] += (Span(" " * GAP), *row)
            made.append([])
    return made


def _entry_lines(key: Span, name: Span, room: int, width: int) -> list[Line]:
    pad = Span(" " * (room - cell_len(key.text)), key.role, target=key.target)
    rest = line(" " * room)
    return list(indent(wrap([name], width - room), (key, pad), rest))


def _entry_spans(entry: Entry, is_marked: bool, number: int) -> tuple[Span, Span]:
    key, name = (TextRole.CHOSEN,) * 2 if is_marked else (TextRole.ASKING, TextRole.TEXT)
    gap = " " if entry.key else ""
    return (
        Span(f"{entry.key}{gap}", key, target=str(number)),
        Span(entry.name, name, target=str(number)),
    )


class _Drawn(NamedTuple):
    """The rows of a question at a width."""

    text: list[Line]
    entries: list[Line]
    starts: list[int]
    """The first row of each entry, among those of the entries."""


ANSWERS: Final = [
    Binding(
        action.keys, f"answer('{action.id}')", action.help, show=False, priority=True, id=action.id
    )
    for place in (KeyContext.PERMISSION, KeyContext.CHOICE)
    for action in ACTIONS[place]
    if action.id in {*PERMISSIONS.values(), *CHOICES, ADD_RULE.id}
    and (place is KeyContext.PERMISSION or action.id == CHOICES[0])
]


class QuestionView(Widget, can_focus=True):
    """The text of the question, which scrolls when it is long, and the answers below it."""

    COMPONENT_CLASSES: ClassVar[set[str]] = ROLE_COMPONENTS
    DEFAULT_CSS = "QuestionView { height: auto; }" + role_css("QuestionView")
    BINDINGS: ClassVar[list[BindingType]] = [
        *ANSWERS,
        Binding("up,k", "mark(-1)", "Previous answer", show=False, id="question.up"),
        Binding("down,j", "mark(1)", "Next answer", show=False, id="question.down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="question.page-up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="question.page-down"),
        Binding("enter", "choose", "Choose", show=False, id="question.choose"),
        *prompt_bindings(KeyContext.PERMISSION),
    ]

    marked: reactive[int | None] = reactive[int | None](None, layout=True)
    """The answer that Enter gives: none until the user moves to one."""
    top: reactive[int] = reactive(0)
    """The first row of the text that is shown."""

    class Chosen(Message):
        """The user wants the answer of this action, or of this number where it has no key."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    class Scrolled(Message):
        """Other rows of the text are shown, or another number of them."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self.accepts: Callable[[], bool] = lambda: True
        """Whether a letter may be an answer now."""
        self._question: QuestionBlock | None = None
        self._tool: ToolBlock | None = None
        self._painter = SpanPainter(
            lambda role: self.get_component_rich_style(f"transcript--{role}")
        )
        self._shown: tuple[object, ...] = ()
        self._room = LEAST_ROWS

    def show(self, question: QuestionBlock, tool: ToolBlock | None) -> None:
        """Show a question."""
        shown = (question, question.revision, tool and tool.revision)
        if shown == self._shown:
            return
        if question is not self._question:
            self.marked, self.top = None, 0
        self._question, self._tool, self._shown = question, tool, shown
        self.entries = entries_of(question)
        self.refresh(layout=True)

    def _draw(self, width: int) -> _Drawn:
        if self._question is None:
            return _Drawn([], [], [])
        text = question_rows(self._question, self._tool, width)
        abreast = place_of(self._question) is KeyContext.PERMISSION
        entries = _entry_rows(self.entries, self.marked, width, abreast=abreast)
        starts = [sum(map(len, entries[:number])) for number in range(len(entries))]
        return _Drawn(text, [row for rows in entries for row in rows], starts)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Part of `Widget`: two fifths of the screen at most."""
        self._room = max(LEAST_ROWS, viewport.height * 2 // 5)
        drawn = self._draw(width)
        return min(self._room, len(drawn.text) + len(drawn.entries))

    def _rows(self) -> tuple[list[Line], range, int]:
        """Return the rows of the window, which ones of the text they begin with, and how many that has."""
        drawn, height = self._draw(self.size.width), self.size.height
        for_text = min(len(drawn.text), max(height - len(drawn.entries), height // 2))
        for_entries = height - for_text
        start = drawn.starts[self.marked] if self.marked is not None else 0
        first = max(0, min(start, len(drawn.entries) - for_entries))
        top = max(0, min(self.top, len(drawn.text) - for_text))
        seen = range(top, top + for_text)
        rows = [*drawn.text[top : top + for_text], *drawn.entries[first : first + for_entries]]
        return rows, seen, len(drawn.text)

    @property
    def position(self) -> str:
        """Which rows of the text are shown; empty when all are."""
        _, seen, total = self._rows()
        return f"{seen.start + 1}-{seen.stop} of {total}" if len(seen) < total else ""

    def render_line(self, y: int) -> Strip:
        rows = self._rows()[0]
        row = rows[y] if y < len(rows) else ()
        return self._painter.strip(row, self.size.width, 0).apply_style(self._base)

    @property
    def _base(self) -> Style:
        return Style(bgcolor=self.rich_style.bgcolor)

    def on_resize(self) -> None:
        self.post_message(self.Scrolled())

    def notify_style_update(self) -> None:
        """Draw with another theme."""
        super().notify_style_update()
        self._painter.reset()

    def action_mark(self, by: int) -> None:
        """Mark the next (1) or previous (-1) answer; where there are none, scroll."""
        if not self.entries:
            self.action_page(by)
        elif self.marked is None:
            self.marked = 0 if by > 0 else len(self.entries) - 1
        else:
            self.marked = max(0, min(len(self.entries) - 1, self.marked + by))

    def action_page(self, by: int) -> None:
        """Scroll the text by what is shown of it."""
        _, seen, total = self._rows()
        last = max(0, total - len(seen))
        self.top = max(0, min(last, self.top + by * max(1, len(seen) - 1)))
        self.post_message(self.Scrolled())

    def on_mouse_scroll_down(self) -> None:
        self.action_page(1)

    def on_mouse_scroll_up(self) -> None:
        self.action_page(-1)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a letter answers: only where the question has an answer with it."""
        if action == "answer":
            return parameters[0] in [entry.action_id for entry in self.entries]
        return True

    def on_key(self, event: events.Key) -> None:
        """Keep letters that are no answer from the actions of the list, such as deleting the replica."""
        moves = action_id_of(KeyContext.PERMISSION, event.key) in ("question.up", "question.down")
        if (event.character or "").isalpha() and not moves:
            event.stop()

    def action_answer(self, id: str) -> None:
        """Give the answer with this action id."""
        if self.accepts():
            numbers = [entry.action_id for entry in self.entries]
            self.post_message(self.Chosen(numbers.index(id)))

    def action_reject_why(self) -> None:
        """Ask for the reason of a rejection."""
        if self.check_action("answer", (REJECT_WHY.id,)):
            self.action_answer(REJECT_WHY.id)

    def action_choose(self) -> None:
        """Give the marked answer."""
        if self.marked is not None and self.accepts():
            self.post_message(self.Chosen(self.marked))

    def on_click(self, event: events.Click) -> None:
        rows = self._rows()[0]
        left = event.x
        for span in rows[event.y] if event.y < len(rows) else ():
            left -= cell_len(span.text)
            if left < 0:
                if span.target:
                    self.post_message(self.Chosen(int(span.target)))
                return


class ReasonField(Vertical, HasKeyContext):
    """The line in which the reason of a rejection is typed."""

    DEFAULT_CSS = """
    ReasonField { height: 1; display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.REJECTION)]

    class Left(Message):
        """The user goes back to the question."""

    def __init__(self) -> None:
        super().__init__()
        self.field = Input(
            placeholder="Why, or what to do instead", compact=True, select_on_focus=False
        )
        """The widget that gets the focus."""
        self.field.cursor_blink = False

    def compose(self) -> ComposeResult:
        yield self.field

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return KeyContext.REJECTION

    def action_back(self) -> None:
        """Go back to the question; what was typed is kept."""
        # Through the field's queue: what was typed before the key is in it by then.
        self.field.call_later(self.post_message, self.Left())


class QuestionDock(Vertical, HasKeyContext):
    """The dialog: hidden while nothing is asked. Its parts are mounted with the first question."""

    DEFAULT_CSS = """
    QuestionDock {
        display: none;
        height: auto;
        border: round $needs-you;
        border-title-color: $needs-you;
        border-title-style: bold;
        border-subtitle-color: $text-muted;
        padding: 0 1;
        &:focus-within { border: heavy $needs-you; }
    }
    """

    class Answered(Message):
        """The user chose an option."""

        def __init__(
            self, request_id: str, option_id: str, reason: str, patterns: Sequence[str]
        ) -> None:
            super().__init__()
            self.request_id = request_id
            self.option_id = option_id
            self.reason = reason
            """What the agent is to be told with the rejection."""
            self.patterns = patterns
            """Those of rules that allow such commands from now on."""

    def __init__(self) -> None:
        super().__init__()
        self._view = QuestionView()
        self._view.accepts = self._accepts
        self._reason = ReasonField()
        self._question: QuestionBlock | None = None
        self._answered = False
        self._since = -inf
        self._is_uninvited = False
        """Whether it took the focus by itself: then the user may still be typing a message."""
        self.offered = False
        """Whether the question had the focus already."""

    @property
    def place(self) -> KeyContext:
        """Part of `HasKeyContext`."""
        return KeyContext.PERMISSION if self._question is None else place_of(self._question)

    @property
    def without(self) -> frozenset[str]:
        """Part of `HasKeyContext`."""
        offered = {entry.action_id for entry in self._view.entries}
        some = {*PERMISSIONS.values(), *CHOICES, REJECT_WHY.id, ADD_RULE.id}
        return frozenset(some).difference(offered)

    @property
    def takes_keys(self) -> bool:
        """Whether there is anything to choose."""
        return self.display and bool(self._view.entries)

    @property
    def reason(self) -> str:
        """The reason of a rejection that is being typed."""
        return self._reason.field.value

    def show(self, waiting: Sequence[QuestionBlock], tool: ToolBlock | None, agent: str) -> str:
        """Show the first of these questions; return the reason that was being typed for one that ended."""
        question = waiting[0] if waiting else None
        unsent = ""
        if question is not self._question:
            unsent = "" if self._answered else self.reason
            self._change(question)
        self.display = question is not None
        if question is not None:
            if not self._view.is_attached:
                self.mount(self._view, self._reason)
            self._view.show(question, tool)
            count = f" · 1 of {len(waiting)}" if len(waiting) > 1 else ""
            self.border_title = f"{_head(question, agent)}{count}"
            self._show_keys()
        return unsent

    def _change(self, question: QuestionBlock | None) -> None:
        self._question = question
        self._answered = self.offered = False
        self._leave_reason()
        self._reason.field.clear()
        # A second press of the key that answered the last one is no answer to this one.
        self._since, self._is_uninvited = monotonic(), False

    def _show_keys(self) -> None:
        position = self._view.position
        parts = [position] if position else []
        if self._reason.display:
            parts.append(keyed("{rejection.send} reject and send · {rejection.back} back"))
        else:
            parts = [f"{position} {keyed('{question.page-down}')}" for position in parts]
            if not self.has_focus_within and self.takes_keys:
                parts.append(keyed("{chat.question} to answer"))
        self.border_subtitle = " · ".join(parts)

    # the focus

    def take_focus(self, *, invited: bool) -> None:
        """Take the focus; uninvited while the user may still be typing."""
        self.offered = True
        self._since = -inf if invited else monotonic()
        self._is_uninvited = not invited
        target = self._reason.field if self._reason.display else self._view
        self.screen.set_focus(target)

    def is_typed_ahead(self, event: events.Key) -> bool:
        """Return whether a key is text that was typed before the user could see the question."""
        return (
            self._view.has_focus and self._is_uninvited and not self._ready and event.is_printable
        )

    @property
    def _ready(self) -> bool:
        return monotonic() - self._since >= GRACE_SECONDS

    def _accepts(self) -> bool:
        return self._ready and not self._answered

    def on_descendant_focus(self) -> None:
        self._show_keys()

    def on_descendant_blur(self) -> None:
        self._show_keys()

    def on_question_view_scrolled(self, event: QuestionView.Scrolled) -> None:
        event.stop()
        self._show_keys()

    # answering

    def on_question_view_chosen(self, event: QuestionView.Chosen) -> None:
        event.stop()
        question = self._question
        if question is None or self._answered:
            return
        options = question.options or ()
        if event.number < len(options):
            self._answer(question, options[event.number].id)
        elif self._view.entries[event.number].action_id == ADD_RULE.id:
            number = answer_ids(question).index(PERMISSIONS["allow_once"])
            self._answer(question, options[number].id, patterns=question.patterns)
        else:
            self._reason.display = True
            self._show_keys()
            self.screen.set_focus(self._reason.field)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        question = self._question
        if question is None or self._answered:
            return
        options = question.options or ()
        number = answer_ids(question).index(PERMISSIONS["reject_once"])
        self._answer(question, options[number].id, event.value.strip())

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()

    def on_reason_field_left(self, event: ReasonField.Left) -> None:
        event.stop()
        self._leave_reason()

    def _leave_reason(self) -> None:
        if self._reason.field.has_focus:  # hidden, it would give the focus to the list
            self.screen.set_focus(self._view)
        self._reason.display = False

    def _answer(
        self,
        question: QuestionBlock,
        option_id: str,
        reason: str = "",
        patterns: Sequence[str] = (),
    ) -> None:
        self._answered = True
        self.post_message(self.Answered(question.request_id, option_id, reason, patterns))

    def reopen(self) -> None:
        """Note that the answer was refused: another one can be given."""
        self._answered = False


def _head(question: QuestionBlock, agent: str) -> str:
    name = one_line(agent).replace("[", "(") or "The agent"
    if place_of(question) is KeyContext.CHOICE:
        return f"{name} asks"
    return f"{name} wants to run" if question.command else f"{name} asks for permission"
