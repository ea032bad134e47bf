"""Read the output of commands that agents report in `_meta` of their tool calls.

Agents that run commands themselves, such as the adapters of Codex and of Claude Code, send output to
clients that declare `terminal_output` or `terminal_output_delta`: pieces in `_meta` of that name,
and the end of the command in `terminal_exit`. Here the pieces become the call's content, like the
output of every other agent.
"""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from quarterdeck.agents.objects import as_object
from quarterdeck.agents.output import MOST_CALLS, LiveOutput

Update = dict[str, Any]

KEYS = ("terminal_output", "terminal_output_delta")
"""Both are pieces to append; agents know one of the names, or both."""
_ENDED = frozenset({"completed", "failed"})
_NAMES = frozenset({"sessionUpdate", "toolCallId"})


class ToolCallOutput:
    """The output of a session's commands. `show` receives updates with the output so far."""

    def __init__(self, show: Callable[[Update], Awaitable[None]]) -> None:
        self._show = show
        self._commands: dict[str, LiveOutput] = {}

    async def take(self, update: Update) -> Update | None:
        """Return the update without pieces of output, and at the end of a call with all of it.

        Returns:
            The update to record; None when it held nothing but a piece of output.
        """
        call = update.get("toolCallId")
        if not isinstance(call, str):
            return update
        meta = as_object(update.get("_meta"))
        pieces = [
            text for key in KEYS if isinstance(text := as_object(meta.get(key)).get("data"), str)
        ]
        if pieces:
            if call not in self._commands and len(self._commands) >= MOST_CALLS:
                await self._close_call(next(iter(self._commands)))
            self._command(call).add("".join(pieces))
            meta = {key: value for key, value in meta.items() if key not in KEYS}
            update = {**update, "_meta": meta}
            if not meta:
                del update["_meta"]
        if update.get("status") in _ENDED and call in self._commands:
            return await self._ended(call, update)
        return update if update.keys() - _NAMES or not pieces else None

    async def close_calls(self) -> None:
        """Show all output of commands whose end was not reported: the turn has ended."""
        for call in list(self._commands):
            await self._close_call(call)

    async def stop(self) -> None:
        """Show nothing more: the agent has ended."""
        for call in list(self._commands):
            await self._end(call)

    async def _close_call(self, call: str) -> None:
        await self._show(_with(call, await self._end(call)))

    def _command(self, call: str) -> LiveOutput:
        if call not in self._commands:
            self._commands[call] = LiveOutput(lambda text: self._show(_with(call, text)))
        return self._commands[call]

    async def _ended(self, call: str, update: Update) -> Update:
        output = await self._end(call)
        told = update.get("content")
        content = cast("list[object]", told) if isinstance(told, list) else []
        if any(as_object(item).get("type") == "content" for item in content):
            return update  # the agent has its own words for the result
        rest = [item for item in content if as_object(item).get("type") != "terminal"]
        return {**update, "content": [*rest, _text(output)]}

    async def _end(self, call: str) -> str:
        command = self._commands.pop(call)
        await command.end()
        return command.text


def _with(call: str, output: str) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call, "content": [_text(output)]}


def _text(output: str) -> Update:
    return {"type": "content", "content": {"type": "text", "text": output}}
