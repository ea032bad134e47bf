"""The settings of a chat's agent: what is shown of them, and the dialogs that change them."""

from typing import Literal

from textual.widget import Widget

from quarterdeck.client.errors import ClientError
from quarterdeck.store.chats import ChatState
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.kit.dialogs import Choice, ChooseScreen
from quarterdeck.tui.panes.chat_dialogs import NOT_AVAILABLE, model_title
from quarterdeck.tui.panes.chat_messages import ShownChat
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.wire.chats import ChatSetting, SettingChoice, SettingValue

SettingName = Literal["permission_mode", "thinking_level"]

TITLES: dict[SettingName, str] = {
    "permission_mode": "Permission mode",
    "thinking_level": "Thinking level (from the next message)",
}
OWN_CHOICE = "Agent default"
ANOTHER = "another:"
"""Prefix of an agent's id among models: choosing it creates another chat."""


def words(chat: ChatState) -> str:
    """Return the permission mode, the model and the thinking level of a chat's agent."""
    record = chat.record
    values = (record.permission_mode, record.model, record.thinking_level)
    return "".join(f" · {one_line(value.name)}" for value in values if value is not None)


def _choice(id: str, name: str, current: SettingValue | None) -> Choice:
    label = id if name in ("", id) else f"{id}  {name}"
    return Choice(id, f"{label} (current)" if current is not None and current.id == id else label)


def _described(choice: SettingChoice, current: SettingValue | None) -> Choice:
    told = f": {choice.description}" if choice.description else ""
    mark = " (current)" if current is not None and current.id == choice.id else ""
    return Choice(choice.id, f"{choice.name}{mark}{told}")


async def choose_setting(asker: Widget, shown: ShownChat, name: SettingName) -> None:
    """Ask for a value of a setting, and set it. For a worker of the caller."""
    commands, chat_id = shown.app_state.chat_commands, shown.id
    try:
        with hold_keys(asker, "Reading the settings"):
            settings = await commands.settings(shown.replica_id, chat_id)
        setting: ChatSetting | None = getattr(settings, name)
        if setting is None or not setting.choices:
            shown.show_problem(f"The agent offers no {name.replace('_', ' ')}s.")
            return
        choices = [_described(choice, setting.current) for choice in setting.choices]
        chosen = await asker.app.push_screen_wait(ChooseScreen(TITLES[name], choices))
        if chosen is not None:
            shown.problem = ""
            await commands.change_setting(shown.replica_id, chat_id, name, chosen)
    except ClientError as error:
        shown.refused("not changed", error)


async def pick_model(asker: Widget, shown: ShownChat) -> str | None:
    """Ask for the model of the next messages; return another agent, which needs another chat."""
    chat = shown.state
    if chat is None:
        return None
    try:
        chosen = await _choose_model_or_agent(asker, shown, chat.record.provider)
    except ClientError as error:
        shown.refused("no models", error)
        return None
    if chosen is not None and chosen.startswith(ANOTHER):
        return chosen.removeprefix(ANOTHER)
    if chosen is not None:
        chat.model = chosen or None
        shown.refresh()
    return None


async def _choose_model_or_agent(asker: Widget, shown: ShownChat, provider: str) -> str | None:
    """Ask for a model, of which the empty one is the agent's default, or an agent.

    Raises:
        ClientError: the models or the agents cannot be read.
    """
    commands = shown.app_state.chat_commands
    with hold_keys(asker, "Reading the models"):
        setting = (await commands.settings(shown.replica_id, shown.id)).model
        title = "Model (from the next message)"
        models = [(model.id, model.name) for model in (setting.choices if setting else [])]
        if not models:
            usual = await commands.models(provider)
            models = [(one.id, one.display_name) for one in usual.models]
            title = model_title(title, usual)
        agents = await commands.agents()
    current = setting.current if setting else None
    choices = [Choice("", OWN_CHOICE), *(_choice(id, name, current) for id, name in models)]
    choices += [
        Choice(
            ANOTHER + agent.id,
            f"agent {agent.name}: {'new chat' if agent.available else agent.reason or NOT_AVAILABLE}",
            agent.available,
        )
        for agent in agents
        if agent.id != provider
    ]
    screen = ChooseScreen(title, choices, free=True)
    return await asker.app.push_screen_wait(screen)
