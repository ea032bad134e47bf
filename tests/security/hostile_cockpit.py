"""A cockpit whose replicas, chats, files and errors consist of every payload."""

import os
import sys
from pathlib import Path
from typing import Any

from quarterdeck.wire.chats import ChatGoal
from quarterdeck.wire.replicas import ReplicaEnvironment
from tests.security.payloads import payloads
from tests.tui_shell.frozen import START, FrozenCockpit, Story, queued, said

TEXTS = payloads()
LAST = "all of them"


class HostileCockpit(FrozenCockpit):
    """F9 shows the payloads as notices."""

    def stage(self) -> None:
        for number, text in enumerate(TEXTS):
            state = self.add(
                text,
                text if number % 3 == 0 else "active",
                source=text,
                size=text,
                model=text,
                coding_agent=text,
                error=text,
                repository_statuses=[
                    {
                        "repository": text,
                        "branch": text,
                        "git_diff": {"added": 1},
                        "pr_urls": [text],
                    }
                ],
                pull_requests=[{"repository": text, "number": 1, "url": text}],
                unreachable_since=START,
            )
            state.record.environment = ReplicaEnvironment(isolation=text, size_limited=False)
            chat = state.first_chat
            assert chat is not None
            chat.record.title = chat.model = chat.record.provider = text
            chat.record.last_message_text = text
            chat.record.goal = ChatGoal(objective=text, status=text)
        first = next(iter(self.app_state.replicas.values()))
        said(first, self._story().events)
        queued(first, *TEXTS[:20])

    def _story(self) -> Story:
        story = Story()
        for text in TEXTS:
            content: list[dict[str, Any]] = [
                {"type": "content", "content": {"type": "text", "text": text}},
                {"type": "diff", "path": text, "oldText": text, "newText": f"x{text}"},
            ]
            story.update(
                "tool_call",
                toolCallId=text,
                title=text,
                kind="edit",
                status="failed",
                content=content,
            )
        for text in TEXTS:
            story.user(text).say(f"{text}\n\n```{text}\n{text}\n```\n[{text}](http://a/{text})\n\n")
        return story.add("turn-result", messageId="m", stopReason="failed", error=LAST)

    def key_f9(self) -> None:
        for text in TEXTS[:40]:
            self.notify(text, title=text, markup=False)


if __name__ == "__main__":
    os.environ["TEXTUAL_ANIMATIONS"] = "none"
    app = HostileCockpit(Path(sys.argv[1]))
    app.stage()
    app.run()
