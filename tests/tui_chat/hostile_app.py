"""A cockpit in which everything that comes from elsewhere is hostile. F9: its dialogs."""

import os
import sys
from pathlib import Path
from uuid import UUID

from quarterdeck.client.errors import ClientError
from quarterdeck.tui.host_services import Attachment
from quarterdeck.tui.kit.dialogs import AskField, AskScreen, Choice, ChooseScreen
from quarterdeck.tui.panes.chat import ChatPane
from quarterdeck.tui.panes.chat_dialogs import tell
from quarterdeck.tui.screens.main import MainScreen
from quarterdeck.tui.widgets.completions import Completion, Completions
from quarterdeck.wire.chats import Chat, ChatGoal
from tests.tui_chat.hostile import HOSTILE
from tests.tui_shell.frozen import START, FrozenCockpit, Story, queued, said


class Hostile(FrozenCockpit):
    """Shows everything at once."""

    def stage(self) -> None:
        state = self.add(HOSTILE, processing=True)
        story = Story().user(HOSTILE).think(HOSTILE)
        content = {"type": "content", "content": {"type": "text", "text": HOSTILE}}
        diff = {"type": "diff", "path": HOSTILE, "oldText": HOSTILE, "newText": "x" + HOSTILE}
        story.update("plan", entries=[{"content": HOSTILE, "status": "pending"}])
        story.update(
            "tool_call",
            toolCallId=HOSTILE,
            title=HOSTILE,
            kind=HOSTILE,
            status="failed",
            content=[content, diff],
            locations=[{"path": HOSTILE}],
            rawInput={HOSTILE: HOSTILE},
        )
        story.say(f"{HOSTILE}\n\n```{HOSTILE}\n{HOSTILE}\n```\n\n[{HOSTILE}](http://a/{HOSTILE})")
        story.update("agent_message_chunk", content={"type": "image", "uri": HOSTILE})
        story.add(HOSTILE, sessionUpdate=HOSTILE)
        option = {"optionId": HOSTILE, "name": HOSTILE, "kind": HOSTILE}
        story.add("acp-permission_request", requestId="r", title=HOSTILE, options=[option])
        story.add("turn-result", messageId="m", stopReason="failed", error=HOSTILE)
        said(state, story.events)
        queued(state, HOSTILE)
        chat = state.first_chat
        assert chat is not None
        chat.record.goal = ChatGoal(objective=HOSTILE, status=HOSTILE, token_budget=5)
        chat.record.title = chat.model = HOSTILE
        other = Chat(
            id=UUID(int=9), provider=HOSTILE, created_at=START, updated_at=START, title=HOSTILE
        )
        state.take_chat(other)

    def _start_up(self) -> None:
        self.call_after_refresh(self._show)

    async def _show(self) -> None:
        assert isinstance(self.screen, MainScreen)
        await self.screen.action_show("chat")
        pane = self.screen.query_one(ChatPane)
        pane.messages.draft.attachments = [Attachment(HOSTILE)]
        pane.composer.insert(HOSTILE)
        pane.query_one(Completions).offer([Completion(HOSTILE, HOSTILE)])
        tell(pane, HOSTILE)
        pane.shown.refused(HOSTILE, ClientError(HOSTILE, next_step=HOSTILE))
        pane.query_one("#turn").border_title = "staged"

    def key_f9(self) -> None:
        async def refuse(_: object) -> None:
            raise ClientError(HOSTILE, next_step=HOSTILE)

        self.push_screen(ChooseScreen("choose", [Choice(HOSTILE, HOSTILE)], free=True))
        self.push_screen(AskScreen("ask", [AskField("a", "A", "")], refuse, "does it"))


if __name__ == "__main__":
    os.environ["TEXTUAL_ANIMATIONS"] = "none"
    app = Hostile(Path(sys.argv[1]))
    app.stage()
    app.run()
