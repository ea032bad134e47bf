"""Dispatch codex's messages about one thread: as events, to a person, or to a waiting caller."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from quarterdeck.agents.codex import items
from quarterdeck.agents.codex.link import Reply
from quarterdeck.agents.codex.questions import Approvals
from quarterdeck.agents.codex.turns import NativeGoal, ThreadTurns
from quarterdeck.agents.objects import as_list, as_object
from quarterdeck.agents.output import MOST_CALLS, LiveOutput
from quarterdeck.agents.session.permissions import PermissionRequests
from quarterdeck.agents.session.recorder import Recorder
from quarterdeck.wire.history import NOTED_STATE, AgentEventType

Params = dict[str, Any]

_PLAN_STATUS = {"inProgress": "in_progress"}
MOST_TEXTS = 1_000
"""Unfinished items of text that are remembered."""
MOST_WARNINGS = 100
"""Different warnings of a process that are reported."""
LONGEST_WARNING = 10_000
PLAN_MARK = {"_meta": {"item": "plan"}}
"""Marks the chunks of a proposed plan, which is sent like a message."""


class Narrator:
    """Reports one thread as events. Text that was sent in pieces is not sent again whole."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._sent_in_pieces: dict[str, None] = {}
        self.planned = False
        """Whether a plan was proposed since this was last cleared."""
        self._calls: dict[str, LiveOutput] = {}
        self._edited: dict[str, list[str]] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._warned: set[str] = set()

    @property
    def warnings(self) -> list[str]:
        """Codex's warnings."""
        return sorted(self._warned)

    def edited_files(self, item_id: str) -> list[str]:
        """Return the files that a running call edits, when it does nothing else."""
        return self._edited.get(item_id, [])

    async def calls_closed(self) -> None:
        """Wait until no call is running."""
        await self._idle.wait()

    async def hear(self, method: str, params: Params) -> None:
        """Handle a notification of the thread; those without content for a person are skipped."""
        handle = _HANDLERS.get(method)
        if handle is not None:
            await handle(self, params)

    async def remark(self, line: str) -> None:
        """Send a remark in the agent's place, set apart from its messages."""
        await self._chunk("agent_message_chunk", f"*{line}*\n\n", None)

    async def close_calls(self) -> None:
        """Close calls that are still open: their end will not be reported."""
        for item_id in list(self._calls):
            await self._close_call(item_id)

    async def _close_call(self, item_id: str) -> None:
        await self._end_output(item_id)
        await self._update(items.cut_off(item_id))

    # Talk

    async def _message(self, params: Params) -> None:
        await self._piece("agent_message_chunk", params, str(params.get("itemId")))

    async def _plan(self, params: Params) -> None:
        await self._piece("agent_message_chunk", params, str(params.get("itemId")), PLAN_MARK)

    async def _summary(self, params: Params) -> None:
        part = f"{params.get('itemId')}.{params.get('summaryIndex', 0)}"
        await self._piece("agent_thought_chunk", params, part)

    async def _thought(self, params: Params) -> None:
        part = f"{params.get('itemId')}.raw.{params.get('contentIndex', 0)}"
        await self._piece("agent_thought_chunk", params, part)

    async def _piece(
        self, kind: str, params: Params, part: str, mark: Params | None = None
    ) -> None:
        self._sent_in_pieces[str(params.get("itemId"))] = None
        if len(self._sent_in_pieces) > MOST_TEXTS:
            del self._sent_in_pieces[next(iter(self._sent_in_pieces))]
        await self._chunk(kind, str(params.get("delta", "")), part, mark)

    async def _chunk(
        self, kind: str, text: str, part: str | None, mark: Params | None = None
    ) -> None:
        self.planned = self.planned or mark is PLAN_MARK
        named = {"messageId": part} if part else {}
        content = {"type": "text", "text": text}
        await self._update({"sessionUpdate": kind, "content": content, **named, **(mark or {})})

    async def _whole(self, item: items.Item) -> None:
        """Send a complete item of text, unless it was sent in pieces."""
        item_id, kind = str(item["id"]), item["type"]
        if item_id in self._sent_in_pieces:
            del self._sent_in_pieces[item_id]
        elif kind == "reasoning":
            for number, text in enumerate(as_list(item.get("summary"))):
                await self._chunk("agent_thought_chunk", str(text), f"{item_id}.{number}")
        elif text := str(item.get("text") or ""):
            mark = PLAN_MARK if kind == "plan" else None
            await self._chunk("agent_message_chunk", text, item_id, mark)

    # Calls

    async def _started(self, params: Params) -> None:
        item = _item(params)
        if item is None or item["type"] in items.TALK | items.MODEL_ONLY:
            return
        item_id = str(item["id"])
        if len(self._calls) >= MOST_CALLS:
            await self._close_call(next(iter(self._calls)))
        self._calls[item_id] = LiveOutput(lambda text: self._show_output(item_id, text))
        self._edited[item_id] = items.edited_files(item)
        self._idle.clear()
        await self._update(items.started(item))

    async def _ended(self, params: Params) -> None:
        item = _item(params)
        if item is None or item["type"] in items.MODEL_ONLY:
            return
        if item["type"] in items.TALK:
            return await self._whole(item)
        item_id = str(item["id"])
        if item_id not in self._calls:
            await self._update(items.started(item))
        shown = await self._end_output(item_id)
        await self._update(items.ended(item, shown))

    async def _printed(self, params: Params) -> None:
        output = self._calls.get(str(params.get("itemId")))
        if output is not None:
            output.add(str(params.get("delta", "")))

    async def _patched(self, params: Params) -> None:
        if str(params.get("itemId")) in self._calls:
            self._edited[str(params.get("itemId"))] = items.edited_files(params)
        content = items.patch_content(items.changes_of(params))
        await self._update(items.progressed(str(params.get("itemId")), content))

    async def _progress(self, params: Params) -> None:
        content = [items.text_part(str(params.get("message", "")))]
        await self._update(items.progressed(str(params.get("itemId")), content))

    async def _show_output(self, item_id: str, text: str) -> None:
        if not self._recorder.open:
            return  # a server left running prints between turns; its end reports all output
        await self._update(items.progressed(item_id, [items.text_part(text)]))

    async def _end_output(self, item_id: str) -> bool:
        output = self._calls.pop(item_id, None)
        self._edited.pop(item_id, None)
        if output is None:
            return False
        await output.end()
        if not self._calls:
            self._idle.set()
        return output.shown

    # The rest

    async def _steps(self, params: Params) -> None:
        steps = [as_object(step) for step in as_list(params.get("plan"))]
        entries = [
            {
                "content": str(step.get("step", "")),
                "priority": "medium",
                "status": _PLAN_STATUS.get(str(step.get("status")), str(step.get("status"))),
            }
            for step in steps
        ]
        await self._update({"sessionUpdate": "plan", "entries": entries})

    async def _usage(self, params: Params) -> None:
        usage = as_object(params.get("tokenUsage"))
        used = as_object(usage.get("last")).get("totalTokens") or 0
        size = usage.get("modelContextWindow") or 0
        await self._update({"sessionUpdate": "usage_update", "used": used, "size": size})

    async def _error(self, params: Params) -> None:
        if params.get("willRetry"):  # else the end of the turn reports it
            message = as_object(params.get("error")).get("message")
            state = {NOTED_STATE: str(message or "Trying again")}
            await self._update({"sessionUpdate": "session_info_update", "_meta": state})

    async def _warning(self, params: Params) -> None:
        parts = [params.get("message") or params.get("summary"), params.get("details")]
        text = "\n".join(str(part) for part in parts if part)[:LONGEST_WARNING]
        if text in self._warned or len(self._warned) >= MOST_WARNINGS:
            return  # codex repeats some in every turn
        self._warned.add(text)
        await self._notice(text)

    async def _rerouted(self, params: Params) -> None:
        text = f"The model {params.get('toModel')} answers in place of {params.get('fromModel')}."
        await self._notice(text)

    async def _server(self, params: Params) -> None:
        if params.get("status") == "failed":
            why = f": {params['error']}" if params.get("error") else ""
            await self.remark(f"The MCP server {params.get('name')} did not start{why}.")

    async def _notice(self, text: str) -> None:
        await self._recorder.record(AgentEventType.NOTICE, {"text": text})

    async def _update(self, update: items.Update) -> None:
        await self._recorder.record(AgentEventType.SESSION_UPDATE, update)

    HANDLERS: "dict[str, Callable[[Narrator, Params], Awaitable[None]]]" = {
        "item/agentMessage/delta": _message,
        "item/plan/delta": _plan,
        "item/reasoning/summaryTextDelta": _summary,
        "item/reasoning/textDelta": _thought,
        "item/started": _started,
        "item/completed": _ended,
        "item/commandExecution/outputDelta": _printed,
        "item/fileChange/patchUpdated": _patched,
        "item/mcpToolCall/progress": _progress,
        "turn/plan/updated": _steps,
        "thread/tokenUsage/updated": _usage,
        "error": _error,
        "warning": _warning,
        "guardianWarning": _warning,
        "configWarning": _warning,
        "deprecationNotice": _warning,
        "model/rerouted": _rerouted,
        "mcpServer/startupStatus/updated": _server,
    }


