"""Write and try a hook."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Static, TextArea
from textual.worker import Worker

from quarterdeck.client.errors import ClientError
from quarterdeck.store.environments import Ending, HookTestRun
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, eager_bindings, keyed
from quarterdeck.tui.environments.section import Parts
from quarterdeck.tui.forms.kit import FILL, settled
from quarterdeck.tui.forms.kit.controls import Editor
from quarterdeck.tui.forms.kit.form import edit_outside
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.kit.dialogs import Dialog, Unsaved, UnsavedScreen
from quarterdeck.tui.kit.spans import Line, fit, line
from quarterdeck.tui.kit.text_view import TextView
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.wire.environment_parts import EnvironmentHook
from quarterdeck.wire.environments import Environment
from quarterdeck.wire.setup import HookKind


class LinesPage:
    """Lines kept, each a row; one that is too long is cut."""

    numbered = False
    width = 0

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._width = 0

    def lay_out(self, width: int) -> None:
        self._width = width

    def __len__(self) -> int:
        return len(self.lines)

    def row(self, index: int) -> Line:
        return fit(line(self.text(index)), self._width)

    def text(self, index: int) -> str:
        return self.lines[index].expandtabs(4)


class HookLogView(TextView):
    """The lines of a test; it follows the end unless the user has scrolled away."""

    DEFAULT_CSS = """
    HookLogView {
        border-top: solid $panel-lighten-2;
        border-title-color: $text-muted;
        &:focus { border-top: solid $border; }
        &.passed { border-title-color: $text-success; }
        &.failed, &.stopped { border-title-color: $text-error; }
    }
    """
    has_cursor = False

    def show(self, run: HookTestRun) -> None:
        """Show the output so far."""
        if isinstance(self.page, LinesPage) and self.page.lines is run.lines:
            self.page_grew()
        else:
            self.show_page(LinesPage(run.lines), end=True)


KEYS = (
    "{environment-hook.save} save · {hook.test} test · {environment-hook.editor} open $EDITOR · "
    "{environment-hook.close} close"
)
TESTING = "Testing in a temporary replica · {hook.test} stop"


class HookScreen(Dialog[object], SettledLayout[object]):
    """Dismissed with True when a version was saved, else with None."""

    DEFAULT_CSS = """
    HookScreen {
        align: center middle;
        & > Vertical {
            width: 98%;
            height: 98%;
            padding: 0 1;
            background: $surface;
            border: round $border;
        }
        & Editor { height: 1fr; border: round $panel-lighten-2; }
        & Editor:focus { border: round $border; }
        & HookLogView { height: 1fr; display: none; }
        & .words { height: auto; max-height: 4; color: $text-muted; }
        & .words.trouble { color: $text-error; }
        & .words.good { color: $text-success; }
    }
    """
    place: ClassVar[KeyContext] = KeyContext.ENVIRONMENT_HOOK
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.ENVIRONMENT_HOOK)]

    def __init__(
        self, parts: Parts, environment: Environment, kind: HookKind, hook: EnvironmentHook | None
    ) -> None:
        super().__init__()
        self._parts = parts
        self._environment = environment
        self._kind = kind
        self._hook = hook
        self._saved = hook.content if hook is not None else ""
        self._written = False
        self._trial: Worker[None] | None = None
        self._scheduled = False

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title = Text(self._title())
        with box:
            editor = Editor(self._saved, secret=False, rows=FILL)
            editor.show_line_numbers = True
            editor.soft_wrap = False
            yield editor
            yield HookLogView()
            yield Static(keyed(KEYS), classes="words", markup=False)

    def _title(self) -> str:
        version = f", version {self._hook.version}" if self._hook is not None else ", new"
        return f"{self._kind.capitalize()} hook of {one_line(self._environment.name)}{version}"

    def on_mount(self) -> None:
        # The control may normalize line ends: that is not an edit.
        self._saved = self.script
        self.query_one(Editor).focus()

    @property
    def script(self) -> str:
        """The text in the editor."""
        return self.query_one(Editor).text

    def _show_message(self, text: str, kind: str = "") -> None:
        line = self.query_one(".words", Static)
        line.update(one_line(text))
        line.set_classes(f"words {kind}")

    @on(TextArea.Changed)
    def _typed(self) -> None:
        if self.script != self._saved:
            self._show_message(f"Not saved. {keyed(KEYS)}")

    # saving

    def action_save(self) -> None:
        self._save()

    @work(exclusive=True, group="save")
    async def _save(self) -> None:
        await settled(self.query_one(Editor))
        script = self.script
        try:
            hook = await self._parts.hooks.save(self._environment, self._kind, script)
        except ClientError as error:
            self._show_message(f"{error} {error.next_step} Nothing typed is lost.", "trouble")
            return
        self._hook, self._saved, self._written = hook, script, True
        self.query_one(Vertical).border_title = Text(self._title())
        message = "The hook was removed."
        if hook is not None:
            message = f"Saved as version {hook.version}; used by new replicas."
        self._show_message(message, "good")

    # testing

    def action_test(self) -> None:
        if self._trial is not None and self._trial.is_running:
            self._trial.cancel()
            self._show_message("The test was stopped.")
            return
        self._trial = self._test()

    @work(exclusive=True, group="test")
    async def _test(self) -> None:
        await settled(self.query_one(Editor))
        log = self.query_one(HookLogView)
        log.display = True
        log.border_title = " Output "
        log.set_classes("")
        self._show_message(keyed(TESTING))
        try:
            run = await self._parts.hooks.test(
                self._environment, self._kind, self.script, self._receive_run
            )
        except ClientError as error:
            message = getattr(error, "details", None) or error.next_step
            self._show_message(f"{error} {message}", "trouble")
            return
        self._receive_run(run)
        log.set_classes(run.ending.value)
        log.border_title = Text(f" {run.end} ")
        self._show_message(run.end, "good" if run.ending is Ending.PASSED else "trouble")

    def _receive_run(self, run: HookTestRun) -> None:
        """Show the received output, at most once per frame."""
        if not self._scheduled:
            self._scheduled = True
            self.call_after_refresh(self._show_run, run)

    def _show_run(self, run: HookTestRun) -> None:
        self._scheduled = False
        self.query_one(HookLogView).show(run)

    # navigation

    def action_other(self) -> None:
        log, editor = self.query_one(HookLogView), self.query_one(Editor)
        self.set_focus(log if editor.has_focus and log.display else editor)

    async def action_editor(self) -> None:
        await edit_outside(self.query_one(Editor), f"{self._kind}-hook.sh")

    def action_close(self) -> None:
        self._close()

    @work(exclusive=True, group="close")
    async def _close(self) -> None:
        with hold_keys(self, "Closing"):
            await settled(self.query_one(Editor))
        answer = Unsaved.DROP
        if self.script != self._saved:
            answer = await self.app.push_screen_wait(UnsavedScreen("the script"))
        if answer is Unsaved.SAVE:
            self.action_save()
        elif answer is Unsaved.DROP:
            self.dismiss(True if self._written else None)
