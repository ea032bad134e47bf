"""A question whose answer nobody may see says so, on whichever page it was asked."""

from datetime import UTC, datetime

from quarterdeck.transcript.fold import Transcript
from quarterdeck.wire.history import AgentEvent

AT = datetime(2026, 11, 20, tzinfo=UTC)


def event(type_: str, **payload: object) -> AgentEvent:
    return AgentEvent(timestamp=AT, type=type_, payload=payload)


ASKED = event(
    "acp-permission_request", requestId="r", title="Password?", acceptsText=True, secret=True
)
NOTED = event("acp-session_update", sessionUpdate="agent_message_chunk", content={"text": "…"})


def test_a_secret_question_is_told_apart() -> None:
    (question,) = Transcript([ASKED]).open_questions
    assert question.secret and question.takes_text
    (plain,) = Transcript([event("acp-permission_request", requestId="r")]).open_questions
    assert not plain.secret


def test_a_secret_question_of_an_older_page_is_one_too() -> None:
    transcript = Transcript([NOTED])
    transcript.prepend([ASKED])
    (question,) = transcript.open_questions
    assert question.secret
