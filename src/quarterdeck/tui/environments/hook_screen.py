"""Editing a hook and trying it out: the script above, what it printed below."""

from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Static, TextArea
from textual.worker import Worker

from quarterdeck.client.errors import ClientError
from quarterdeck.store.environment_hooks import Ending, HookRun
from quarterdeck.tui.actions import Where, eager_bindings
from quarterdeck.tui.actions.sentences import keyed, keyed_briefly
from quarterdeck.tui.environments.hook_log import HookLog
from quarterdeck.tui.environments.parts import Parts
from quarterdeck.tui.forms.kit import FILL, Unsaved, UnsavedScreen, settled
from quarterdeck.tui.forms.kit.controls import Editor
from quarterdeck.tui.forms.kit.outside import edit_outside
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.screens.dialog import Dialog
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import hold_keys, release_keys
from quarterdeck.wire.environment_hooks import EnvironmentHook
from quarterdeck.wire.environments import Environment
from quarterdeck.wire.setup import HookKind

KEYS = (
    "{environment-hook.save} saves, {hook.test} tests, {environment-hook.editor} opens $EDITOR, "
    "{environment-hook.close} closes"
)
TESTING = "It runs in a workspace of its own; {hook.test} stops it."


class HookScreen(SettledLayout[object], Dialog[object]):
    """Dismissed with True when a version was saved, else with None."""

    DEFAULT_CSS = """
    HookScreen {
        align: center middle;
        & > Vertical {
            width: 98%;
            height: 98%;
            padding: 0 1;
            background: $surface;
            border: round $primary;
        }
        & Editor { height: 1fr; border: round $panel-lighten-2; }
        & Editor:focus { border: round $border; }
        & HookLog { height: 1fr; display: none; }
        & .words { height: auto; max-height: 4; color: $text-muted; }
        & .words.trouble { color: $text-error; }
        & .words.good { color: $text-success; }
    }
    """
    place: ClassVar[Where] = Where.ENVIRONMENT_HOOK
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(Where.ENVIRONMENT_HOOK)]

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
            yield HookLog()
            yield Static(keyed_briefly(KEYS), classes="words", markup=False)

    def _title(self) -> str:
        version = f", version {self._hook.version}" if self._hook is not None else ", new"
        return f"{self._kind.capitalize()} hook of {one_line(self._environment.name)}{version}"

    def on_mount(self) -> None:
        # The control may write line ends in its own way: that is no change of a person's.
        self._saved = self.script
        self.query_one(Editor).focus()
        release_keys(self)

    @property
    def script(self) -> str:
        """What stands in the editor."""
        return self.query_one(Editor).text

    def _say(self, text: str, kind: str = "") -> None:
        line = self.query_one(".words", Static)
        line.update(one_line(text))
        line.set_classes(f"words {kind}")

    @on(TextArea.Changed)
    def _typed(self) -> None:
        if self.script != self._saved:
            self._say(f"Not saved. {keyed_briefly(KEYS)}")

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
            self._say(f"{error} {error.next_step} Nothing typed is lost.", "trouble")
            return
        self._hook, self._saved, self._written = hook, script, True
        self.query_one(Vertical).border_title = Text(self._title())
        said = "No hook is in force now."
        if hook is not None:
            said = f"Version {hook.version} is in force for workspaces made from now on."
        self._say(said, "good")

    # trying it out

    def action_test(self) -> None:
        if self._trial is not None and self._trial.is_running:
            self._trial.cancel()
            self._say("The test was stopped.")
            return
        self._trial = self._test()

    @work(exclusive=True, group="test")
    async def _test(self) -> None:
        await settled(self.query_one(Editor))
        log = self.query_one(HookLog)
        log.display = True
        log.border_title = " What it prints "
        log.set_classes("")
        self._say(keyed(TESTING))
        try:
            run = await self._parts.hooks.test(
                self._environment, self._kind, self.script, self._tell
            )
        except ClientError as error:
            said = getattr(error, "details", None) or error.next_step
            self._say(f"{error} {said}", "trouble")
            return
        self._tell(run)
        log.set_classes(run.ending.value)
        log.border_title = Text(f" {run.end} ")
        self._say(run.end, "good" if run.ending is Ending.PASSED else "trouble")

    def _tell(self, run: HookRun) -> None:
        """Shows what came, once a frame however much it is."""
        if not self._scheduled:
            self._scheduled = True
            self.call_after_refresh(self._show_run, run)

    def _show_run(self, run: HookRun) -> None:
        self._scheduled = False
        self.query_one(HookLog).show(run)

    # moving about

    def action_other(self) -> None:
        log, editor = self.query_one(HookLog), self.query_one(Editor)
        self.set_focus(log if editor.has_focus and log.display else editor)

    async def action_editor(self) -> None:
        await edit_outside(self.query_one(Editor), f"{self._kind}-hook.sh")

    def action_close(self) -> None:
        hold_keys(self)
        self._close()

    @work(exclusive=True, group="close")
    async def _close(self) -> None:
        await settled(self.query_one(Editor))
        answer = Unsaved.DROP
        if self.script != self._saved:
            answer = await self.app.push_screen_wait(UnsavedScreen("the script"))
        if answer is Unsaved.SAVE:
            self.action_save()
        elif answer is Unsaved.DROP:
            release_keys(self)
            self.dismiss(True if self._written else None)
