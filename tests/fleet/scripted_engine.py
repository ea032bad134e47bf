"""The real engine with scripted agents: `builtin` has goals, `gemini` and `claude` have none.
`codex` takes messages in a turn.

Run as `python -m tests.fleet.scripted_engine RUN_DIR`.
"""

import os
import sys
from pathlib import Path
from time import monotonic

from quarterdeck.agents.catalog import PresetCatalog
from quarterdeck.agents.port import AgentDriver
from quarterdeck.agents.presets import Preset, Quirks
from quarterdeck.engine import daemon as watch
from quarterdeck.engine.daemon import run
from tests.engine.fake_agents import FakeDriver, SteerableSession
from tests.fleet.doubles import AHEAD

AGENT = str(Path(__file__).with_name("scripted_agent.py"))


TRAPS = Quirks(own_turn_end="end")


def preset(goals: bool) -> Preset:
    command = (sys.executable, "-I", "-S", AGENT)
    return Preset(name="Scripted", command=command, supports_goal=goals, traps=TRAPS)


class Catalog(PresetCatalog):
    """Has two more agents: one whose questions are answered in words, and one that can be steered."""

    def driver(self, agent_id: str) -> AgentDriver:
        match agent_id:
            case "claude":
                return FakeDriver()
            case "codex":
                return FakeDriver(SteerableSession)
            case _:
                return super().driver(agent_id)


def moved(run_dir: Path) -> float:
    """Seconds, as tests move them forward."""
    try:
        return monotonic() + float((run_dir.parent / AHEAD).read_text())
    except FileNotFoundError:
        return monotonic()


if __name__ == "__main__":
    os.setsid()
    watch.WATCH_SECONDS = 0.1
    catalog = Catalog({"builtin": preset(True), "gemini": preset(False)}, os.environ)
    here = Path(sys.argv[1])
    sys.exit(run(here, lambda: catalog, lambda: moved(here)))
