"""The hooks of an environment: scripts that prepare its workspaces."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from quarterdeck.store.environment_hooks import HookPair
from quarterdeck.tui.actions import Where, eager_bindings
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.environments.hook_screen import HookScreen
from quarterdeck.tui.environments.rows import Row
from quarterdeck.tui.environments.section import Section
from quarterdeck.tui.environments.words import moment, size_of, wrapped
from quarterdeck.wire.environments import Environment
from quarterdeck.wire.setup import HookKind

ORDER = (
    "Warm hooks run once in a workspace, start hooks at each start: the global one, a source's, "
    "the environment's own, then those that repositories bring."
)
TITLES = {HookKind.WARM: "Warm hook", HookKind.START: "Start hook"}


class HooksSection(Section):
    """Both hooks, with their scripts."""

    where = Where.ENVIRONMENT_HOOKS
    widths = (12,)
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(Where.ENVIRONMENT_HOOKS)]

    def forget(self) -> None:
        self._hooks = HookPair(None, None)

    async def load(self, environment: Environment) -> None:
        self._hooks = await self.parts.hooks.read(environment)

    def lines(self, environment: Environment) -> Sequence[Row]:
        rows: list[Row] = []
        for kind in HookKind:
            hook = self._hooks.of(kind)
            about = keyed("none: {section.edit} writes one")
            if hook is not None:
                saved = moment(hook.created_at)
                about = f"version {hook.version}, {size_of(hook.content)}, {saved}"
            rows.append(Row(kind.value, (TITLES[kind], about)))
            script = hook.content.splitlines() if hook is not None else []
            rows += [Row("", (f"  {line.expandtabs(4)}",), "muted") for line in script]
            rows.append(Row("", ("",)))
        order = wrapped(ORDER, self.rows.size.width - 3)
        return [*rows, *(Row("", (line,), "muted") for line in order)]

    def action_edit(self) -> None:
        environment, chosen = self.environment, self.rows.chosen
        if environment is None or chosen is None or self.failed:
            return
        kind = HookKind(chosen)
        hook = self._hooks.of(kind)
        self.open(lambda: HookScreen(self.parts, environment, kind, hook))
