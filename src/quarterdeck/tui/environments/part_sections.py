"""Sections of an environment's parts."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from textual.binding import BindingType

from quarterdeck.store.environments import HookPair, InheritedPart
from quarterdeck.tui.actions import KeyContext, eager_bindings, keyed
from quarterdeck.tui.environments import dialogs
from quarterdeck.tui.environments.hook_screen import HookScreen
from quarterdeck.tui.environments.part_forms import McpScreen, PasteScreen, SkillSearch
from quarterdeck.tui.environments.section import (
    HIDDEN,
    Section,
    TableRow,
    day,
    moment,
    size_of,
    wrapped,
)
from quarterdeck.tui.forms.kit.form import edited_outside
from quarterdeck.tui.text import end_of
from quarterdeck.wire.environment_parts import (
    CONTENT_LIMIT,
    ChangeFile,
    EnvironmentFile,
    EnvironmentMcp,
    EnvironmentSkill,
    EnvironmentVariable,
)
from quarterdeck.wire.environments import Environment
from quarterdeck.wire.setup import HookKind


class VariablesSection(Section):
    """One line per key."""

    where = KeyContext.ENVIRONMENT_VARIABLES
    widths = (0.36, 0.3)
    hint = "{section.show} show values · {variables.paste} paste a .env file"
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.ENVIRONMENT_VARIABLES)]

    def forget(self) -> None:
        self._entries: list[InheritedPart[EnvironmentVariable]] = []
        self._shown = False

    async def load(self, environment: Environment) -> None:
        self._entries = await self.parts.contents.variables(environment)

    def lines(self, environment: Environment) -> Sequence[TableRow]:
        if not self._entries:
            return [
                TableRow(
                    "",
                    (
                        keyed(
                            "No variables. {section.add} add · {variables.paste} paste a .env file"
                        ),
                    ),
                    "muted",
                )
            ]
        head = TableRow("", ("NAME", "VALUE", "FROM"), "heading")
        return [head, *(self._row(entry) for entry in self._entries)]

    def _row(self, entry: InheritedPart[EnvironmentVariable]) -> TableRow:
        value = entry.record.value if self._shown else HIDDEN
        cells = (entry.record.key, value, _origin(entry))
        return TableRow(entry.record.key, cells, "plain" if entry.own else "muted")

    def _chosen_entry(self) -> InheritedPart[EnvironmentVariable] | None:
        key = self.rows.chosen
        return next((entry for entry in self._entries if entry.record.key == key), None)

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
            self.say(f"Inherited from {entry.of.name}; edit it there or override it.")
            return
        self.open(lambda: dialogs.change_variable(self.parts, environment, entry.record))

    def action_delete(self) -> None:
        entry, environment = self._chosen_entry(), self.environment
        if entry is None or environment is None:
            return
        if not entry.own:
            self.say(f"Inherited from {entry.of.name}; delete it there.")
            return
        key = entry.record.key
        then = (
            f"{entry.over}'s value will apply." if entry.over else "New replicas will not have it."
        )
        self.ask(
            f"Delete {key}?",
            f"This permanently deletes its value. {then}",
            lambda: self.parts.contents.delete_variable(environment, entry.record.id),
            f"{key} was deleted.",
        )

    def action_paste(self) -> None:
        if (environment := self.environment) is not None:
            known = list(self._entries)
            self.open(lambda: PasteScreen(self.parts, environment, known))


def _origin(entry: InheritedPart[EnvironmentVariable]) -> str:
    free = ", may be replaced" if entry.record.personal_override_allowed else ""
    if not entry.own:
        return f"from {entry.of.name}{free}"
    return (f"over {entry.over}" if entry.over else "own") + free


class FilesSection(Section):
    """One line per path."""

    where = KeyContext.ENVIRONMENT_FILES
    widths = (0.42, 10, 10)
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.ENVIRONMENT_FILES)]

    def forget(self) -> None:
        self._entries: list[InheritedPart[EnvironmentFile]] = []

    async def load(self, environment: Environment) -> None:
        self._entries = await self.parts.contents.files(environment)

    def lines(self, environment: Environment) -> Sequence[TableRow]:
        if not self._entries:
            return [TableRow("", (keyed("No files. {section.add} add"),), "muted")]
        head = TableRow("", ("PATH", "CONTENT", "CHANGED", "FROM"), "heading")
        room = int(self.widths[0] * self.rows.size.width)
        return [head, *(_row(entry, room) for entry in self._entries)]

    def _chosen_entry(self) -> InheritedPart[EnvironmentFile] | None:
        path = self.rows.chosen
        return next((entry for entry in self._entries if entry.record.path == path), None)

    def action_add(self) -> None:
        if (environment := self.environment) is not None:
            self.open(lambda: dialogs.new_file(self.parts, environment))

    def _own_entry(self) -> InheritedPart[EnvironmentFile] | None:
        entry = self._chosen_entry()
        if entry is not None and not entry.own:
            self.say(f"Inherited from {entry.of.name}; edit it there, or add one with this path.")
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
            self.say(f"A file has at most {CONTENT_LIMIT} bytes of text.", is_error=True)
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
        path = entry.record.path
        self.ask(
            f"Delete {path}?",
            f"{size_of(entry.record.content)} are deleted. New replicas will not have it.",
            lambda: self.parts.contents.delete_file(environment, entry.record.id),
            f"{path} was deleted.",
        )


def _row(entry: InheritedPart[EnvironmentFile], room: int) -> TableRow:
    file = entry.record
    origin = (f"over {entry.over}" if entry.over else "own") if entry.own else entry.of.name
    cells = (end_of(file.path, room), size_of(file.content), day(file.updated_at), origin)
    return TableRow(file.path, cells, "plain" if entry.own else "muted")


class McpsSection(Section):
    """One line per server, and below it what may be secret."""

    where = KeyContext.ENVIRONMENT_MCPS
    widths = (0.26, 6, 0.5)
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.ENVIRONMENT_MCPS)]

    def forget(self) -> None:
        self._entries: list[InheritedPart[EnvironmentMcp]] = []
        self._shown = False

    async def load(self, environment: Environment) -> None:
        self._entries = await self.parts.contents.mcps(environment)

    def lines(self, environment: Environment) -> Sequence[TableRow]:
        if not self._entries:
            return [TableRow("", (keyed("No MCP servers. {section.add} add"),), "muted")]
        rows = [TableRow("", ("SERVER", "BY", "COMMAND OR URL", "FROM"), "heading")]
        for entry in self._entries:
            rows += self._rows_of(entry)
        return rows

    def _rows_of(self, entry: InheritedPart[EnvironmentMcp]) -> list[TableRow]:
        mcp = entry.record
        style = "plain" if entry.own else "muted"
        origin = (f"over {entry.over}" if entry.over else "own") if entry.own else entry.of.name
        secrets = cast(
            "Mapping[str, Any]", mcp.config.get("env") or mcp.config.get("headers") or {}
        )
        below = [
            TableRow("", ("", "", f"{name}={value if self._shown else HIDDEN}", ""), "muted")
            for name, value in secrets.items()
        ]
        return [
            TableRow(mcp.name, (mcp.name, mcp.transport, self._target(mcp), origin), style),
            *below,
        ]

    def _target(self, mcp: EnvironmentMcp) -> str:
        """Return the target; arguments and URLs, which may contain keys, are shown on request."""
        if mcp.transport != "stdio":
            url = str(mcp.config.get("url", ""))
            plain, mark, _ = url.partition("?")
            return url if self._shown or not mark else f"{plain}?{HIDDEN}"
        arguments = cast("Sequence[object]", mcp.config.get("args") or ())
        command = str(mcp.config.get("command", ""))
        if self._shown:
            return " ".join([command, *(str(argument) for argument in arguments)])
        count = len(arguments)
        return f"{command} ({count} argument{'' if count == 1 else 's'})" if count else command

    def _chosen_entry(self) -> InheritedPart[EnvironmentMcp] | None:
        name = self.rows.chosen
        entry = next((known for known in self._entries if known.record.name == name), None)
        if entry is not None and not entry.own:
            self.say(f"Inherited from {entry.of.name}; edit it there, or add one with this name.")
            return None
        return entry

    def action_reveal(self) -> None:
        self._shown = not self._shown
        self.paint()

    def action_add(self) -> None:
        if (environment := self.environment) is not None:
            self.open(lambda: McpScreen(self.parts, environment, None))

    def action_edit(self) -> None:
        entry, environment = self._chosen_entry(), self.environment
        if entry is not None and environment is not None:
            self.open(lambda: McpScreen(self.parts, environment, entry.record))

    def action_delete(self) -> None:
        entry, environment = self._chosen_entry(), self.environment
        if entry is None or environment is None:
            return
        name = entry.record.name
        self.ask(
            f"Delete {name}?",
            "This permanently deletes its configuration, with its secrets.",
            lambda: self.parts.contents.delete_mcp(environment, entry.record.id),
            f"{name} was deleted.",
        )


class SkillsSection(Section):
    """One line per skill."""

    where = KeyContext.ENVIRONMENT_SKILLS
    widths = (0.34, 0.36)
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.ENVIRONMENT_SKILLS)]

    def forget(self) -> None:
        self._entries: list[InheritedPart[EnvironmentSkill]] = []

    async def load(self, environment: Environment) -> None:
        self._entries = await self.parts.contents.skills(environment)

    def lines(self, environment: Environment) -> Sequence[TableRow]:
        if not self._entries:
            return [
                TableRow("", (keyed("No skills. {section.add} search the registries"),), "muted")
            ]
        head = TableRow("", ("SKILL", "SOURCE", "FROM"), "heading")
        return [head, *(_skill_row(entry) for entry in self._entries)]

    def action_add(self) -> None:
        if (environment := self.environment) is not None:
            known = {entry.record.slug for entry in self._entries if entry.own}
            self.open(lambda: SkillSearch(self.parts, environment, known))

    def action_by_hand(self) -> None:
        if (environment := self.environment) is not None:
            self.open(lambda: dialogs.skill_by_hand(self.parts, environment))

    def action_edit(self) -> None:
        """Note that a skill is a copy of its source: it cannot be edited here."""

    def action_delete(self) -> None:
        slug, environment = self.rows.chosen, self.environment
        entry = next((known for known in self._entries if known.record.slug == slug), None)
        if entry is None or environment is None:
            return
        if not entry.own:
            self.say(f"Inherited from {entry.of.name}; remove it there.")
            return
        self.ask(
            f"Remove {entry.record.name}?",
            "New replicas will not have it; its source is not touched.",
            lambda: self.parts.contents.delete_skill(environment, entry.record.id),
            f"{entry.record.name} was removed.",
        )


def _skill_row(entry: InheritedPart[EnvironmentSkill]) -> TableRow:
    skill = entry.record
    cells = (skill.name, skill.source, "own" if entry.own else entry.of.name)
    return TableRow(skill.slug, cells, "plain" if entry.own else "muted")


ORDER = (
    "Warm hooks run once per replica, start hooks at each start: the global one, a source's, "
    "the environment's own, then those that repositories bring."
)
TITLES = {HookKind.WARM: "Warm hook", HookKind.START: "Start hook"}


class HooksSection(Section):
    """Both hooks, with their scripts."""

    where = KeyContext.ENVIRONMENT_HOOKS
    widths = (12,)
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.ENVIRONMENT_HOOKS)]

    def forget(self) -> None:
        self._hooks = HookPair(None, None)

    async def load(self, environment: Environment) -> None:
        self._hooks = await self.parts.hooks.read(environment)

    def lines(self, environment: Environment) -> Sequence[TableRow]:
        rows: list[TableRow] = []
        for kind in HookKind:
            hook = self._hooks.of(kind)
            about = keyed("none ({section.edit} to write one)")
            if hook is not None:
                saved = moment(hook.created_at)
                about = f"version {hook.version}, {size_of(hook.content)}, {saved}"
            rows.append(TableRow(kind.value, (TITLES[kind], about)))
            script = hook.content.splitlines() if hook is not None else []
            rows += [TableRow("", (f"  {line.expandtabs(4)}",), "muted") for line in script]
            rows.append(TableRow("", ("",)))
        order = wrapped(ORDER, self.rows.size.width - 3)
        return [*rows, *(TableRow("", (line,), "muted") for line in order)]

    def action_edit(self) -> None:
        environment, chosen = self.environment, self.rows.chosen
        if environment is None or chosen is None or self.failed:
            return
        kind = HookKind(chosen)
        hook = self._hooks.of(kind)
        self.open(lambda: HookScreen(self.parts, environment, kind, hook))
