"""The dialogs of the Chat tab, and the settings of its agent."""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from textual.app import App
from textual.widget import Widget

from quarterdeck.client.errors import ClientError
from quarterdeck.store.chats import ChatCommands, ChatState
from quarterdeck.store.drafts import home_path
from quarterdeck.store.exporting import export_chat, find_images, write_new
from quarterdeck.transcript.blocks import MessageBlock
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import keyed
from quarterdeck.tui.clipboard import copy_text
from quarterdeck.tui.kit.dialogs import (
    AskField,
    AskScreen,
    Choice,
    ChooseScreen,
    WrongFieldError,
)
from quarterdeck.tui.outside import OutsideError, look_at
from quarterdeck.tui.panes.chat_messages import ShownChat, chat_tab
from quarterdeck.tui.pictures import saved_words, why_none
from quarterdeck.tui.screens.picture import PictureScreen
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.tui.transcript_view import TranscriptView
from quarterdeck.wire.agents import AgentModels
from quarterdeck.wire.chats import (
    TOKEN_BUDGET_LIMIT,
    ChatSetting,
    GoalStatus,
    SettingChoice,
    SettingValue,
)

if TYPE_CHECKING:
    from quarterdeck.tui.app import Cockpit

LONGEST_NAME = 100
OWN_CHOICE = "Agent default"
NOT_AVAILABLE = "not available"
NO_GOALS = "This agent does not manage goals itself. Send a message in goal mode: ctrl+l."
TAKEN = "The file exists and was not changed: choose another name."


# chats


async def choose_agent(asker: Widget, commands: ChatCommands) -> str | None:
    """Ask for the agent of a new chat. For a worker of the caller, as all dialogs of this module.

    Raises:
        ClientError: the agents cannot be read.
    """
    with hold_keys(asker, "Reading the agents"):
        agents = await commands.agents()
    choices = [
        Choice(
            agent.id,
            agent.name if agent.available else f"{agent.name}: {agent.reason or NOT_AVAILABLE}",
            agent.available,
        )
        for agent in agents
    ]
    return await asker.app.push_screen_wait(ChooseScreen("New chat: which agent", choices))


async def choose_model(asker: Widget, commands: ChatCommands, agent: str) -> str | None:
    """Ask for the model of a new chat; empty for the agent's default, None when canceled.

    Raises:
        ClientError: the models cannot be read.
    """
    with hold_keys(asker, "Reading the models"):
        offered = await commands.models(agent)
    if not offered.models:
        return ""
    known = (_choice(one.id, one.display_name) for one in offered.models)
    choices = [Choice("", OWN_CHOICE), *known]
    title = model_title("New chat: which model", offered)
    screen = ChooseScreen(title, choices, free=True)
    return await asker.app.push_screen_wait(screen)


def model_title(title: str, offered: AgentModels) -> str:
    """Return a title that says when the agent itself has not announced its models yet."""
    return f"{title}; usual ones, until the agent runs" if offered.announced is False else title


def _choice(id: str, name: str) -> Choice:
    return Choice(id, id if name in ("", id) else f"{id}  {name}")


async def ask_name(asker: Widget, shown: ShownChat) -> None:
    """Ask for another name of the chat, and rename it."""
    chat, chat_id = shown.state, shown.id
    if chat is None:
        return

    async def rename(values: Mapping[str, str]) -> None:
        name = values["name"]
        if not 1 <= len(name) <= LONGEST_NAME:
            raise WrongFieldError("name", f"A name has 1 to {LONGEST_NAME} characters.")
        await shown.app_state.chat_commands.rename(shown.replica_id, chat_id, name)

    field = AskField("name", "Name", one_line(chat.record.title or ""))
    await asker.app.push_screen_wait(AskScreen("Rename the chat", [field], rename, "rename"))


async def confirm_delete(asker: Widget, chat: ChatState, name: Callable[[str], str]) -> bool:
    """Ask whether to delete a chat; `name` returns what an agent is called."""
    from quarterdeck.tui.kit.dialogs import ConfirmScreen

    return await asker.app.push_screen_wait(
        ConfirmScreen(
            f"Delete the chat {chat_tab(chat, name).label}?",
            "Deletes this conversation and stops its current turn. Files are kept.",
            "Delete",
        )
    )


