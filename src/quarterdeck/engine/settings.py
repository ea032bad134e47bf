"""The settings of a chat's agent: what it announced, what was chosen, and what the record shows.

A choice is kept with the chat and goes with every prompt, so it survives a restarted agent. The
agent may change its permission mode itself, for instance when a plan is approved: then the chat
keeps that one. Plan mode is never kept: each message says whether it plans.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from uuid import UUID

from quarterdeck.agents.port import AdjustableSession, AgentError, AgentSession, ModelSession
from quarterdeck.engine import turn_events
from quarterdeck.engine.chat_state import EngineChat
from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.engine.journal import JournalDraft, JournalNote
from quarterdeck.wire.chats import ChatSetting, ChatSettings, SettingChoice, SettingValue
from quarterdeck.wire.engine import ChangeSettings
from quarterdeck.wire.history import AgentEvent

MOST_CHOICES = 1_000
"""Of one setting; longer lists are cut."""
LONGEST_TEXT = 200
"""Of an id, a name and a description."""
FIELDS = ("permission_mode", "model", "thinking_level")
_CHANGES = ("current_mode_update", "config_option_update")


def model_in_use(session: AgentSession) -> str | None:
    """Return the model that an agent uses where the user chose none; None when it is not known.

    The agent's own configuration may name another one than its default.
    """
    setting = session.settings.model if isinstance(session, AdjustableSession) else None
    if setting is not None and setting.current is not None:
        return setting.current.id
    offer = session.models if isinstance(session, ModelSession) else None
    return offer.default if offer else None


class SettingsOfChat:
    """Follows the settings of one chat. `publish` journals drafts."""

    def __init__(self, chat: EngineChat, publish: Callable[..., Awaitable[None]]) -> None:
        self._chat = chat
        self._publish = publish
        self._announced = ChatSettings()
        self._chosen: dict[str, SettingValue] = {}
        """Values that were chosen last, with their names."""
        self._heard: UUID | None = None
        """The message of the turn in which the agent was heard last."""

    async def announce(self, session: AgentSession, in_turn: bool = False) -> None:
        """Journal the agent's settings when they have changed.

        Those of a turn are kept as chosen. Before it, a session has its own defaults.
        """
        settings = self._read(session)
        parts: list[JournalDraft | JournalNote] = []
        if in_turn and self._adopt():
            parts.append(turn_events.session_opened(self._chat))
        shown = self.shown(in_turn)
        if settings is not None:
            parts.append(turn_events.settings_announced(self._chat, settings, **shown))
        elif shown:
            parts.append(turn_events.updated(self._chat, **shown))
        if parts:
            await self._publish(*parts)

    async def hear(self, agent_event: AgentEvent, session: AgentSession | None) -> None:
        """Follow an event of a turn: the first one, and those that report a changed setting."""
        turn = self._chat.current and self._chat.current.message_id
        is_change = agent_event.payload.get("sessionUpdate") in _CHANGES
        if session is not None and (is_change or turn != self._heard):
            self._heard = turn
            await self.announce(session, in_turn=True)

    async def change(
        self, change: ChangeSettings, session: AgentSession | None, in_turn: bool
    ) -> None:
        """Change settings: the permission mode at once, others with the next message.

        Raises:
            EngineRefusedError: INVALID_REQUEST: the agent does not offer the mode.
        """
        if change.permission_mode is not None and isinstance(session, AdjustableSession):
            try:
                await session.set_permission_mode(change.permission_mode)
            except AgentError as error:
                raise EngineRefusedError.invalid("The mode was not changed.", str(error)) from error
        for name in FIELDS:
            value: str | None = getattr(change, name)
            if value is not None:
                setattr(self._chat, name, value)
                self._chosen[name] = SettingValue(id=value, name=change.names.get(name, value))
        if session is not None:
            self._read(session)
        await self._publish(
            turn_events.session_opened(self._chat),
            turn_events.updated(self._chat, **self.shown(in_turn)),
            durable=True,
        )

    def _read(self, session: AgentSession) -> ChatSettings | None:
        """Return the settings that the session announces; None when nothing has changed."""
        if not isinstance(session, AdjustableSession):
            return None
        announced = _cleaned(session.settings)
        if announced == self._announced:
            return None
        self._announced = announced
        return announced

    def _adopt(self) -> bool:
        """Keep the agent's permission mode and thinking level; return whether they have changed."""
        changed = False
        for name in ("permission_mode", "thinking_level"):
            setting: ChatSetting | None = getattr(self._announced, name)
            current = setting and setting.current and setting.current.id
            offered = {choice.id for choice in setting.choices} if setting else set[str]()
            if current in offered and current != getattr(self._chat, name):
                setattr(self._chat, name, current)
                changed = True
        return changed

    def shown(self, in_turn: bool) -> dict[str, Any]:
        """Return the changed fields of the chat's record.

        In a turn they are the agent's, which may plan; else what the next message is sent with.
        """
        chat = self._chat
        shown: dict[str, SettingValue | None] = {}
        for name in FIELDS:
            setting: ChatSetting | None = getattr(self._announced, name)
            current = setting.current if setting else getattr(chat.record, name)
            known = (self._chosen.get(name), getattr(chat.record, name))
            kept = _named(setting, getattr(chat, name), known)
            shown[name] = current if in_turn else kept or current
        return {name: value for name, value in shown.items() if value != getattr(chat.record, name)}


def _named(
    setting: ChatSetting | None, id: str | None, known: Iterable[SettingValue | None]
) -> SettingValue | None:
    """Return a chosen value with its name; None when the agent no longer offers it."""
    if id is None:
        return None
    choices = setting.choices if setting else []
    name = next((value.name for value in (*choices, *known) if value and value.id == id), None)
    return SettingValue(id=id, name=name or id) if name or not choices else None


def _cleaned(settings: ChatSettings) -> ChatSettings:
    """Return the settings without what cannot be shown or is too long."""
    return ChatSettings(**{name: _clean(getattr(settings, name)) for name in FIELDS})


def _clean(setting: ChatSetting | None) -> ChatSetting | None:
    if setting is None:
        return None
    usable = [choice for choice in setting.choices if _is_usable(choice.id)][:MOST_CHOICES]
    choices = [
        SettingChoice(
            id=choice.id,
            name=_line(choice.name) or choice.id,
            description=(choice.description and _line(choice.description)) or None,
        )
        for choice in usable
    ]
    current = setting.current
    if current is not None:
        name = _line(current.name) or current.id
        current = SettingValue(id=current.id, name=name) if _is_usable(current.id) else None
    return ChatSetting(current=current, choices=choices)


def _is_usable(id: str) -> bool:
    return id.isprintable() and 0 < len(id) <= LONGEST_TEXT


def _line(text: str) -> str:
    """Return the text in one line of printable characters."""
    words = " ".join(text.split())
    return "".join(character for character in words if character.isprintable())[:LONGEST_TEXT]
