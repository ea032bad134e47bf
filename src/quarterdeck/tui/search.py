"""Search in the chats of all replicas of all services, and go to what was found.

Loaded when it is first opened.
"""

import asyncio
from datetime import UTC, datetime
from typing import Any, ClassVar

from rich.cells import cell_len
from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Input

from quarterdeck.client.errors import ClientError
from quarterdeck.store.services import Services
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.tui.actions import KeyContext, prompt_bindings
from quarterdeck.tui.fuzzy import FuzzyMatch
from quarterdeck.tui.kit.dialogs import Dialog
from quarterdeck.tui.palette import PaletteChoices, PaletteEntry, main_screen
from quarterdeck.tui.text import fit, when
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.wire.search import SearchHit

TYPING_SECONDS = 0.15
"""A query is sent when nothing was typed for so long."""
HINT = "Finds messages and tool calls; a turn is searched once it has ended."
SIGNS = {"user": ">", "agent": " ", "tool": "$"}


class SearchScreen(Dialog[SearchHit | None]):
    """Dismissed with the chosen hit."""

    DEFAULT_CSS = """
    SearchScreen {
        align: center top;
        & > Vertical {
            width: 110;
            max-width: 96%;
            height: 26;
            max-height: 90%;
            margin-top: 1;
            padding: 0 1;
            background: $surface;
            border: round $border;
        }
        & Input { background: $boost; margin-bottom: 1; }
    }
    """
    place: ClassVar[KeyContext] = KeyContext.PALETTE
    BINDINGS: ClassVar[list[BindingType]] = [*prompt_bindings(KeyContext.PALETTE)]

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._shown = ""
        """The query whose hits are shown."""

    def compose(self) -> ComposeResult:
        with Vertical():
            field = Input(placeholder="Search in all chats", compact=True)
            field.cursor_blink = False
            yield field
            yield PaletteChoices(HINT)

    def on_mount(self) -> None:
        self.set_focus(self.query_one(Input))

    @on(Input.Changed)
    def _typed(self) -> None:
        self._search(TYPING_SECONDS)

    @work(group="search", exclusive=True)
    async def _search(self, pause: float) -> None:
        await asyncio.sleep(pause)
        await self._find()

    async def _find(self, *, any_hit: bool = False) -> None:
        """Show the hits of what is typed, as the services answer; with `any_hit`, until one has hits."""
        query = self.query_one(Input).value.strip()
        if not query:
            self.query_one(PaletteChoices).show([], HINT)
            self._shown = query
            return
        hits: list[SearchHit] = []
        problem = ""
        searches = [store.commands.search(query) for store in self._services.stores]
        tasks = [asyncio.ensure_future(search) for search in searches]
        try:
            for task in asyncio.as_completed(tasks):
                try:
                    hits += await task
                except ClientError as error:
                    problem = f"{error} {error.next_step}"
                if hits:
                    self._show_hits(hits)
                    self._shown = query
                if hits and any_hit:
                    return
        finally:
            for task in tasks:
                task.cancel()
        if not hits:
            self.query_one(PaletteChoices).show([], problem or "Nothing found.")
            self._shown = query

    def _show_hits(self, hits: list[SearchHit]) -> None:
        """Show hits, the newest first; the cursor stays on its own when those of another service come."""
        choices = self.query_one(PaletteChoices)
        hits.sort(key=lambda hit: hit.ts, reverse=True)
        chosen = choices.chosen.hit if choices.chosen is not None else None
        names = [self._replica_name(hit) for hit in hits]
        room = min(max(map(cell_len, names)), self.size.width // 4)
        choices.show(
            [self._entry(hit, fit(name, room)) for hit, name in zip(hits, names, strict=True)]
        )
        at = next((n for n, hit in enumerate(hits) if hit is chosen), 0)
        choices.move(at)

    def _replica_name(self, hit: SearchHit) -> str:
        state = self._services.get(hit.workspace_id)
        return name_line(state.full_name if state is not None else hit.workspace_name)

    def _entry(self, hit: SearchHit, name: str) -> tuple[PaletteEntry, FuzzyMatch]:
        lead = f"{SIGNS[hit.role]} "
        places = tuple(
            place + len(lead) for begin, end in hit.matches for place in range(begin, end)
        )
        entry = PaletteEntry(
            lead + one_line(hit.excerpt),
            when(hit.ts, datetime.now(UTC)),
            name,
            hit=hit,
        )
        return entry, FuzzyMatch(0, places)

    def action_move(self, by: int) -> None:
        """Move to another line."""
        self.query_one(PaletteChoices).move(by)

    @on(PaletteChoices.Chosen)
    @work(group="search", exclusive=True)
    async def action_run(self) -> None:
        """Go to the hit under the cursor, of what is typed by now."""
        if self.query_one(Input).value.strip() != self._shown:
            await self._find(any_hit=True)
        chosen = self.query_one(PaletteChoices).chosen
        if chosen is not None:
            self.dismiss(chosen.hit)

    def action_close(self) -> None:
        """Close."""
        self.dismiss(None)


async def run_search(app: App[Any], services: Services) -> None:
    """Ask for words, and show the text that was chosen in its chat."""
    screen: Screen[object] = app.screen
    hit = await app.push_screen_wait(SearchScreen(services))
    if hit is None:
        return
    with hold_keys(screen, hit.workspace_name):
        (await main_screen(app)).go_to(hit.workspace_id, hit)
