"""An agent that does what the message says; run as a program, an engine that has it.

say TEXT      one chunk a word            ask        asks for permission, then says the answer
wait          until it is interrupted     die        the process ends in the turn
deaf          never ends, whatever        huge N     one chunk of N characters
model         says its model              refuse     is not asked: it has no such model
many N        N chunks                    unpaired   half a surrogate pair
approved   carries out its plan in plan mode

In goal mode: `goal steps N` is complete in the N-th turn, `goal stuck` blocked, `goal idle` does
nothing, `goal endless` works for ever, `goal limited` says in its own way that it may not go on,
`goal wait` works in its first turn and waits in the second.
"""

import asyncio
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from quarterdeck.agents.port import (
    AgentDiedError,
    AgentError,
    AgentSink,
    AgentStatus,
    AgentUnavailableError,
    GoalWish,
    Prompt,
    SessionSpec,
    StopReason,
    TurnOutcome,
)
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.chats import GoalStatus
from quarterdeck.wire.history import AgentEvent


class FakeSession:
    def __init__(self, id: str, sink: AgentSink) -> None:
        self.id = id
        self._sink = sink
        self._interrupted = asyncio.Event()
        self._answer: asyncio.Future[str] | None = None
        self.closed = False
        self.turns = 0
        self.prompts: list[Prompt] = []

    async def prompt(self, prompt: Prompt) -> TurnOutcome:
        self._interrupted.clear()
        self.prompts.append(prompt)
        verb, _, rest = prompt.text.partition(" ")
        match verb:
            case "wait":
                await self._say("waiting")
                await self._interrupted.wait()
                return TurnOutcome(StopReason.CANCELLED)
            case "deaf":
                await self._say("not listening")
                await asyncio.Event().wait()
            case "die":
                await self._say("about to die")
                raise AgentDiedError("The agent's process ended with status 9.")
            case "goal" | "Go":
                return await self._pursue(prompt.text)
            case "refuse":
                return TurnOutcome(StopReason.FAILED, f"no model {prompt.model}", asked=False)
            case "approved":
                await self._say("the plan, and that it was carried out")
                return TurnOutcome(StopReason.END_TURN, planned=False)
            case "model":
                await self._say(str(prompt.model))
            case "/slash" | "Instructions":
                await self._say("heard")
            case "ask":
                await self._say("was told " + await self._ask())
            case _:
                for text in self._texts(verb, rest):
                    await self._say(text)
                    await asyncio.sleep(0.001 if verb == "stamp" else 0)
        return TurnOutcome(StopReason.END_TURN, usage={"totalTokens": 3})

    async def _pursue(self, text: str) -> TurnOutcome:
        found = re.search(r"^goal (\w+) ?(\d*)", text, re.MULTILINE)
        assert found is not None
        self.turns += 1
        if found[1] != "idle":
            await self._tell(
                "acp-session_update", {"sessionUpdate": "tool_call", "toolCallId": "1"}
            )
        match found[1]:
            case "steps" if self.turns >= int(found[2]):
                await self._say("Done.\nGOAL: com")
                await self._say("plete\n")
            case "stuck":
                await self._say("I need a key.\n**GOAL: blocked**")
            case "limited":
                return TurnOutcome(
                    StopReason.FAILED, "no more", goal_status=GoalStatus.USAGE_LIMITED
                )
            case "wait" if self.turns > 1:
                await self._interrupted.wait()
                return TurnOutcome(StopReason.CANCELLED)
            case "endless":
                await asyncio.sleep(0.01)
            case _:
                await self._say("GOAL: complete is what I shall say when it is so.")
                await self._say("\nI go on.")
        return TurnOutcome(StopReason.END_TURN, usage={"totalTokens": 10})

    def _texts(self, verb: str, rest: str) -> Iterator[str]:
        match verb:
            case "say":
                yield from rest.split()
            case "many":
                yield from map(str, range(int(rest)))
            case "stamp":
                yield from (str(time.time()) for _ in range(int(rest)))
            case "huge":
                yield "x" * int(rest)
            case "unpaired":
                yield "\ud800 half"
            case "session":
                yield self.id
            case _:
                raise ValueError(verb)

    async def interrupt(self) -> None:
        self._interrupted.set()

    async def respond(self, request_id: str, option_id: str | None, text: str | None) -> bool:
        if request_id != "q1" or self._answer is None or self._answer.done():
            return False
        if option_id == "wrong":
            raise AgentError("There is no such option.")
        answer = option_id or text or ""
        await self._tell("acp-permission_outcome", {"requestId": "q1", "outcome": answer})
        self._answer.set_result(answer)
        return True

    async def close(self) -> None:
        self.closed = True

    async def _ask(self) -> str:
        self._answer = asyncio.get_running_loop().create_future()
        await self._tell("acp-permission_request", {"requestId": "q1", "options": []})
        return await self._answer

    async def _say(self, text: str) -> None:
        content = {"type": "text", "text": text}
        await self._tell(
            "acp-session_update", {"sessionUpdate": "agent_message_chunk", "content": content}
        )

    async def _tell(self, type: str, payload: dict[str, Any]) -> None:
        await self._sink(AgentEvent(timestamp=utc_now(), type=type, payload=payload))


