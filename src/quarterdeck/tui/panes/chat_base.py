"""What all parts of the chat pane share: which chat it is, and how trouble is told."""

from dataclasses import dataclass, field
from uuid import UUID

from textual.containers import Vertical

from quarterdeck.client.errors import ClientError
from quarterdeck.store.chats import ChatState
from quarterdeck.store.deck import Deck
from quarterdeck.store.queue_places import Place
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.attachments import Attachment
from quarterdeck.tui.panes.chat_transcript import ChatTranscript
from quarterdeck.tui.text import one_line
from quarterdeck.tui.transcript_view.moving import Standing
from quarterdeck.tui.widgets.composer import Composer
from quarterdeck.tui.widgets.queue_view import QueueView


@dataclass
class Aside:
    """What is kept of a chat of this pane while another one is shown."""

    plan_mode: bool = False
    goal_mode: bool = False
    attachments: list[Attachment] = field(default_factory=list[Attachment])
    standing: Standing | None = None


class ChatBase(Vertical):
    """One chat of a replica at a time; `chat_id` is the one that is shown."""

    def __init__(self, deck: Deck, replica_id: UUID, chat_id: UUID) -> None:
        super().__init__()
        self._deck = deck
        self.replica_id = replica_id
        self.chat_id = chat_id
        self.attachments: list[Attachment] = []
        self._problem = ""
        self._places: dict[UUID, Place] = {}
        """Of the messages that were taken back into the composers of the chats."""

    @property
    def chat(self) -> ChatState | None:
        """The chat's state, None once it is gone."""
        return self._deck.chat(self.replica_id, self.chat_id)

    @property
    def replica(self) -> ReplicaState | None:
        """The replica's state, None once it is gone."""
        return self._deck.replicas.get(self.replica_id)

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    @property
    def transcript(self) -> ChatTranscript:
        return self.query_one(ChatTranscript)

    @property
    def queue(self) -> QueueView:
        return self.query_one(QueueView)

    def show_state(self) -> None:
        """Shows the chat as the store has it."""
        raise NotImplementedError

    def trouble(self, text: str) -> None:
        """Says in the turn's line what went wrong, until the person does the next thing."""
        self._problem = one_line(text)
        self.show_state()

    def refused(self, what: str, error: ClientError) -> None:
        """The service did not do what was asked."""
        self.trouble(f"{what}: {error} {error.next_step}")

    def tell(self, text: str) -> None:
        """A notice that something was done."""
        self.app.notify(one_line(text), markup=False)
