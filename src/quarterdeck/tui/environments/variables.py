"""The variables of an environment, with those it inherits; values are masked until asked for."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from quarterdeck.store.environment_contents import Entry
from quarterdeck.tui.actions import Where, eager_bindings
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.environments import dialogs
from quarterdeck.tui.environments.paste import PasteScreen
from quarterdeck.tui.environments.rows import Row
from quarterdeck.tui.environments.section import Section
from quarterdeck.tui.environments.words import HIDDEN
from quarterdeck.tui.type_ahead import hold_keys
from quarterdeck.wire.environment_variables import EnvironmentVariable
from quarterdeck.wire.environments import Environment


class VariablesSection(Section):
    """One line a key."""

    where = Where.ENVIRONMENT_VARIABLES
    widths = (0.36, 0.3)
    hint = "{section.show} shows the values, {variables.paste} pastes the text of a .env file."
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(Where.ENVIRONMENT_VARIABLES)]

    def forget(self) -> None:
        self._entries: list[Entry[EnvironmentVariable]] = []
        self._shown = False

    async def load(self, environment: Environment) -> None:
        self._entries = await self.parts.contents.variables(environment)

    def lines(self, environment: Environment) -> Sequence[Row]:
        if not self._entries:
            return [
                Row(
                    "",
                    (
                        keyed(
                            "No variables: {section.add} adds one, {variables.paste} pastes a .env file."
                        ),
                    ),
                    "muted",
                )
            ]
        head = Row("", ("NAME", "VALUE", "FROM"), "heading")
        return [head, *(self._row(entry) for entry in self._entries)]

    def _row(self, entry: Entry[EnvironmentVariable]) -> Row:
        value = entry.record.value if self._shown else HIDDEN
        cells = (entry.record.key, value, _origin(entry))
        return Row(entry.record.key, cells, "plain" if entry.own else "muted")

    def _chosen_entry(self) -> Entry[EnvironmentVariable] | None:
        key = self.rows.chosen
        return next((one for one in self._entries if one.record.key == key), None)

    def action_reveal(self) -> None:
        self._shown = not self._shown
        self.paint()

    def action_add(self) -> None:
        if (environment := self.environment) is not None:
            self.open(lambda: dialogs.new_variable(self.parts, environment))

    def action_edit(self) -> None:
        entry, environment = self._chosen_entry(), self.environment
        if entry is None or environment is None:
            return
        if not entry.own:
            self.say(f"It is that of {entry.of.name}: change it there, or add your own over it.")
            return
        self.open(lambda: dialogs.change_variable(self.parts, environment, entry.record))

    def action_delete(self) -> None:
        entry, environment = self._chosen_entry(), self.environment
        if entry is None or environment is None:
            return
        if not entry.own:
            self.say(f"It is that of {entry.of.name}: delete it there.")
            return
        hold_keys(self)
        key = entry.record.key
        then = (
            f"Then that of {entry.over} counts." if entry.over else "Workspaces made later lack it."
        )
        self.ask(
            f"Delete {key}?",
            f"Its value goes for good. {then}",
            lambda: self.parts.contents.delete_variable(environment, entry.record.id),
            f"{key} was deleted.",
        )

    def action_paste(self) -> None:
        if (environment := self.environment) is not None:
            known = list(self._entries)
            self.open(lambda: PasteScreen(self.parts, environment, known))


def _origin(entry: Entry[EnvironmentVariable]) -> str:
    free = ", may be replaced" if entry.record.personal_override_allowed else ""
    if not entry.own:
        return f"from {entry.of.name}{free}"
    return (f"over {entry.over}" if entry.over else "own") + free
