"""The MCP servers that an environment hands to its agents."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from textual.binding import BindingType

from quarterdeck.store.environment_contents import Entry
from quarterdeck.tui.actions import Where, eager_bindings
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.environments.mcp_form import McpScreen
from quarterdeck.tui.environments.rows import Row
from quarterdeck.tui.environments.section import Section
from quarterdeck.tui.environments.words import HIDDEN
from quarterdeck.tui.type_ahead import hold_keys
from quarterdeck.wire.environment_mcps import EnvironmentMcp
from quarterdeck.wire.environments import Environment


class McpsSection(Section):
    """One line a server, and below it what may be secret."""

    where = Where.ENVIRONMENT_MCPS
    widths = (0.26, 6, 0.5)
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(Where.ENVIRONMENT_MCPS)]

    def forget(self) -> None:
        self._entries: list[Entry[EnvironmentMcp]] = []
        self._shown = False

    async def load(self, environment: Environment) -> None:
        self._entries = await self.parts.contents.mcps(environment)

    def lines(self, environment: Environment) -> Sequence[Row]:
        if not self._entries:
            return [Row("", (keyed("No MCP servers: {section.add} adds one."),), "muted")]
        rows = [Row("", ("SERVER", "BY", "COMMAND OR URL", "FROM"), "heading")]
        for entry in self._entries:
            rows += self._rows_of(entry)
        return rows

    def _rows_of(self, entry: Entry[EnvironmentMcp]) -> list[Row]:
        mcp = entry.record
        style = "plain" if entry.own else "muted"
        origin = (f"over {entry.over}" if entry.over else "own") if entry.own else entry.of.name
        secrets = cast(
            "Mapping[str, Any]", mcp.config.get("env") or mcp.config.get("headers") or {}
        )
        below = [
            Row("", ("", "", f"{name}={value if self._shown else HIDDEN}", ""), "muted")
            for name, value in secrets.items()
        ]
        return [Row(mcp.name, (mcp.name, mcp.transport, self._target(mcp), origin), style), *below]

    def _target(self, mcp: EnvironmentMcp) -> str:
        """Arguments and URLs may hold keys too: they are shown when asked for."""
        if mcp.transport != "stdio":
            url = str(mcp.config.get("url", ""))
            plain, mark, _ = url.partition("?")
            return url if self._shown or not mark else f"{plain}?{HIDDEN}"
        arguments = cast("Sequence[object]", mcp.config.get("args") or ())
        command = str(mcp.config.get("command", ""))
        if self._shown:
            return " ".join([command, *(str(one) for one in arguments)])
        count = len(arguments)
        return f"{command} ({count} argument{'' if count == 1 else 's'})" if count else command

    def _chosen_entry(self) -> Entry[EnvironmentMcp] | None:
        name = self.rows.chosen
        entry = next((one for one in self._entries if one.record.name == name), None)
        if entry is not None and not entry.own:
            self.say(f"It is that of {entry.of.name}: change it there, or add one of this name.")
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
        hold_keys(self)
        name = entry.record.name
        self.ask(
            f"Delete {name}?",
            "Its configuration goes for good, with what is secret in it.",
            lambda: self.parts.contents.delete_mcp(environment, entry.record.id),
            f"{name} was deleted.",
        )
