"""Commands of the list of replicas."""

import asyncio
from collections.abc import Awaitable, Callable, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from textual import work

from quarterdeck.client.errors import ClientError
from quarterdeck.store.app_state import AppState
from quarterdeck.store.commands import Commands
from quarterdeck.store.losses import names, turns_stopped, what_goes, what_rests, what_stops
from quarterdeck.store.replica_list import BulkOutcome, on_each
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.services import Services
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.tui.actions import BY_STATE, ON_REPLICAS, KeyContext
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.kit.key_context import nearest_context
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.tui.widgets.replica_list import ReplicaListView
from quarterdeck.wire.replicas import Replica, WorkspaceStatus

if TYPE_CHECKING:
    from quarterdeck.tui.forms.create_fields import Typed


@dataclass(frozen=True)
class ReplicaAction:
    """`done` is the message afterwards. `unfit` returns why it has no effect here, or nothing.

    `loss` returns what ends or is lost: with any, a confirmation is needed first.
    """

    verb: str
    done: str
    unfit: Callable[[ReplicaState], str]
    command: Callable[[Commands, UUID], Awaitable[object]]
    loss: Callable[[list[ReplicaState]], str] = lambda _: ""


def _already(words: str, *statuses: WorkspaceStatus) -> Callable[[ReplicaState], str]:
    return lambda state: words if state.status in statuses else ""


def _awake_not(state: ReplicaState) -> str:
    match state.status:
        case WorkspaceStatus.SLEEPING | WorkspaceStatus.ARCHIVED:
            return "Already asleep."
        case WorkspaceStatus.PREPARING:
            return "Still preparing."
        case WorkspaceStatus.ERROR:
            return "Failed; nothing runs in it."
        case _:
            return ""


INTERRUPT = ReplicaAction(
    "Interrupt",
    "interrupted",
    lambda state: "" if state.works else "Nothing to interrupt.",
    Commands.interrupt,
    turns_stopped,
)
SLEEP = ReplicaAction(
    "Sleep",
    "put to sleep",
    _awake_not,
    Commands.sleep,
    what_stops,
)
ARCHIVE = ReplicaAction(
    "Archive",
    "archived",
    _already("Already archived.", WorkspaceStatus.ARCHIVED),
    Commands.archive,
    what_rests,
)
WAKE = ReplicaAction(
    "Wake",
    "woken",
    _already("Already awake.", WorkspaceStatus.ACTIVE, WorkspaceStatus.PREPARING),
    Commands.wake,
)
DELETE = ReplicaAction("Delete", "deleted", lambda state: "", Commands.delete, what_goes)


STOPPING = (SLEEP, ARCHIVE, DELETE)
"""Before these, it is read what they end or remove."""

_OF_KEYS = {
    "replica.sleep": SLEEP,
    "replica.wake": WAKE,
    "chat.interrupt": INTERRUPT,
    "composer.interrupt": INTERRUPT,
}


def pointless(states: list[ReplicaState]) -> Set[str]:
    """Return the actions on these replicas that have no effect on any of them."""
    if not states:
        return ON_REPLICAS
    return {id for id in BY_STATE if all(_OF_KEYS[id].unfit(state) for state in states)}


def reasons(outcome: BulkOutcome) -> list[tuple[list[ReplicaState], ClientError]]:
    """Return the replicas that were refused, grouped by the reason for one message."""
    groups: dict[str, tuple[list[ReplicaState], ClientError]] = {}
    for state, error in outcome.refused:
        groups.setdefault(f"{error.title} {error}", ([], error))[0].append(state)
    return list(groups.values())


def title(verb: str, states: list[ReplicaState]) -> str:
    """Return the question before it is done."""
    if len(states) == 1:
        return f"{verb} {name_line(states[0].full_name)}?"
    return f"{verb} {len(states)} replicas?"


Severity = Literal["information", "warning", "error"]


