"""What a session offers to choose, and the requests that choose it: plan mode and model.

Agents offer plan mode as a config option (newer) or as a mode (older), under varying names; and so
their models.
"""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from quarterdeck.agents.acp.shapes import ConfigOption, ConfigOptions, Models, Modes, Opened

LEVELS = ("low", "medium", "high", "xhigh", "max")
_THINKING = ("thought_level", "effort", "reasoning_effort")


@dataclass(frozen=True)
class Choice:
    """A request to send; `sessionId` is to be added to its parameters."""

    method: str
    params: dict[str, Any]


class NotOfferedError(Exception):
    """The agent does not offer what was asked for. The text says what it offers instead."""


class Choices:
    """Follows what is chosen now, by answers and by the agent's own updates."""

    def __init__(self, opened: Opened, any_model: bool = False) -> None:
        self._any_model = any_model
        self._modes = opened.modes or Modes()
        self._models = opened.models or Models()
        self._options = {option.id: option for option in opened.config_options}
        self._before_plan: str | None = None

    def follow(self, update: dict[str, Any]) -> None:
        """Takes an update in which the agent says that a choice changed."""
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
        """Takes the options as an agent lists them after a change."""
        self._options.update({option.id: option for option in changed.config_options})

    def plan(self, wanted: bool) -> Choice | None:
        """The request that enters or leaves plan mode; None when nothing is to do.

        Raises:
            NotOfferedError: plan mode is wanted and the agent has none.
        """
        option = self._plan_option()
        values = option.values if option else [mode.id for mode in self._modes.available_modes]
        current = str(option.current_value) if option else self._modes.current_mode_id
        target = next(filter(_is_plan, values), None)
        if target is None and wanted:
            raise NotOfferedError("it has no plan mode. Send the message without it.")
        if target is None or wanted == _is_plan(current):
            return None
        if wanted:
            self._before_plan = current
        value = target if wanted else self._way_back(values)
        return _set_option(option, value) if option else _set_mode(value)

    def model(self, wanted: str, given_at_start: bool = False) -> Choice | None:
        """The request that chooses a model; None when it is chosen already, or by other means.

        `given_at_start`: the agent was started with it, so it need not list it.

        Raises:
            NotOfferedError: the agent lists its models and this one is not among them.
        """
        option = self._model_option()
        current = option.current_value if option else self._models.current_model_id
        offered = self._offered_models()
        if current == wanted or not (offered or self._any_model):
            return None
        if self.offers_model(wanted):
            return _set_option(option, wanted) if option else _set_model(wanted)
        if given_at_start:
            return None
        names = ", ".join(offered)
        raise NotOfferedError(f"it does not offer the model {wanted}. It offers: {names}.")

    def thinking(self, wanted: str) -> Choice | None:
        """The request that chooses how much it thinks, or the nearest level below.

        None when nothing is to do: a level is a wish, and agents without levels think as they do.
        """
        option = next(filter(_is_thinking, self._options.values()), None)
        if option is None:
            return None
        below = reversed(LEVELS[: LEVELS.index(wanted) + 1])
        level = next((one for one in below if one in option.values), None)
        if level is None or option.current_value == level:
            return None
        return _set_option(option, level)

    def offers_model(self, wanted: str) -> bool:
        """Whether this model can be chosen in the running session."""
        offered = self._offered_models()
        return wanted in offered or (self._any_model and not offered)

    def chosen(self, choice: Choice) -> None:
        """Notes that the agent accepted a choice."""
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

    def _offered_models(self) -> list[str]:
        if option := self._model_option():
            return option.values
        return [model.model_id for model in self._models.available_models]

    def _plan_option(self) -> ConfigOption | None:
        offering = [o for o in self._options.values() if any(map(_is_plan, o.values))]
        return next((o for o in offering if o.category == "mode" or "mode" in o.id), None)

    def _way_back(self, values: list[str]) -> str:
        if self._before_plan in values:
            return self._before_plan
        return next(value for value in values if not _is_plan(value))


def _is_plan(value: str) -> bool:
    # Some agents name their modes by address, with the mode as the fragment.
    return value.rpartition("#")[2].lower() == "plan"


def _is_thinking(option: ConfigOption) -> bool:
    return option.category == "thought_level" or option.id in _THINKING


def _set_option(option: ConfigOption, value: str) -> Choice:
    return Choice("session/set_config_option", {"configId": option.id, "value": value})


def _set_mode(mode: str) -> Choice:
    return Choice("session/set_mode", {"modeId": mode})


def _set_model(model: str) -> Choice:
    return Choice("session/set_model", {"modelId": model})
