"""The base of the main screen: what a person can have done to a replica."""

from pathlib import Path
from typing import Literal
from uuid import UUID

from textual import work

from quarterdeck.store.bulk import on_each
from quarterdeck.store.deck import Deck
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.actions import Where
from quarterdeck.tui.forms.typed import Typed
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.screens import deeds
from quarterdeck.tui.screens.deeds import Deed
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import hold_keys
from quarterdeck.tui.widgets.replica_list import ReplicaList

Severity = Literal["information", "warning", "error"]


class CommandScreen(SettledLayout[None]):
    """Carries out commands; a refusal is one notice that says what to do."""

    def __init__(self, deck: Deck, directory: Path | None) -> None:
        super().__init__()
        self._deck = deck
        self._typed = Typed(str(directory) if directory else "", "", "")
        self._fresh = self._typed

    @property
    def chosen(self) -> ReplicaState | None:
        """The replica that is meant."""
        raise NotImplementedError

    @property
    def meant(self) -> list[ReplicaState]:
        """Those that a command is for: the marked ones, else the one that is chosen."""
        raise NotImplementedError

    @property
    def where(self) -> Where:
        """What has the focus."""
        raise NotImplementedError

    @property
    def listing(self) -> ReplicaList:
        """The list of replicas."""
        raise NotImplementedError

    async def _open(self, replica_id: UUID) -> None:
        raise NotImplementedError

    def tell(self, severity: Severity, title: str, text: str) -> None:
        """One notice; whatever is in it can do no harm."""
        self.app.notify(one_line(text), title=one_line(title), severity=severity, markup=False)

    def _act(self, deed: Deed) -> None:
        """Does it to those who are meant, as far as it makes sense there."""
        meant = self.meant
        fit = [state for state in meant if not deed.unfit(state)]
        if fit:
            self._carry_out(deed, fit)
        elif meant:
            self.tell("information", meant[0].name, deed.unfit(meant[0]))

    @work
    async def _carry_out(self, deed: Deed, states: list[ReplicaState]) -> None:
        commands = self._deck.commands
        outcome = await on_each(states, lambda id: deed.command(commands, id))
        for refused, error in deeds.reasons(outcome):
            text = f"{error} {error.next_step}"
            self.tell("error", f"{deed.verb} {deeds.names(refused)}: {error.title}", text)
        if len(states) > 1 and outcome.done:
            self.tell("information", f"{len(outcome.done)} {deed.done}", deeds.names(outcome.done))
        self.listing.unmark({state.id for state in outcome.done})

    def action_new_replica(self) -> None:
        hold_keys(self)
        self._ask_for_replica()

    @work
    async def _ask_for_replica(self) -> None:
        from quarterdeck.tui.forms.create import CreateScreen

        made = await self.app.push_screen_wait(CreateScreen(self._deck, self._typed))
        if isinstance(made, Typed):
            self._typed = made
        else:
            self._typed = self._fresh
            state = self._deck.add(made)
            self.listing.show(self._deck.narrowed(self._deck.ordered()))
            self.listing.select(state.id)
            await self._open(state.id)

    def action_interrupt(self) -> None:
        self._act(deeds.INTERRUPT)

    def action_sleep(self) -> None:
        self._act(deeds.SLEEP)

    def action_archive(self) -> None:
        self._act(deeds.ARCHIVE)

    def action_wake(self) -> None:
        self._act(deeds.WAKE)

    def action_delete(self) -> None:
        if meant := self.meant:
            hold_keys(self)
            self._ask_to_delete(meant)

    @work
    async def _ask_to_delete(self, states: list[ReplicaState]) -> None:
        from quarterdeck.tui.screens.confirm import ConfirmScreen

        question = deeds.title("Delete", states)
        sure = await self.app.push_screen_wait(
            ConfirmScreen(question, deeds.what_goes(states), "Delete")
        )
        if sure:
            self._carry_out(deeds.DELETE, states)

    def action_reconnect(self) -> None:
        self._deck.reconnect_now()

    def action_help(self) -> None:
        from quarterdeck.tui.screens.help import HelpScreen

        hold_keys(self)
        self.app.push_screen(HelpScreen(self.where))

    def action_leave(self) -> None:
        self.app.exit(0)