# the goal


async def ask_goal(asker: Widget, shown: ShownChat) -> None:
    """Ask for the goal of the chat and its budget, and set them; without an objective, remove the goal."""
    chat, chat_id = shown.state, shown.id
    if chat is None:
        return
    goal = chat.record.goal
    objective = one_line(goal.objective) if goal else ""
    budget = str(goal.token_budget) if goal and goal.token_budget else ""
    hint = "empty removes the goal" if goal else "the objective"

    async def change(values: Mapping[str, str]) -> None:
        wanted, most = values["objective"], budget_of(values["budget"])
        commands = shown.app_state.chat_commands
        if not wanted and goal is not None:
            await commands.remove_goal(shown.replica_id, chat_id)
            return
        if not wanted:
            raise WrongFieldError("objective", "A goal needs an objective.")
        # An objective starts the goal again, with its counters at zero: only a new one is sent.
        renewed = wanted if wanted != objective else None
        if renewed is None and (most is None or values["budget"] == budget):
            return
        if not await commands.set_goal(shown.replica_id, chat_id, renewed, most):
            raise WrongFieldError("form", NO_GOALS)

    fields = [
        AskField("objective", "Objective", objective, hint),
        AskField("budget", "Token budget", budget, "none"),
    ]
    await asker.app.push_screen_wait(AskScreen("Goal of the chat", fields, change, "set"))


async def switch_goal(shown: ShownChat) -> None:
    """Pause the goal, or resume it."""
    goal = shown.state.record.goal if shown.state else None
    if goal is None:
        shown.show_problem(keyed("No goal yet. {chat.goal} set one"))
        return
    status = "paused" if goal.status == GoalStatus.ACTIVE else "active"
    try:
        await shown.app_state.chat_commands.switch_goal(shown.replica_id, shown.id, status)
    except ClientError as error:
        shown.refused("goal unchanged", error)


def budget_of(typed: str) -> int | None:
    """Return a number of tokens as users write it; `k` and `m` are thousands and millions. None for an empty text.

    Raises:
        WrongFieldError: not a number, or out of bounds.
    """
    text = typed.lower().replace(",", "").replace("_", "").replace(" ", "")
    if not text:
        return None
    factor = {"k": 1_000, "m": 1_000_000}.get(text[-1], 1)
    digits = text[:-1] if factor > 1 else text
    if not (digits.isascii() and digits.isdigit()):
        raise WrongFieldError("budget", "A budget is a number of tokens, such as 100k.")
    budget = int(digits) * factor
    if not 1 <= budget <= TOKEN_BUDGET_LIMIT:
        raise WrongFieldError("budget", f"A budget is 1 to {TOKEN_BUDGET_LIMIT:,} tokens.")
    return budget


def copy_message(asker: Widget, shown: ShownChat) -> None:
    """Copy the agent's last message."""
    transcript = shown.state.transcript if shown.state else None
    blocks = reversed(transcript.blocks if transcript else ())
    text = next((block.text for block in blocks if isinstance(block, MessageBlock)), "")
    if text:
        copy_text(asker, text.strip())
    else:
        shown.show_problem("The agent has not said anything in this chat yet.")


# files of the chat; existing files are never overwritten


async def ask_export(asker: Widget, shown: ShownChat) -> None:
    """Ask for a name, and write the whole chat to it."""
    chat_id = shown.id

    async def export(values: Mapping[str, str]) -> None:
        path = _path(values["path"])
        try:
            await export_chat(shown.app_state.client, shown.replica_id, chat_id, path)
        except OSError as error:
            raise _wrong(error) from error
        tell(asker, f"The chat is in {path}")

    hint = "chat.md for markdown, chat.jsonl for its events"
    field = AskField("path", "New file (.md or .jsonl)", f"{_stem(shown)}.md", hint)
    await asker.app.push_screen_wait(AskScreen("Export the chat", [field], export, "save"))


