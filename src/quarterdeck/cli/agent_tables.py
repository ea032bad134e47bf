"""A person's own agents in the configuration file: one table `[agents.NAME]` each."""

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from quarterdeck.wire.credentials import NO_PROVIDERS, PROVIDER_PATTERN
from quarterdeck.wire.own_agents import OwnAgent

AgentId = Annotated[str, StringConstraints(pattern=PROVIDER_PATTERN)]


class AgentTable(OwnAgent):
    """As `OwnAgent`, checked as a person wrote it; `~` is the home directory of who runs qd."""

    name: Annotated[str, Field(min_length=1, max_length=100)]

    @field_validator("command", "shown", mode="before")
    @classmethod
    def _at_home(cls, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return tuple(_expanded(part) for part in value)  # pyright: ignore[reportUnknownVariableType]

    @field_validator("command")
    @classmethod
    def _starts_anywhere(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        if "/" in command[0] and not command[0].startswith("/"):
            raise ValueError(f"{command[0]!r}: give the program by its name or an absolute path")
        if command[0].startswith("{"):
            raise ValueError(f"{command[0]!r} is no program")
        return command

    @field_validator("shown")
    @classmethod
    def _shows_little(cls, shown: tuple[str, ...]) -> tuple[str, ...]:
        for path in map(Path, shown):
            if not path.is_absolute():
                raise ValueError(f"{path}: give an absolute path, or one that begins with ~/")
            if Path.home().is_relative_to(path):
                raise ValueError(f"{path} holds your home directory; name what is needed of it")
        return shown

    @model_validator(mode="after")
    def _default_is_offered(self) -> Self:
        if self.default_model and self.models and self.default_model not in self.models:
            raise ValueError(f"default_model {self.default_model!r} is none of models")
        return self


def check_ids(agents: dict[str, AgentTable]) -> dict[str, AgentTable]:
    """Refuses names that mean something else already."""
    if not agents:
        return agents
    from quarterdeck.agents.presets import load_presets  # most people have no agents of their own

    for agent_id in agents:
        if agent_id in load_presets():
            raise ValueError(f"{agent_id} is the name of an agent that is known already")
        if agent_id in NO_PROVIDERS:
            raise ValueError(f"{agent_id} cannot be the name of an agent; choose another")
    return agents


def _expanded(part: Any) -> Any:
    return str(Path(part).expanduser()) if isinstance(part, str) and part.startswith("~/") else part
