"""What a prompt asks for beside its text: model, effort, speed and plan mode."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from quarterdeck.agents.acp.choices import LEVELS
from quarterdeck.agents.objects import as_object
from quarterdeck.agents.port import Prompt

Params = dict[str, Any]
_FAST = "fast"


class Settings:
    """Follows what a thread is set to. `list_models` asks codex, at most once."""

    def __init__(self, list_models: Callable[[], Awaitable[Params]]) -> None:
        self._list_models = list_models
        self._models: dict[str, Params] | None = None
        self._model = ""
        self._planning = False

    def opened(self, answer: Params) -> None:
        """Takes the answer that opened the thread."""
        self._model = str(answer.get("model") or "")
        mode = as_object(answer.get("collaborationMode")).get("mode")
        self._planning = mode == "plan"

    def plans(self, prompt: Prompt) -> bool:
        """Whether the prompt is of plan mode, or ends it."""
        return prompt.plan_mode or self._planning

    async def wanted(self, prompt: Prompt) -> Params:
        """The fields of `turn/start`, but for speed also of `thread/settings/update`."""
        model = prompt.model or self._model
        found: Params = {}
        if prompt.model and prompt.model != self._model:
            found["model"] = prompt.model
        if prompt.thinking_level:
            found["effort"] = await self._effort(model, prompt.thinking_level)
        if self.plans(prompt):
            found["collaborationMode"] = {
                "mode": "plan" if prompt.plan_mode else "default",
                "settings": {
                    "model": model,
                    "reasoning_effort": found.get("effort"),
                    "developer_instructions": None,
                },
            }
        return found

    async def speed(self, prompt: Prompt) -> Params:
        """The field of `turn/start` that makes one turn fast, where the model can be."""
        if not prompt.fast_mode:
            return {}
        model = (await self._known()).get(prompt.model or self._model, {})
        tiers = [as_object(one) for one in cast("list[object]", model.get("serviceTiers") or [])]
        fast = next((one for one in tiers if str(one.get("name")).lower() == _FAST), None)
        return {"serviceTierForTurn": fast["id"]} if fast else {}

    def chosen(self, prompt: Prompt) -> None:
        """Codex took the prompt."""
        self._model = prompt.model or self._model
        self._planning = prompt.plan_mode

    async def _effort(self, model: str, level: str) -> str:
        """The level, or the nearest below that the model has; it has one at least."""
        known = (await self._known()).get(model)
        if known is None:
            return level
        listed = cast("list[object]", known.get("supportedReasoningEfforts") or [])
        offered = [str(as_object(one).get("reasoningEffort")) for one in listed]
        below = reversed(LEVELS[: LEVELS.index(level) + 1])
        found = next((one for one in below if one in offered), None)
        return found or str(known.get("defaultReasoningEffort") or level)

    async def _known(self) -> dict[str, Params]:
        if self._models is None:
            answer = await self._list_models()
            listed = [as_object(one) for one in cast("list[object]", answer.get("data") or [])]
            self._models = {str(one.get("model")): one for one in listed}
        return self._models