class CommandScreen(SettledLayout[None]):
    """Carries out commands; a refusal is one notice that says what to do."""

    def __init__(self, services: Services, directory: Path | None) -> None:
        super().__init__()
        self._services = services
        self._directory = directory
        self._typed: Typed | None = None
        """What was typed into the form of a new replica and not sent."""

    @property
    def chosen(self) -> ReplicaState | None:
        """The replica that commands apply to."""
        raise NotImplementedError

    @property
    def meant(self) -> list[ReplicaState]:
        """The replicas that a command applies to: the marked ones, else the chosen one."""
        raise NotImplementedError

    @property
    def where(self) -> KeyContext:
        """The place of the focus."""
        raise NotImplementedError

    @property
    def listing(self) -> ReplicaListView:
        """The list of replicas."""
        raise NotImplementedError

    def _open(self, replica_id: UUID) -> object:
        raise NotImplementedError

    def tell(self, severity: Severity, title: str, text: str) -> None:
        """Show one notice; its texts are sanitized."""
        self.app.notify(one_line(text), title=one_line(title), severity=severity, markup=False)

    def _act(self, action: ReplicaAction) -> None:
        """Carry a command out on its replicas, where it has an effect; what ends with it is named first."""
        meant = self.meant
        fit = [state for state in meant if not action.unfit(state)]
        if not fit:
            if meant:
                self.tell("information", meant[0].name, action.unfit(meant[0]))
        elif action in STOPPING:
            self._read_and_ask(action, fit)
        elif action is INTERRUPT and self.where is not KeyContext.LIST:
            self._carry_out(action, fit)  # in its chat a user sees the turn that is stopped
        else:
            self._ask_or_carry_out(action, fit)

    @work
    async def _read_and_ask(self, action: ReplicaAction, states: list[ReplicaState]) -> None:
        """Read what the replicas have that exists nowhere else, or runs, before asking."""
        reads = [Commands.read_resting]
        if action is not DELETE:
            reads.append(Commands.read_programs)
        with hold_keys(self, "Reading the replicas"):
            await asyncio.gather(
                *(
                    read(store.commands, own)
                    for store, own in self._services.by_store(states)
                    for read in reads
                )
            )
        self._ask_or_carry_out(action, states)

    def _ask_or_carry_out(self, action: ReplicaAction, states: list[ReplicaState]) -> None:
        if loss := action.loss(states):
            self._ask(action, states, loss)
        else:
            self._carry_out(action, states)

    @work
    async def _carry_out(self, action: ReplicaAction, states: list[ReplicaState]) -> None:
        services = self._services
        outcome = await on_each(states, lambda id: action.command(services.of(id).commands, id))
        for refused, error in reasons(outcome):
            text = f"{error} {error.next_step}"
            self.tell("error", f"{action.verb} {names(refused)}: {error.title}", text)
        if len(states) > 1 and outcome.done:
            self.tell("information", f"{len(outcome.done)} {action.done}", names(outcome.done))
        self.listing.unmark({state.id for state in outcome.done})

    def action_new_replica(self) -> None:
        self._ask_for_replica()

    @work
    async def _ask_for_replica(self) -> None:
        from quarterdeck.tui.forms.create import CreateScreen
        from quarterdeck.tui.forms.create_fields import Typed

        store = await self._service_for_new()
        if store is None:
            return
        typed = self._typed or Typed(str(self._directory or ""), "", "")
        created = await self.app.push_screen_wait(CreateScreen(store, typed))
        if isinstance(created, Typed):
            self._typed = created
        else:
            self._typed = None
            self._show_new(store, created)

    async def _service_for_new(self) -> AppState | None:
        """Return the service in use, or let the person choose where the cursor is on a replica of another."""
        current, chosen = self._services.current, self.chosen
        here = self._services.of(chosen.id) if chosen is not None else current
        if here is current:
            return current
        from quarterdeck.tui.kit.dialogs import Choice, ChooseScreen

        stores = {one.connection.name: one for one in (here, *self._services.stores)}
        choices = [Choice(name, name) for name in stores]
        name = await self.app.push_screen_wait(
            ChooseScreen("New replica: on which service?", choices)
        )
        return stores[name] if name is not None else None

    def action_interrupt(self) -> None:
        self._act(INTERRUPT)

    def action_sleep(self) -> None:
        self._act(SLEEP)

    def action_archive(self) -> None:
        self._act(ARCHIVE)

    def action_wake(self) -> None:
        self._act(WAKE)

    def action_delete(self) -> None:
        self._act(DELETE)

    def action_get_changes(self, start: str = "", repository: str = "") -> None:
        """Open the dialog that gets work out of the replica."""
        state = self.chosen
        if state is not None and state.record.repositories:
            self._get_changes(state.id, start, repository)
        elif state is not None:
            self.tell("information", state.name, "This replica has no repository.")

    @work(group="get changes")
    async def _get_changes(self, replica_id: UUID, start: str, repository: str) -> None:
        from quarterdeck.store.git import GetChanges
        from quarterdeck.tui.screens.get_changes import GetChangesScreen

        store = self._services.of(replica_id)
        changes = GetChanges(store, replica_id, store.git_variables)
        await self.app.push_screen_wait(GetChangesScreen(changes, start, repository))

    @property
    def message_chosen(self) -> str:
        """The id of the user's message under the cursor of the transcript; empty for none."""
        raise NotImplementedError

    def action_pull_request(self) -> None:
        """Show the pull requests of the replica; without one, the form that opens one."""
        state = self.chosen
        if state is not None and state.record.repositories:
            self._show_pull_requests(state)
        elif state is not None:
            self.tell("information", state.name, "This replica has no repository.")

    @work(group="pull requests", exclusive=True)
    async def _show_pull_requests(self, state: ReplicaState) -> None:
        from quarterdeck.tui.screens.pull_request import pull_request_dialogs

        try:
            pulls = self._services.of(state.id).pull_requests
            with hold_keys(self, "Reading pull requests from the host"):
                await pulls.read(state.id)
        except ClientError as error:
            self._tell_refused(f"Pull requests of {state.name}", error)
        else:
            await pull_request_dialogs(self, pulls, state)

    @work(group="pull requests")
    async def action_fix_checks(self) -> None:
        """Send the agent the failed checks of the replica's pull requests."""
        from quarterdeck.tui.screens.pull_request import fix_checks

        if (state := self.chosen) is None:
            return
        pulls = self._services.of(state.id).pull_requests
        try:
            with hold_keys(self, "Reading the checks from the host"):
                await pulls.read(state.id)
            text = "No failed checks."
            if state.failing:
                text = await fix_checks(pulls, state, state.failing)
        except (ClientError, OSError) as error:
            self._tell_refused(f"Failed checks of {state.name}", error)
        else:
            self.tell("information", state.name, text)

    def _tell_refused(self, title: str, error: ClientError | OSError) -> None:
        from quarterdeck.store.git import failure_of

        failure = failure_of(error)
        self.tell("error", title, f"{failure.message} {failure.details}")

    def action_rewind(self) -> None:
        """Rewind to the message under the cursor of the transcript, else list checkpoints."""
        from quarterdeck.tui.screens.rewind import RewindScreen

        state = self.chosen
        if state is not None and state.record.repositories:
            commands = self._services.of(state.id).commands
            screen = RewindScreen(commands, state, self.message_chosen)
            self.app.push_screen(screen)
        elif state is not None:
            self.tell("information", state.name, "This replica has no repository.")

    @work(group="permissions", exclusive=True)
    async def action_permissions(self) -> None:
        """Show and change which permission requests of the replica are answered without asking."""
        from quarterdeck.tui.screens.permissions import permission_dialogs

        if (state := self.chosen) is None:
            return
        try:
            await permission_dialogs(self, self._services.of(state.id).commands, state)
        except ClientError as error:
            self._tell_refused(f"Permissions of {state.name}", error)

    @work
    async def action_fork(self) -> None:
        """Ask for the name of a fork with the same files, create and open it."""
        from quarterdeck.tui.forms.create import ForkScreen

        if (state := self.chosen) is None:
            return
        store = self._services.of(state.id)
        created = await self.app.push_screen_wait(ForkScreen(store.commands, state))
        if created is not None:
            self._show_new(store, created)

    def _show_new(self, store: AppState, created: Replica) -> None:
        state = store.add(created)
        self.listing.show(self._services.filtered(self._services.ordered()))
        self.listing.select(state.id)
        self._open(state.id)

    @work
    async def _ask(
        self, action: ReplicaAction, states: list[ReplicaState], consequence: str
    ) -> None:
        from quarterdeck.tui.kit.dialogs import ConfirmScreen

        question = title(action.verb, states)
        screen = ConfirmScreen(question, consequence, action.verb)
        if await self.app.push_screen_wait(screen):
            self._carry_out(action, states)

    def action_zoom(self) -> None:
        """Hide the list while a replica has the focus, or no longer."""
        self.toggle_class("zoomed")
        if self.has_class("zoomed") and not self.has_class("in-pane"):
            self.notify("The list is hidden while a replica has the focus.")

    def action_reconnect(self) -> None:
        self._services.reconnect_now()

    def action_help(self) -> None:
        from quarterdeck.tui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen(self.where, without=nearest_context(self.focused).without))

    def action_leave(self) -> None:
        self.app.exit(0)
