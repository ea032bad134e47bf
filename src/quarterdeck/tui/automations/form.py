"""The form that makes or changes an automation; the coming runs stand below its schedule."""

from collections.abc import Sequence
from typing import cast

from pydantic import BaseModel
from textual import on, work
from textual.suggester import SuggestFromList
from textual.widgets import Input

from quarterdeck.client.errors import ClientError
from quarterdeck.store.automation_draft import AutomationDraft, draft_values
from quarterdeck.store.automation_saving import save_draft
from quarterdeck.store.automation_schedule import coming, zone_names
from quarterdeck.store.creation import Choices, choices, models_of
from quarterdeck.store.deck import Deck
from quarterdeck.tui.automations.form_fields import FIELDS, SCOPE
from quarterdeck.tui.automations.words import both_clocks
from quarterdeck.tui.forms.kit import FormScreen, ModelForm
from quarterdeck.wire.agents import Agent
from quarterdeck.wire.automations import Automation
from quarterdeck.wire.base import utc_now

SCHEDULE, ZONE, AGENT = "schedule", "timezone", "agent_provider"


class AutomationForm(FormScreen[Automation]):
    """Dismissed with the automation as the service has it, or with None."""

    def __init__(self, deck: Deck, record: Automation | None = None) -> None:
        """Without a record a new one is made."""
        self._deck = deck
        fields = FIELDS if record is not None else (*FIELDS, SCOPE)
        start = draft_values(record) if record is not None else {}

        async def save(body: BaseModel) -> Automation:
            draft = cast(AutomationDraft, body)
            return await save_draft(deck.automations.commands, draft, record)

        title = f"Edit {record.name}" if record is not None else "New automation"
        verb = "Save" if record is not None else "Create"
        super().__init__(title, ModelForm(AutomationDraft, fields, start), save, verb=verb)

    def on_mount(self) -> None:
        self._suggest(ZONE, zone_names())
        self._preview()
        self._read_choices()
        self._read_models()

    # what can be chosen

    @work(exclusive=True, group="choices")
    async def _read_choices(self) -> None:
        try:
            found = await choices(self._deck.client)
        except ClientError as error:
            told = f"What can be chosen could not be read: {error} {error.next_step}"
            self.form.say("environment_id", told)
            return
        self.call_after_refresh(self._offer, found)  # a field may not have taken its value up yet

    def _offer(self, found: Choices) -> None:
        self.form.say("environment_id", "")
        environments = [(entry.name, str(entry.id)) for entry in found.environments]
        self.form.offer("environment_id", environments)
        repositories = [(entry.name, str(entry.id)) for entry in found.repositories]
        self.form.offer("repository_ids", repositories)
        if not repositories:
            self.form.say("repository_ids", "No repository is connected.")
        self.form.offer(AGENT, [(_words(agent), agent.id) for agent in found.agents])

    @work(exclusive=True, group="models")
    async def _read_models(self) -> None:
        agent = self.form.value(AGENT)
        if agent is None:
            return
        try:
            offered = await models_of(self._deck.client, agent)
        except ClientError:
            return  # nothing is offered then; any may be typed
        self._suggest("model", offered)

    def _suggest(self, path: str, offered: Sequence[str]) -> None:
        field = self.form.row(path).control
        if isinstance(field, Input):
            field.suggester = SuggestFromList(offered, case_sensitive=False)

    # what a schedule would do

    @on(ModelForm.Changed)
    def _changed(self, event: ModelForm.Changed) -> None:
        if event.path in {SCHEDULE, ZONE}:
            self._preview()
        elif event.path == AGENT:
            self._read_models()

    def _preview(self) -> None:
        schedule, zone = self.form.value(SCHEDULE), self.form.value(ZONE)
        found = coming(schedule, zone or "", utc_now()) if schedule else None
        problem = found.problem if found else None
        for path in (SCHEDULE, ZONE):
            mine = found is not None and found.field == path
            self.form.row(path).refuse(problem or "" if mine else "")
        moments = found.moments if found else ()
        self.form.say(SCHEDULE, "\n".join(both_clocks(one, zone) for one in moments))


def _words(agent: Agent) -> str:
    if agent.available:
        return agent.name
    return f"{agent.name}: {agent.reason or 'not available'}"
