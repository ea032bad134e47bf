"""The agents of this release and a person's own, together."""

from collections.abc import Mapping

from quarterdeck.agents.presets import Preset, load_presets
from quarterdeck.wire.agents import BUILTIN
from quarterdeck.wire.own_agents import OwnAgent


def all_presets(own: Mapping[str, OwnAgent]) -> dict[str, Preset]:
    """The release's agents, and a person's own before the built-in one."""
    known = dict(load_presets())
    builtin = known.pop(BUILTIN)
    return {**known, **{id: _own_preset(agent) for id, agent in own.items()}, BUILTIN: builtin}


def programs_of(own: Mapping[str, OwnAgent]) -> tuple[str, ...]:
    """The programs that agents are started by, but for what ships with this package."""
    presets = all_presets(own).values()
    return tuple(preset.command[0] for preset in presets if not preset.ships_with_us)


def own_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """Keys that an environment holds, as `NAME=KEY`, by the agent whose process is given them."""
    found = {id: preset.own_key(environment) for id, preset in load_presets().items()}
    return {id: f"{name}={environment[name]}" for id, name in found.items() if name}


def _own_preset(agent: OwnAgent) -> Preset:
    return Preset(**agent.model_dump(exclude={"shown"}))
