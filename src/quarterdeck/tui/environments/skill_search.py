"""Searching the registries for a skill, and installing it."""

import asyncio
from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from quarterdeck.client.errors import ClientError
from quarterdeck.tui.actions import Where, eager_bindings
from quarterdeck.tui.environments.parts import Parts
from quarterdeck.tui.environments.rows import Row, RowList
from quarterdeck.tui.environments.words import counted
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.screens.dialog import Dialog
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import release_keys
from quarterdeck.wire.environment_skills import CreateSkill, FoundSkill
from quarterdeck.wire.environments import Environment

TYPING = 0.25
"""Seconds without a key before what was typed is searched for."""
UNTYPED = "Type what to search for. esc, then m, installs from a source by hand."
NOTHING = "Nothing was found. esc, then m, installs from a source by hand."


class SkillSearch(SettledLayout[object], Dialog[object]):
    """Dismissed with True when something was installed, else with None."""

    DEFAULT_CSS = """
    SkillSearch {
        align: center middle;
        & > Vertical {
            width: 96;
            max-width: 98%;
            height: 90%;
            padding: 0 2;
            background: $surface;
            border: round $primary;
        }
        & RowList { height: 1fr; margin-top: 1; }
        & .about { height: auto; max-height: 3; color: $text-muted; }
        & .words { height: auto; color: $text-muted; }
        & .words.trouble { color: $text-error; }
    }
    """
    place: ClassVar[Where] = Where.SKILL_SEARCH
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(Where.SKILL_SEARCH)]

    def __init__(self, parts: Parts, environment: Environment, installed: Iterable[str]) -> None:
        super().__init__()
        self._parts = parts
        self._environment = environment
        self._installed = set(installed)
        self._found: dict[str, FoundSkill] = {}
        self._done = False

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title = Text(f"Install a skill in {one_line(self._environment.name)}")
        with box:
            query = Input(placeholder="words of its name or description", compact=True)
            query.cursor_blink = False
            yield query
            yield RowList(0.3, 11)
            yield Static(classes="about", markup=False)
            yield Static("enter installs, down goes to the list, esc closes", classes="words")

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        release_keys(self)
        self._search("", 0)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._search(event.value, TYPING)

    @work(exclusive=True, group="search")
    async def _search(self, query: str, wait: float) -> None:
        await asyncio.sleep(wait)
        self._say("Searching …")
        try:
            found = await self._parts.contents.search_skills(query)
        except ClientError as error:
            self._say(f"{error} {error.next_step}", trouble=True)
            return
        self._found = {f"{one.slug} {one.source}": one for one in found}
        self._show()
        nothing = NOTHING if query.strip() else UNTYPED
        self._say(f"{counted(len(found), 'skill')}; enter installs" if found else nothing)

    def _show(self) -> None:
        rows = [
            Row(key, (one.name, self._note(one), one.source)) for key, one in self._found.items()
        ]
        self.query_one(RowList).show(rows)
        self._tell_about()

    def _note(self, skill: FoundSkill) -> str:
        if skill.slug in self._installed:
            return "✓ installed"
        return f"{skill.installs} uses" if skill.installs else ""

    @on(RowList.Highlighted)
    def _tell_about(self) -> None:
        skill = self._found.get(self.query_one(RowList).chosen or "")
        about = skill.description or "" if skill is not None else ""
        self.query_one(".about", Static).update(one_line(about))

    def _say(self, text: str, *, trouble: bool = False) -> None:
        line = self.query_one(".words", Static)
        line.update(one_line(text))
        line.set_class(trouble, "trouble")

    def action_down(self) -> None:
        rows = self.query_one(RowList)
        if rows.has_focus:
            rows.action_move(1)
        else:
            rows.focus()

    @on(RowList.Chosen)
    def action_install(self) -> None:
        skill = self._found.get(self.query_one(RowList).chosen or "")
        if skill is not None:
            self._install(skill)

    @work(exclusive=True, group="install")
    async def _install(self, skill: FoundSkill) -> None:
        body = CreateSkill.model_construct(name=skill.name, slug=skill.slug, source=skill.source)
        try:
            await self._parts.contents.add_skill(self._environment, body)
        except ClientError as error:
            self._say(f"{error} {error.next_step}", trouble=True)
            return
        self._done = True
        self._installed.add(skill.slug)
        self._show()
        self._say(f"{skill.name} was installed; esc closes.")

    def action_close(self) -> None:
        self.dismiss(True if self._done else None)
