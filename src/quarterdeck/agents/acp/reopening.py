"""Reopening sessions of an agent that loses them when it is let.

One names them by the clock's minute.

Such an agent, asked for a session in the minute in which it was made, makes a new one of the same
name over it. So the driver notes when a session was made and lets that minute pass. Each time that
it reopens one it makes an empty file of that minute's name, which is cleared away before the next.
"""

import asyncio
from glob import escape
from pathlib import Path
from time import time

from quarterdeck.agents.port import SessionSpec
from quarterdeck.agents.presets import Preset

_MARK = "session-made"
_MINUTE = 60.0
_NAMED = 8


def note_made(preset: Preset, spec: SessionSpec) -> None:
    """A session was made now."""
    if preset.traps.reopens_next_minute:
        mark = Path(spec.state_directory, _MARK)
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


def clear_twins(preset: Preset, spec: SessionSpec) -> None:
    """Removes the session's empty files; the one that holds it is the largest. Blocking."""
    files, home = preset.traps.session_files, spec.environment.get("HOME")
    if files is None or home is None or not spec.session_id:
        return
    pattern = files.replace("{session}", escape(spec.session_id[:_NAMED]))
    found = sorted(Path(home).glob(pattern), key=lambda path: path.stat().st_size)
    for twin in found[:-1]:
        twin.unlink(missing_ok=True)


async def let_minute_pass(preset: Preset, spec: SessionSpec) -> None:
    """Returns when the session can be reopened."""
    mark = Path(spec.state_directory, _MARK)
    if not preset.traps.reopens_next_minute or spec.session_id is None:
        return
    if await asyncio.to_thread(mark.is_file):
        made = (await asyncio.to_thread(mark.stat)).st_mtime
        await asyncio.sleep(left_of_minute(made, time()))


def left_of_minute(made: float, now: float) -> float:
    """Seconds until the minute in which a session was made has passed."""
    return _MINUTE - now % _MINUTE if made // _MINUTE == now // _MINUTE else 0.0
