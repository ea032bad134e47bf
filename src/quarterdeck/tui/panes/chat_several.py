"""The chats of a replica: their tabs, and making, naming, choosing and deleting them."""

from collections.abc import Mapping
from uuid import UUID

from textual import on, work

from quarterdeck.client.errors import ClientError
from quarterdeck.store.chats import ChatState
from quarterdeck.tui.panes.chat_ask import AskField, AskScreen, WrongFieldError
from quarterdeck.tui.panes.chat_base import Aside, ChatBase
from quarterdeck.tui.panes.chat_choose import Choice, ChooseScreen
from quarterdeck.tui.panes.chat_words import chat_label
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import drop_keys, hold_keys
from quarterdeck.tui.widgets.tab_bar import Tab, TabBar

LONGEST_NAME = 100
OWN_CHOICE = "the agent's own choice"
ANOTHER = "another:"
"""Before an agent's id among models: choosing it makes another chat."""


class Several(ChatBase):
    """Tabs are there as soon as there are two chats."""

    _asides: dict[UUID, Aside]

    def show_tabs(self) -> None:
        """Shows which chats there are."""
        bar = self.query_one("#chats", TabBar)
        chats = self._chats()
        bar.display = len(chats) > 1
        bar.show([Tab(str(one.id), chat_label(one)) for one in chats], str(self.chat_id))

    def _chats(self) -> list[ChatState]:
        return self.replica.ordered_chats if self.replica else []

    def show_chat(self, chat_id: UUID) -> None:
        """Shows another chat of the replica; what was written in this one stays its draft."""
        if chat_id == self.chat_id or self._deck.chat(self.replica_id, chat_id) is None:
            return
        self.leave_chat()
        self.chat_id = chat_id
        self.enter_chat()

    def leave_chat(self) -> None:
        """Puts aside what belongs to the chat that is shown."""
        raise NotImplementedError

    def enter_chat(self) -> None:
        """Takes up what belongs to the chat that is shown now."""
        raise NotImplementedError

    @on(TabBar.Chosen, "#chats")
    def _tab_chosen(self, event: TabBar.Chosen) -> None:
        event.stop()
        self.show_chat(UUID(event.key))

    def action_turn_chat(self, by: int) -> None:
        """The next chat, or the one before."""
        ids = [one.id for one in self._chats()]
        if self.chat_id in ids:
            self.show_chat(ids[(ids.index(self.chat_id) + by) % len(ids)])

    @work(exclusive=True, group="chats")
    async def action_new_chat(self) -> None:
        """Makes a chat with an agent and a model."""
        commands = self._deck.chat_commands
        hold_keys(self)
        try:
            agents = await commands.agents()
        except ClientError as error:
            drop_keys(self)
            self.refused("no new chat", error)
            return
        choices = [
            Choice(
                one.id, one.name if one.available else f"{one.name}: {one.reason}", one.available
            )
            for one in agents
        ]
        agent = await self.app.push_screen_wait(ChooseScreen("New chat: which agent", choices))
        if agent is not None:
            await self._make_chat(agent)

    async def _make_chat(self, agent: str) -> None:
        commands = self._deck.chat_commands
        try:
            offered = (await commands.models(agent)).models
            model = ""
            if offered:
                choices = [
                    Choice("", OWN_CHOICE),
                    *(_choice(one.id, one.display_name) for one in offered),
                ]
                screen = ChooseScreen("New chat: which model", choices, free=True)
                model = await self.app.push_screen_wait(screen)
            if model is not None:
                self.show_chat(await commands.create(self.replica_id, agent, model or None))
                self.screen.set_focus(self.composer)
        except ClientError as error:
            self.refused("no new chat", error)

    @work(exclusive=True, group="chats")
    async def action_pick_model(self) -> None:
        """Chooses the model of the messages to come; another agent is another chat."""
        chat, commands = self.chat, self._deck.chat_commands
        if chat is None:
            return
        hold_keys(self)
        try:
            offered = (await commands.models(chat.record.provider)).models
            agents = await commands.agents()
        except ClientError as error:
            drop_keys(self)
            self.refused("no models", error)
            return
        choices = [Choice("", OWN_CHOICE), *(_choice(one.id, one.display_name) for one in offered)]
        choices += [
            Choice(ANOTHER + one.id, f"agent {one.name}: makes another chat", one.available)
            for one in agents
            if one.id != chat.record.provider
        ]
        screen = ChooseScreen("Model from the next message on", choices, free=True)
        chosen = await self.app.push_screen_wait(screen)
        if chosen is not None and chosen.startswith(ANOTHER):
            await self._make_chat(chosen.removeprefix(ANOTHER))
        elif chosen is not None:
            chat.model = chosen or None
            self.show_state()

    @work(exclusive=True, group="chats")
    async def action_rename_chat(self) -> None:
        """Gives the chat another name."""
        chat, chat_id = self.chat, self.chat_id
        if chat is None:
            return

        async def rename(values: Mapping[str, str]) -> None:
            name = values["name"]
            if not 1 <= len(name) <= LONGEST_NAME:
                raise WrongFieldError("name", f"A name has 1 to {LONGEST_NAME} characters.")
            await self._deck.chat_commands.rename(self.replica_id, chat_id, name)

        field = AskField("name", "Name", one_line(chat.record.title or ""))
        hold_keys(self)
        await self.app.push_screen_wait(AskScreen("Rename the chat", [field], rename, "renames"))

    @work(exclusive=True, group="chats")
    async def action_delete_chat(self) -> None:
        """Deletes the chat, after asking."""
        from quarterdeck.tui.screens.confirm import ConfirmScreen

        chat, chat_id = self.chat, self.chat_id
        if chat is None:
            return
        if len(self._chats()) < 2:
            self.trouble("The only chat goes with its replica: d in the list deletes that.")
            return
        hold_keys(self)
        sure = await self.app.push_screen_wait(
            ConfirmScreen(
                f"Delete the chat {chat_label(chat)}?",
                "What was said in it goes for good, and what it is doing ends. Files stay.",
                "Delete",
            )
        )
        if not sure:
            return
        try:
            await self._deck.chat_commands.delete(self.replica_id, chat_id)
        except ClientError as error:
            self.refused("not deleted", error)


def _choice(id: str, name: str) -> Choice:
    return Choice(id, id if name in ("", id) else f"{id}  {name}")