_HANDLERS = Narrator.HANDLERS


def _item(params: Params) -> items.Item | None:
    item = as_object(params.get("item"))
    return item if isinstance(item.get("id"), str) and isinstance(item.get("type"), str) else None


class ThreadListener:
    """Listens to one process; its other threads belong to codex's sub-agents."""

    def __init__(self, recorder: Recorder, requests: PermissionRequests) -> None:
        self._recorder = recorder
        self._requests = requests
        self.narrator = Narrator(recorder)
        self._approvals = Approvals(requests, self.narrator.edited_files)
        self.turns = ThreadTurns()
        self.goal = NativeGoal()
        self.thread_id: str | None = None
        self.keep_open = False
        """Whether events after the end of the turn still belong to it: the ends of its commands."""

    async def hear(self, method: str, params: Params) -> None:
        """Handle a notification. The next line is read when this returns."""
        thread_id = params.get("threadId")
        if thread_id is not None and thread_id != self.thread_id:
            return
        match method:
            case "turn/started":
                turn = as_object(params.get("turn"))
                # A review runs within a turn of its own, whose end is not reported.
                if turn.get("rootTurnId") in (None, turn.get("id")):
                    self.turns.started(str(turn.get("id")))
            case "turn/completed":
                await self._completed(as_object(params.get("turn")))
            case "thread/goal/updated":
                self.goal.follow(params.get("goal"))
            case "thread/goal/cleared":
                self.goal.follow(None)
            case _:
                if method == "thread/tokenUsage/updated":
                    usage = as_object(as_object(params.get("tokenUsage")).get("last"))
                    self.turns.used(str(params.get("turnId")), usage)
                await self.narrator.hear(method, params)

    async def handle_request(self, method: str, params: Params) -> Reply | None:
        """Handle a request; return None when it cannot be answered here."""
        return await self._approvals.handle_request(method, params)

    def opened(self, answer: Params) -> None:
        """Note the answer that opened the thread."""
        self.thread_id = str(as_object(answer.get("thread")).get("id"))

    def lost(self) -> None:
        """Note that codex has ended."""
        self.turns.lost()

    async def _completed(self, record: Params) -> None:
        turn = self.turns.completed(record)
        turn.goal = self.goal.report()
        if turn is not self.turns.ours:
            return
        await self._requests.cancel_all()
        if record.get("status") != "interrupted" and not self.keep_open:
            # Here, not when `prompt` wakes up: lines that follow are read before that.
            self._recorder.close_turn()