async def ask_to_save(
    asker: Widget,
    shown: ShownChat,
    images: Sequence[tuple[str, bytes]],
    label: str = "File name (no extension)",
) -> None:
    """Ask for a name, and write images to it. They are pairs of a file suffix and the content."""

    async def save(values: Mapping[str, str]) -> None:
        names = _names(_path(values["path"]), images)
        try:
            for path, (_, content) in zip(names, images, strict=True):
                write_new(path, content)
        except OSError as error:
            raise _wrong(error) from error
        tell(asker, saved_words(names))

    field = AskField("path", label, f"{_stem(shown)}-image")
    title = f"Save {len(images)} image{'s' if len(images) > 1 else ''}"
    await asker.app.push_screen_wait(AskScreen(title, [field], save, "save"))


async def look_at_text(
    asker: Widget, shown: ShownChat, text: str, program: Callable[[], list[str]]
) -> None:
    """Open a part of the transcript in another program."""
    try:
        data = text.encode(errors="replace")
        await look_at(cast("App[Any]", asker.app), "transcript.md", data, program)
    except OutsideError as error:
        shown.show_problem(str(error))


async def view_images(asker: Widget, shown: ShownChat, view: TranscriptView) -> None:
    """Show the images of the block under the cursor; save them where none can be displayed."""
    images = await read_images(asker, shown, view)
    if not images:
        return
    why = await why_none(cast("Cockpit", asker.app))
    if why:
        label = f"{why}\nName of a file to save it in, without its ending"
        await ask_to_save(asker, shown, images, label)
    else:
        contents = [content for _, content in images]
        await asker.app.push_screen(PictureScreen(shown.app_state, contents))


async def read_images(
    asker: Widget, shown: ShownChat, view: TranscriptView
) -> list[tuple[str, bytes]]:
    """Return the images of the block under the cursor, with their file suffixes.

    When there are none, or they cannot be read, the pane says so.
    """
    block = view.cursor_block
    if block is None:
        return []
    blocks, at = view.transcript.blocks, view.transcript.position(block.id)
    later = islice(blocks, len(blocks) if at is None else at + 1, None)
    end = next((later_block.at for later_block in later if later_block.at > block.at), None)
    client = shown.app_state.client
    with hold_keys(asker, "Reading the images") as hold:
        try:
            images = await find_images(client, shown.replica_id, shown.id, block.at, end)
        except ClientError as error:
            hold.discard()
            shown.refused("no images", error)
            return []
        if not images:
            hold.discard()
            shown.show_problem("No images in this block.")
        return images


def tell(asker: Widget, text: str) -> None:
    """Show a notice that something was done."""
    asker.app.notify(one_line(text), markup=False)


def _stem(shown: ShownChat) -> str:
    """Return a file name after the replica; names may contain anything."""
    name = shown.replica.name if shown.replica else "chat"
    kept = "".join(
        character if character.isalnum() or character in "-._" else "-" for character in name
    )
    return kept.lstrip(".-")[:60] or "chat"


def _path(typed: str) -> Path:
    if not typed:
        raise WrongFieldError("path", "A file needs a name.")
    return home_path(typed)


def _names(path: Path, images: Sequence[tuple[str, bytes]]) -> list[Path]:
    if len(images) == 1:
        return [path.with_name(f"{path.name}.{images[0][0]}")]
    return [path.with_name(f"{path.name}-{n}.{end}") for n, (end, _) in enumerate(images, 1)]


def _wrong(error: OSError) -> WrongFieldError:
    if isinstance(error, FileExistsError):
        return WrongFieldError("path", TAKEN)
    return WrongFieldError("path", f"Cannot write the file: {error.strerror}.")


SettingName = Literal["permission_mode", "thinking_level"]

TITLES: dict[SettingName, str] = {
    "permission_mode": "Permission mode",
    "thinking_level": "Thinking level (from the next message)",
}
ANOTHER = "another:"
"""Prefix of an agent's id among models: choosing it creates another chat."""


def _setting_choice(id: str, name: str, current: SettingValue | None) -> Choice:
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
    choices = [Choice("", OWN_CHOICE), *(_setting_choice(id, name, current) for id, name in models)]
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
