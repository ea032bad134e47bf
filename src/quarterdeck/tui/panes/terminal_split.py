"""Two terminals of a replica shown together: beside each other where there is room, else one below the other."""

from collections.abc import Collection
from uuid import UUID

from textual.widgets import Static

from quarterdeck.store.terminals import TerminalMemory, TerminalSplit
from quarterdeck.tui.terminal.core import MIN_ROWS
from quarterdeck.tui.widgets.tab_bar import Switcher

BESIDE_COLUMNS = 2 * 40 + 1
"""Width from which terminals are beside each other; in less, lines of programs would not fit."""
BELOW_ROWS = 2 * MIN_ROWS + 1
DIVIDER = "divider"


def key_of(session_id: UUID) -> str:
    """Return the id of a session's view."""
    return f"terminal-{session_id.hex}"


def session_of(key: str) -> UUID:
    """Return the session of a view."""
    return UUID(key.removeprefix("terminal-"))


class SplitSwitcher(Switcher):
    """Shows one content, or the two of a pair while one of them is current. Both have the same room."""

    DEFAULT_CSS = """
    SplitSwitcher {
        layout: vertical;
        & > #divider { height: 1; width: 1fr; border-top: solid $panel-lighten-2; }
        &.beside { layout: horizontal; }
        &.beside > #divider {
            height: 1fr; width: 1; border-top: none; border-left: solid $panel-lighten-2;
        }
    }
    """

    def __init__(self, memory: TerminalMemory, replica_id: UUID, *, initial: str) -> None:
        super().__init__(initial=initial)
        self._memory, self._replica_id = memory, replica_id
        self._pair: tuple[str, str] | None = None
        self._beside = False

    def partner(self, key: str | None) -> str | None:
        """Return the content that is shown together with one, or None."""
        if self._pair is None or key not in self._pair:
            return None
        return self._pair[1 - self._pair.index(key)]

    async def pair_up(self, first: str, second: str, *, beside: bool) -> None:
        """Show two contents together from now on, unless one was removed meanwhile."""
        if not self.query(f"#{DIVIDER}"):
            await self.mount(Static(id=DIVIDER))
        if not {first, second, DIVIDER} <= {child.id for child in self.children}:
            return
        divider = self.get_child_by_id(DIVIDER)
        self.move_child(divider, after=self.get_child_by_id(first))
        self.move_child(self.get_child_by_id(second), after=divider)
        self._pair, self._beside = (first, second), beside
        self._arrange()
        ids = session_of(first), session_of(second)
        split = TerminalSplit(first=ids[0], second=ids[1], beside=beside)
        self._memory.keep_split(self._replica_id, split)

    async def turn(self, *, beside: bool) -> bool:
        """Move the second one beside or below the first; False when no two are shown."""
        if self._pair is None or self.current not in self._pair:
            return False
        await self.pair_up(*self._pair, beside=beside)
        return True

    async def replace(self, old: str, new: str) -> None:
        """Show a content in the place of another one, if that is one of two."""
        if self._pair is not None and old in self._pair:
            first, second = (new if key == old else key for key in self._pair)
            await self.pair_up(first, second, beside=self._beside)

    def part(self) -> None:
        """Show each content alone again."""
        self._pair = None
        self._arrange()
        self._memory.keep_split(self._replica_id, None)

    async def restore(self, keys: Collection[str]) -> UUID | None:
        """Show the two again that were shown before; return the session of one of them."""
        split = self._memory.split(self._replica_id)
        if split is None:
            return None
        first, second = key_of(split.first), key_of(split.second)
        if first not in keys or second not in keys:
            self._memory.keep_split(self._replica_id, None)
            return None
        await self.pair_up(first, second, beside=split.beside)
        return split.second

    def watch_current(self, old: str | None, new: str | None) -> None:
        """Part of `ContentSwitcher`."""
        self._arrange()

    def on_resize(self) -> None:
        """Check whether there is room for both."""
        self._arrange()

    def _arrange(self) -> None:
        room, pair = self.size, self._pair
        beside = self._beside and room.width >= BESIDE_COLUMNS
        together = self.partner(self.current) and (beside or room.height >= BELOW_ROWS)
        shown = pair if pair and together else (self.current,)
        with self.app.batch_update():
            self.set_class(beside and len(shown) > 1, "beside")
            for child in self.children:
                is_divider = child.id == DIVIDER
                child.display = len(shown) > 1 if is_divider else child.id in shown
