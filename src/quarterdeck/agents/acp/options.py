"""The choices that a session offers, the requests that make them, and its reported usage.

Agents offer plan mode as a config option (newer) or as a mode (older), under varying names; models
likewise.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from quarterdeck.agents.acp.shapes import (
    ConfigOption,
    ConfigOptions,
    Models,
    Modes,
    OpenedSession,
    choice_of,
)
from quarterdeck.agents.port import ModelOffer
from quarterdeck.wire.chats import ChatSetting, ChatSettings, SettingChoice, SettingValue

LEVELS = ("low", "medium", "high", "xhigh", "max")
_THINKING = ("thought_level", "effort", "reasoning_effort")


def nearest_level(level: str, offered: Collection[str]) -> str | None:
    """Return a thinking level, or the nearest offered one below; None without such a level."""
    if level in offered or level not in LEVELS:
        return level if level in offered else None
    below = reversed(LEVELS[: LEVELS.index(level)])
    return next((candidate for candidate in below if candidate in offered), None)


@dataclass(frozen=True)
class OptionRequest:
    """A request to send; the caller adds `sessionId` to its parameters."""

    method: str
    params: dict[str, Any]


class NotOfferedError(Exception):
    """The agent does not offer the requested choice. The text says what it offers instead."""


class OptionState:
    """Follows the current choices, from answers and from the agent's updates."""

    def __init__(
        self,
        opened: OpenedSession,
        any_model: bool = False,
        default_model: bool = False,
        plan_mode: str | None = None,
    ) -> None:
        """`default_model`: no model was requested, so the current one is the agent's default.

        `plan_mode`: the id of its plan mode, where that is not the usual one.
        """
        self._plan_mode = plan_mode
        self._any_model = any_model
        self._modes = opened.modes or Modes()
        self._models = opened.models or Models()
        self._options = {option.id: option for option in opened.config_options}
        self._before_plan: str | None = None
        self._default_model = self._current_model() if default_model else None

    @property
    def models(self) -> ModelOffer | None:
        """The models that the agent announced; None when it announced none."""
        offered = tuple((id, name) for id, name in self._named_models() if id)
        return ModelOffer(offered, self._default_model) if offered else None

    def follow(self, update: dict[str, Any]) -> None:
        """Follow an update that reports a changed choice."""
        try:
            match update.get("sessionUpdate"):
                case "current_mode_update":
                    changed = {"current_mode_id": str(update.get("currentModeId", ""))}
                    self._modes = self._modes.model_copy(update=changed)
                case "config_option_update":
                    self.replace(ConfigOptions.model_validate(update))
                case _:
                    return
        except ValidationError:
            return

    def replace(self, changed: ConfigOptions) -> None:
        """Replace the options by those an agent lists after a change."""
        self._options.update({option.id: option for option in changed.config_options})

    def plan(self, enabled: bool) -> OptionRequest | None:
        """Return the request that enters or leaves plan mode; None when none is needed.

        Raises:
            NotOfferedError: plan mode is requested and the agent has none.
        """
        option = self._plan_option()
        values = option.values if option else [mode.id for mode in self._modes.available_modes]
        current = str(option.current_value) if option else self._modes.current_mode_id
        target = next(filter(self._is_plan, values), None)
        if target is None and enabled:
            raise NotOfferedError("it has no plan mode. Send the message without it.")
        if target is None or enabled == self._is_plan(current):
            return None
        if enabled:
            self._before_plan = current
        value = target if enabled else self._way_back(values)
        return _set_option(option, value) if option else _set_mode(value)

    @property
    def settings(self) -> ChatSettings:
        """The settings as the agent announced them."""
        thinking = next(filter(_is_thinking, self._options.values()), None)
        models = [choice_of(id, name) for id, name in self._named_models() if id]
        return ChatSettings(
            permission_mode=self._permission_setting(),
            model=_setting(self._current_model(), models),
            thinking_level=thinking and _setting(_text(thinking.current_value), thinking.choices),
        )

    def permission_mode(self, mode: str) -> OptionRequest | None:
        """Return the request that chooses a permission mode; None when none is needed now.

        A session in plan mode changes to it when it leaves plan mode.

        Raises:
            NotOfferedError: the agent does not offer this mode.
        """
        offered = [choice.id for choice in self._modes_to_choose() if not self._is_plan(choice.id)]
        if mode not in offered:
            names = ", ".join(offered) or "none"
            raise NotOfferedError(
                f"it does not offer the permission mode {mode}. It offers: {names}."
            )
        option, current = self._mode_option(), self._current_mode()
        if self._is_plan(current or ""):
            self._before_plan = mode
            return None
        if current == mode:
            return None
        return _set_option(option, mode) if option else _set_mode(mode)

    @property
    def planning(self) -> bool:
        """Whether the session is in plan mode."""
        option = self._plan_option()
        return self._is_plan(str(option.current_value) if option else self._modes.current_mode_id)

    def model(self, model: str, set_at_start: bool = False) -> OptionRequest | None:
        """Return the request that chooses a model; None when it is already chosen, or by other means.

        `set_at_start`: the agent was started with it, so it need not list it.

        Raises:
            NotOfferedError: the agent lists its models and this one is not among them.
        """
        option, current = self._model_option(), self._current_model()
        offered = self._offered_models()
        if current == model or not (offered or self._any_model):
            return None
        if self.offers_model(model):
            return _set_option(option, model) if option else _set_model(model)
        if set_at_start:
            return None
        names = ", ".join(offered)
        raise NotOfferedError(f"it does not offer the model {model}. It offers: {names}.")

    def thinking(self, level: str) -> OptionRequest | None:
        """Return the request that chooses a thinking level, or the nearest one below.

        None when none is needed: agents without levels ignore the setting.
        """
        option = next(filter(_is_thinking, self._options.values()), None)
        if option is None:
            return None
        nearest = nearest_level(level, option.values)
        if nearest is None or option.current_value == nearest:
            return None
        return _set_option(option, nearest)

    def offers_model(self, model: str) -> bool:
        """Return whether this model can be chosen in the running session."""
        offered = self._offered_models()
        return model in offered or (self._any_model and not offered)

    def chosen(self, choice: OptionRequest) -> None:
        """Note that the agent accepted a choice."""
        if "modeId" in choice.params:
            changed = {"current_mode_id": choice.params["modeId"]}
            self._modes = self._modes.model_copy(update=changed)
            return
        if "modelId" in choice.params:
            changed = {"current_model_id": choice.params["modelId"]}
            self._models = self._models.model_copy(update=changed)
            return
        option = self._options[choice.params["configId"]]
        changed = {"current_value": choice.params["value"]}
        self._options[option.id] = option.model_copy(update=changed)

    def _model_option(self) -> ConfigOption | None:
        return next((o for o in self._options.values() if "model" in (o.category, o.id)), None)

    def _current_model(self) -> str | None:
        option = self._model_option()
        return _text(option.current_value if option else self._models.current_model_id)

    def _named_models(self) -> list[tuple[str, str]]:
        if option := self._model_option():
            return option.named_values
        return [
            (model.model_id, model.name or model.model_id)
            for model in self._models.available_models
        ]

    def _offered_models(self) -> list[str]:
        return [id for id, _ in self._named_models()]

    def _permission_setting(self) -> ChatSetting | None:
        """Return the setting; None where only plan mode can be chosen, which is not one of its values."""
        setting = _setting(self._current_mode(), self._modes_to_choose())
        if setting is None:
            return None
        choices = [choice for choice in setting.choices if not self._is_plan(choice.id)]
        return ChatSetting(current=setting.current, choices=choices) if len(choices) > 1 else None

    def _mode_option(self) -> ConfigOption | None:
        options = [o for o in self._options.values() if "mode" in (o.category, o.id)]
        # Some offer plan mode as an option of the same category beside it.
        return next((o for o in options if o.id == "mode"), options[0] if options else None)

    def _current_mode(self) -> str | None:
        option = self._mode_option()
        return _text(option.current_value) if option else self._modes.current_mode_id or None

    def _modes_to_choose(self) -> list[SettingChoice]:
        if option := self._mode_option():
            return option.choices
        modes = self._modes.available_modes
        return [choice_of(mode.id, mode.name, mode.description) for mode in modes]

    def _plan_option(self) -> ConfigOption | None:
        offering = [o for o in self._options.values() if any(map(self._is_plan, o.values))]
        return next((o for o in offering if o.category == "mode" or "mode" in o.id), None)

    def _is_plan(self, value: str) -> bool:
        if self._plan_mode is not None:
            return value == self._plan_mode
        # Some agents name their modes by address, with the mode as the fragment.
        return value.rpartition("#")[2].lower() == "plan"

    def _way_back(self, values: list[str]) -> str:
        if self._before_plan in values:
            return self._before_plan
        return next(value for value in values if not self._is_plan(value))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _setting(current: str | None, choices: list[SettingChoice]) -> ChatSetting | None:
    if not choices:
        return None
    name = next((choice.name for choice in choices if choice.id == current), current)
    return ChatSetting(
        current=SettingValue(id=current, name=name) if current and name else None,
        choices=choices,
    )


def _is_thinking(option: ConfigOption) -> bool:
    return option.category == "thought_level" or option.id in _THINKING


def _set_option(option: ConfigOption, value: str) -> OptionRequest:
    return OptionRequest("session/set_config_option", {"configId": option.id, "value": value})


def _set_mode(mode: str) -> OptionRequest:
    return OptionRequest("session/set_mode", {"modeId": mode})


def _set_model(model: str) -> OptionRequest:
    return OptionRequest("session/set_model", {"modelId": model})


class Usage:
    """Computes the usage of turns of one agent process."""

    def __init__(self, adds_up: bool) -> None:
        self._adds_up = adds_up
        self._previous: dict[str, Any] = {}

    def of_turn(self, counts: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the counts of the turn that ended."""
        if counts is None or not self._adds_up:
            return counts
        previous, self._previous = self._previous, counts
        return {name: _less(count, previous.get(name)) for name, count in counts.items()}


def _less(count: Any, before: Any) -> Any:
    if isinstance(count, int) and isinstance(before, int) and count >= before:
        return count - before
    return count
