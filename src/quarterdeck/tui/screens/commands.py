"""The base of the main screen: what a person can have done to a replica."""

from collections.abc import Awaitable
from pathlib import Path
from typing import Literal
from uuid import UUID

from textual import work

from quarterdeck.client.errors import ClientError
from quarterdeck.store.deck import Deck
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.actions import Where
from quarterdeck.tui.forms.typed import Typed
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import hold_keys
from quarterdeck.tui.widgets.replica_list import ReplicaList
from quarterdeck.wire.replicas import WorkspaceStatus

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

    @work
    async def _command(self, verb: str, state: ReplicaState, deed: Awaitable[object]) -> None:
        try:
            await deed
        except ClientError as error:
            text = f"{error} {error.next_step}"
            self.tell("error", f"{verb} {state.name}: {error.title}", text)

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
            self.listing.show(self._deck.ordered())
            self.listing.select(state.id)
            await self._open(state.id)

    def action_interrupt(self) -> None:
        state = self.chosen
        if state is None:
            return
        if not state.works:
            self.tell("information", state.name, "Nothing is running in it.")
            return
        self._command("Interrupt", state, self._deck.commands.interrupt(state.id))

    def action_sleep(self) -> None:
        state = self.chosen
        if state is None:
            return
        if state.status == WorkspaceStatus.SLEEPING:
            self.tell("information", state.name, "It sleeps already.")
            return
        self._command("Put to sleep", state, self._deck.commands.sleep(state.id))

    def action_wake(self) -> None:
        state = self.chosen
        if state is None:
            return
        if state.status in {WorkspaceStatus.ACTIVE, WorkspaceStatus.PREPARING}:
            self.tell("information", state.name, "It is awake already.")
            return
        self._command("Wake", state, self._deck.commands.wake(state.id))

    def action_delete(self) -> None:
        if (state := self.chosen) is not None:
            hold_keys(self)
            self._ask_to_delete(state)

    @work
    async def _ask_to_delete(self, state: ReplicaState) -> None:
        from quarterdeck.tui.screens.confirm import ConfirmScreen

        added, removed = state.changed_lines
        changes = f", with +{added} -{removed} changed lines" if added or removed else ""
        sure = await self.app.push_screen_wait(
            ConfirmScreen(
                f"Delete {one_line(state.name)}?",
                f"Its sandbox, files{changes}, terminals and history go for good. "
                "Your own checkout is not touched.",
                "Delete",
            )
        )
        if sure:
            self._command("Delete", state, self._deck.commands.delete(state.id))

    def action_reconnect(self) -> None:
        self._deck.reconnect_now()

    def action_help(self) -> None:
        from quarterdeck.tui.screens.help import HelpScreen

        hold_keys(self)
        self.app.push_screen(HelpScreen(self.where))

    def action_leave(self) -> None:
        self.app.exit(0)
