"""The built-in agent as a process that speaks the Agent Client Protocol on its standard streams."""

import asyncio
import os
import sys
from pathlib import Path
from typing import cast

from acp.core import run_agent
from acp.interfaces import Agent

from quarterdeck.agents.builtin.agent import BuiltinAgent
from quarterdeck.agents.builtin.sessions import SessionStore

STATE_VARIABLE = "QUARTERDECK_AGENT_STATE"


async def _serve(state: Path) -> None:
    agent = BuiltinAgent(SessionStore(state))
    try:
        # The SDK answers "method not found" for what an agent leaves out of its `Agent`.
        await run_agent(cast("Agent", agent))
    finally:
        await agent.close()


def main() -> int:
    """Serves until standard input ends; 2 when no state directory is given."""
    state = os.environ.pop(STATE_VARIABLE, "")
    if not state:
        sys.stderr.write(f"{STATE_VARIABLE} names no directory for the sessions.\n")
        return 2
    asyncio.run(_serve(Path(state)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