class NativeSession(FakeSession):
    """Has goals of its own, and takes changes of them while `taking` is set."""

    def __init__(self, id: str, sink: AgentSink) -> None:
        super().__init__(id, sink)
        self.wishes: list[GoalWish] = []
        self.taking = asyncio.Event()
        self.taking.set()

    async def change_goal(self, wish: GoalWish) -> None:
        self.wishes.append(wish)
        await self.taking.wait()


class SteerableSession(FakeSession):
    """Takes messages in a turn: `refuse` not, at `die` it dies, at `hold` it waits for `released`."""

    def __init__(self, id: str, sink: AgentSink) -> None:
        super().__init__(id, sink)
        self.steered: list[Prompt] = []
        self.held, self.released = asyncio.Event(), asyncio.Event()

    async def steer(self, prompt: Prompt, taken: Callable[[], None]) -> None:
        match prompt.text:
            case "refuse":
                raise AgentError("It did not take the message.")
            case "die":
                self._interrupted.set()
                raise AgentDiedError("The agent's process ended with status 9.")
            case "break":
                raise ValueError("a fault of the driver")
            case "hold":
                self.held.set()
                await self.released.wait()
            case _:
                pass
        taken()
        self.steered.append(prompt)
        await self._say(f"steered by {prompt.text}")


class FakeDriver:
    def __init__(self, kind: type[FakeSession] = FakeSession) -> None:
        self.opened: list[SessionSpec] = []
        self.sessions: list[Any] = []
        self._kind = kind

    async def open(self, spec: SessionSpec, sink: AgentSink) -> FakeSession:
        self.opened.append(spec)
        session = self._kind(spec.session_id or f"session-{len(self.opened)}", sink)
        self.sessions.append(session)
        return session


class FakeCatalog:
    def __init__(self) -> None:
        self.fake = FakeDriver()
        self.native = FakeDriver(NativeSession)
        self.steered = FakeDriver(SteerableSession)

    def __call__(self) -> "FakeCatalog":
        return self

    def statuses(self) -> list[AgentStatus]:
        return [AgentStatus("fake", "Fake", available=True), AgentStatus("plain", "Plain", True)]

    def supports_goal(self, agent_id: str) -> bool:
        return agent_id in ("fake", "native")

    def native_goals(self, agent_id: str) -> bool:
        return agent_id == "native"

    def driver(self, agent_id: str) -> FakeDriver:
        if agent_id == "native":
            return self.native
        if agent_id == "steered":
            return self.steered
        if agent_id not in ("fake", "plain"):
            raise AgentUnavailableError(f"There is no agent {agent_id!r}.")
        return self.fake


if __name__ == "__main__":
    from quarterdeck.engine.daemon import run

    sys.exit(run(Path(sys.argv[1]), FakeCatalog()))
