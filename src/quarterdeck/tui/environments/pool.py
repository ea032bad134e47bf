"""The warm pool of an environment: workspaces prepared in advance."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from quarterdeck.tui.actions import KeyContext, eager_bindings
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.environments.rows import TableRow, counted, moment, wrapped
from quarterdeck.tui.environments.section import Section
from quarterdeck.wire.environments import Environment, PooledWorkspace, WarmPool

OFF = "Off: replicas are created on demand. enter turns it on."


class PoolSection(Section):
    """Its size, its state, why it waits, and its content."""

    where = KeyContext.ENVIRONMENT_POOL
    widths = (14, 18)
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.ENVIRONMENT_POOL)]

    def forget(self) -> None:
        self._pool: WarmPool | None = None
        self._waiting: list[PooledWorkspace] = []

    async def load(self, environment: Environment) -> None:
        self._pool = await self.parts.book.read_pool(environment.id)
        self._waiting = await self.parts.book.pooled(self._pool) if self._pool else []

    def lines(self, environment: Environment) -> Sequence[TableRow]:
        pool = self._pool
        if pool is None:
            return [TableRow("state", (OFF,), "muted")]
        rows = [
            TableRow("state", ("Pool", "on" if pool.enabled else "off")),
            TableRow("", ("Target size", counted(pool.target_size, "workspace"))),
            TableRow("", ("Now", _now(pool))),
            TableRow("", ("Version", f"{pool.generation} (bumped by each saved warm hook)")),
        ]
        if pool.last_failure_reason is not None:
            at = moment(pool.last_failure_at) if pool.last_failure_at else ""
            rows.append(
                TableRow(
                    "",
                    ("Failed", f"{at}, {keyed('{pool.retry}')} to retry now".lstrip(", ")),
                    "error",
                )
            )
            lines = wrapped(pool.last_failure_reason, self.room)
            rows += [TableRow("", ("", line), "error") for line in lines]
        if self._waiting:
            rows.append(TableRow("", ("WORKSPACE", "SINCE", "STATE"), "heading"))
            rows += [_row(one) for one in self._waiting]
        return rows

    def action_edit(self) -> None:
        self.action_switch()

    def action_switch(self) -> None:
        on = not (self._pool is not None and self._pool.enabled)
        self._switch(on, "The pool is on: workspaces are being prepared." if on else "Off.")

    def action_retry(self) -> None:
        if self._pool is None or not self._pool.enabled:
            self.say("Off. enter turns it on.")
            return
        self._switch(True, "Retrying now.")

    def _switch(self, on: bool, done: str) -> None:
        if (environment := self.environment) is not None:
            self.act(self.parts.book.switch_pool(environment.id, on), done)


def _now(pool: WarmPool) -> str:
    parts = [f"{pool.ready_count} ready", f"{pool.warming_count} being prepared"]
    if pool.stale_count:
        parts.append(f"{pool.stale_count} of an older version")
    return ", ".join(parts)


def _row(one: PooledWorkspace) -> TableRow:
    style = "error" if one.state == "failed" else "plain"
    return TableRow(str(one.id), (str(one.id)[:8], moment(one.created_at), one.state), style)
