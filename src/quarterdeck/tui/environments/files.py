"""The files that an environment writes into its workspaces."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from quarterdeck.store.environment_contents import Entry
from quarterdeck.tui.actions import Where, eager_bindings
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.environments import dialogs
from quarterdeck.tui.environments.rows import Row
from quarterdeck.tui.environments.section import Section
from quarterdeck.tui.environments.words import day, size_of
from quarterdeck.tui.forms.kit.outside import edited_outside
from quarterdeck.tui.type_ahead import hold_keys
from quarterdeck.wire.environment_files import CONTENT_LIMIT, ChangeFile, EnvironmentFile
from quarterdeck.wire.environments import Environment


class FilesSection(Section):
    """One line a path."""

    where = Where.ENVIRONMENT_FILES
    widths = (0.42, 10, 10)
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(Where.ENVIRONMENT_FILES)]

    def forget(self) -> None:
        self._entries: list[Entry[EnvironmentFile]] = []

    async def load(self, environment: Environment) -> None:
        self._entries = await self.parts.contents.files(environment)

    def lines(self, environment: Environment) -> Sequence[Row]:
        if not self._entries:
            return [Row("", (keyed("No files: {section.add} adds one."),), "muted")]
        head = Row("", ("PATH", "CONTENT", "CHANGED", "FROM"), "heading")
        return [head, *(_row(entry) for entry in self._entries)]

    def _chosen_entry(self) -> Entry[EnvironmentFile] | None:
        path = self.rows.chosen
        return next((one for one in self._entries if one.record.path == path), None)

    def action_add(self) -> None:
        if (environment := self.environment) is not None:
            self.open(lambda: dialogs.new_file(self.parts, environment))

    def _own_entry(self) -> Entry[EnvironmentFile] | None:
        entry = self._chosen_entry()
        if entry is not None and not entry.own:
            self.say(f"It is that of {entry.of.name}: change it there, or add one of this path.")
            return None
        return entry

    def action_edit(self) -> None:
        entry, environment = self._own_entry(), self.environment
        if entry is not None and environment is not None:
            self.open(lambda: dialogs.change_file(self.parts, environment, entry.record))

    async def action_outside(self) -> None:
        entry, environment = self._own_entry(), self.environment
        if entry is None or environment is None:
            return
        changed = await edited_outside(self, entry.record.name, entry.record.content)
        if changed is None:
            return
        if len(changed.encode()) > CONTENT_LIMIT or "\0" in changed:
            self.say(f"A file has at most {CONTENT_LIMIT} bytes of text.", trouble=True)
            return
        body = ChangeFile(content=changed)
        self.act(
            self.parts.contents.change_file(environment, entry.record.id, body),
            f"{entry.record.path} was saved.",
        )

    def action_delete(self) -> None:
        entry, environment = self._own_entry(), self.environment
        if entry is None or environment is None:
            return
        hold_keys(self)
        path = entry.record.path
        self.ask(
            f"Delete {path}?",
            f"{size_of(entry.record.content)} go for good. Workspaces made later lack it.",
            lambda: self.parts.contents.delete_file(environment, entry.record.id),
            f"{path} was deleted.",
        )


def _row(entry: Entry[EnvironmentFile]) -> Row:
    file = entry.record
    origin = (f"over {entry.over}" if entry.over else "own") if entry.own else entry.of.name
    cells = (file.path, size_of(file.content), day(file.updated_at), origin)
    return Row(file.path, cells, "plain" if entry.own else "muted")
