"""What a person can do with a run, wherever it is shown."""

from collections.abc import Awaitable

from textual import work

from quarterdeck.client.errors import ClientError
from quarterdeck.store.automation_states import under_way
from quarterdeck.tui.screens.page import PageScreen
from quarterdeck.tui.type_ahead import hold_keys
from quarterdeck.wire.automations import Execution, ExecutionStatus

NO_PLACE = "waits for a place"
BEING_MADE = "being made"
GONE = "gone"


class RunSteps(PageScreen):
    """The base of the screens that show runs."""

    @property
    def chosen_run(self) -> Execution | None:
        """The run that is meant."""
        raise NotImplementedError

    def replica_of(self, run: Execution) -> str:
        """The name of a run's replica, or what became of it."""
        if run.workspace_id is None:
            return NO_PLACE if run.completed_at is None else ""
        state = self._deck.replicas.get(run.workspace_id)
        if state is not None:
            return state.name
        return BEING_MADE if under_way(run) else GONE

    def action_to_replica(self) -> None:
        run = self.chosen_run
        if run is None:
            return
        if run.workspace_id in self._deck.replicas:
            hold_keys(self)
            self.dismiss(run.workspace_id)
        elif run.workspace_id is None:
            self.tell("information", "No replica", "The run has none yet, or never got one.")
        else:
            self.tell("information", "No replica", "It was deleted; the run stays in the history.")

    def action_retry(self) -> None:
        run = self.chosen_run
        if run is None:
            return
        if run.status != ExecutionStatus.FAILED:
            self.tell("information", "Retry", "Only a run that failed can be run again.")
            return
        retry = self._deck.automations.commands.retry(run.automation_id, run.id)
        self.carry_out("Retry", retry, "It runs again, in a new replica.")

    @work
    async def carry_out(self, verb: str, deed: Awaitable[object], done: str = "") -> None:
        """Does what was asked for; a refusal is one notice that says what to do."""
        try:
            await deed
        except ClientError as error:
            self.tell("error", f"{verb}: {error.title}", f"{error} {error.next_step}")
        else:
            if done:
                self.tell("information", verb, done)
