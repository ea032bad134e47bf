"""What a person can do with automations."""

from uuid import UUID

from textual import work

from quarterdeck.store.automation_states import AutomationState
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.automations.listing import AutomationList
from quarterdeck.tui.automations.run_steps import RunSteps
from quarterdeck.tui.automations.webhook_screen import WebhookScreen
from quarterdeck.tui.automations.words import webhook_call
from quarterdeck.tui.copying import copy_text
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import hold_keys, release_keys
from quarterdeck.wire.automations import Automation

NO_WEBHOOK = "It has no webhook. Edit it ({automation.edit}) to give it one."


class StepsScreen(RunSteps):
    """The base of the automations' screen."""

    revealed: UUID | None = None
    """The automation whose token is shown."""

    @property
    def chosen(self) -> AutomationState | None:
        """The automation that is meant."""
        raise NotImplementedError

    def _show(self) -> None:
        raise NotImplementedError

    def _show_chosen(self) -> None:
        raise NotImplementedError

    @property
    def listing(self) -> AutomationList:
        """The list of automations."""
        raise NotImplementedError

    # making, editing

    def action_new(self) -> None:
        hold_keys(self)
        self._ask(None)

    def action_edit(self) -> None:
        if (state := self.chosen) is not None:
            hold_keys(self)
            self._ask(state.record)

    @work
    async def _ask(self, record: Automation | None) -> None:
        from quarterdeck.tui.automations.form import AutomationForm

        saved = await self.app.push_screen_wait(AutomationForm(self._deck, record))
        if saved is None:
            release_keys(self)
            return
        self._show()
        self.listing.select(saved.id)
        call = webhook_call(saved, self._deck.connection.endpoint)
        if call is None or (record is not None and record.webhook_token):
            release_keys(self)
        else:
            self.app.push_screen(WebhookScreen(saved.name, call))

    # switching, deleting

    def action_switch(self) -> None:
        state = self.chosen
        if state is None:
            return
        on = not state.record.enabled
        self.carry_out(
            "Switch on" if on else "Switch off",
            self._deck.automations.commands.switch(state.id, on),
        )

    def action_delete(self) -> None:
        if (state := self.chosen) is not None:
            hold_keys(self)
            self._ask_to_delete(state)

    @work
    async def _ask_to_delete(self, state: AutomationState) -> None:
        from quarterdeck.tui.screens.confirm import ConfirmScreen

        runs = f" with its {state.history.total} runs" if state.history else " with all its runs"
        sure = await self.app.push_screen_wait(
            ConfirmScreen(
                f"Delete {one_line(state.name)}?",
                f"The automation goes for good{runs}. Replicas that they made go on.",
                "Delete",
            )
        )
        if sure:
            self.carry_out("Delete", self._deck.automations.commands.delete(state.id))

    # the webhook

    def action_reveal(self) -> None:
        state = self.chosen
        if state is None:
            return
        if state.record.webhook_token is None:
            self.tell("information", one_line(state.name), keyed(NO_WEBHOOK))
            return
        self.revealed = None if self.revealed == state.id else state.id
        self._show_chosen()

    def action_copy_webhook(self) -> None:
        state = self.chosen
        if state is None:
            return
        call = webhook_call(state.record, self._deck.connection.endpoint)
        if call is None:
            self.tell("information", one_line(state.name), keyed(NO_WEBHOOK))
        else:
            copy_text(self, call)

    # runs

    def action_open_run(self) -> None:
        run = self.chosen_run
        if run is not None:
            hold_keys(self)
            self._open_run(run.automation_id, run.id)

    @work
    async def _open_run(self, automation_id: UUID, run_id: UUID) -> None:
        from quarterdeck.tui.automations.run_screen import RunScreen

        to = await self.app.push_screen_wait(RunScreen(self._deck, automation_id, run_id))
        if to is None:
            release_keys(self)
        else:
            self.dismiss(to)

    def action_run(self) -> None:
        if (state := self.chosen) is not None:
            hold_keys(self)
            self._ask_to_run(state)

    @work
    async def _ask_to_run(self, state: AutomationState) -> None:
        from quarterdeck.tui.automations.run_dialog import RunDialog

        begun = await self.app.push_screen_wait(RunDialog(self._deck, state))
        if begun is not None and begun.workspace_id is None:
            self.tell(
                "information",
                one_line(state.name),
                "It waits for a place: as many replicas are active as are allowed.",
            )
