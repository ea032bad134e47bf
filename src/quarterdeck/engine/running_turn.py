"""The running turn of a chat."""

import asyncio
from collections.abc import Sequence

from quarterdeck.agents.port import TurnOutcome
from quarterdeck.engine import turn_events
from quarterdeck.engine.chat_state import EngineChat, LastMessage
from quarterdeck.engine.journal import JournalDraft
from quarterdeck.wire.engine import DeliverMessage


class RunningTurn:
    """One turn, until its end is recorded."""

    def __init__(self, message: DeliverMessage) -> None:
        self.message = message
        self.own = message.origin is not None
        self.last_message = LastMessage(message.text)
        self.prompt = message.text
        self.notices: list[str] = []
        self.prompting = False
        self.interrupting = False
        self.lost = False
        self.task: asyncio.Task[TurnOutcome] | None = None
        self.ended = asyncio.Event()
        self.outcome: TurnOutcome | None = None
        self.questions: set[str] = set()
        self.plan_waits = False
        """Whether a plan of the previous turn waits for approval during it."""
        self.steering = asyncio.Lock()
        """Held while a message is put into the turn; its end is not recorded before."""
        self._taken: DeliverMessage | None = None
        self.gives_way = False
        """Whether it is interrupted for the next message, so that a goal stays active."""

    def take(self, message: DeliverMessage) -> None:
        """Note that the agent has a message that was put into the turn; `shown` has its entries."""
        self._taken = message

    def shown(self, chat: EngineChat) -> Sequence[JournalDraft]:
        """Return the entries of a message that was put into the turn, once."""
        message, self._taken = self._taken, None
        if message is None:
            return ()
        chat.steering = None
        self.last_message.restart(message.text)
        return turn_events.steered(chat, self.message, message)
