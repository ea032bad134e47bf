"""Notifications of events.

Notifies people of ended turns, waiting questions and failed replicas.

At most once: a notification is not stored over a crash. Nothing else waits for it, and of a failure
only the service's name is logged, never the URL.

Sends to notification targets of any service. The library is imported at its first use: that takes
as long as the rest of the service.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from quarterdeck.service.chats.rows import find_chat
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.faults import log_storage_error
from quarterdeck.service.db.tables import messages
from quarterdeck.service.errors import DatabaseClosedError, StorageError
from quarterdeck.service.event_rows import StoredEvent
from quarterdeck.service.first_start import reaches_private
from quarterdeck.service.notifications.confinement import confined
from quarterdeck.service.notifications.rows import NotificationTarget, targets_of
from quarterdeck.service.replicas.rows import WorkspaceRow, find_workspace
from quarterdeck.wire.events import EventType
from quarterdeck.wire.replicas import WorkspaceStatus


@dataclass(frozen=True)
class Notice:
    """A notification."""

    title: str
    text: str


def service_of(url: str) -> str:
    """Return the part of a target URL that names the service, without its secrets."""
    return url.partition("://")[0].lower()[:40]


SERVICES = (
    "apprise",
    "apprises",
    "bark",
    "barks",
    "bluesky",
    "bsky",
    "chanify",
    "dingtalk",
    "discord",
    "feishu",
    "flock",
    "gchat",
    "gotify",
    "gotifys",
    "hassio",
    "hassios",
    "ifttt",
    "join",
    "json",
    "jsons",
    "lark",
    "line",
    "mailgun",
    "mailto",
    "mailtos",
    "mastodon",
    "mastodons",
    "matrix",
    "matrixs",
    "mmost",
    "mmosts",
    "nctalk",
    "nctalks",
    "notica",
    "noticas",
    "ntfy",
    "ntfys",
    "o365",
    "onesignal",
    "opsgenie",
    "pagerduty",
    "pbul",
    "postmark",
    "pover",
    "prowl",
    "push",
    "pushdeer",
    "pushdeers",
    "pushy",
    "rocket",
    "rockets",
    "ryver",
    "schan",
    "sendgrid",
    "signal",
    "signals",
    "simplepush",
    "slack",
    "spush",
    "synology",
    "synologys",
    "tgram",
    "toot",
    "toots",
    "twilio",
    "twist",
    "victorops",
    "webex",
    "wecombot",
    "workflow",
    "workflows",
    "wxteams",
    "xml",
    "xmls",
    "zulip",
)
"""The services that are allowed: all send over the network, as a user of the service could."""


def is_known(url: str) -> bool:
    """Return whether a target URL is of an allowed service."""
    return "://" in url and service_of(url) in SERVICES


def is_target(url: str, private: bool) -> bool:
    """Return whether a target URL is valid. Blocks: call it in a thread."""
    return _opened(url, private) is not None


def send(url: str, notice: Notice, private: bool) -> bool:
    """Send; False when the target did not accept it. Blocks: call it in a thread.

    `private` is whether it may have a private address.
    """
    target = _opened(url, private)
    if target is None:
        return False
    with confined(private, SECONDS):
        return bool(target.notify(body=notice.text, title=notice.title))


def _opened(url: str, private: bool) -> Any | None:
    import apprise

    # Both log target URLs, with the secrets in them.
    logging.getLogger("apprise").disabled = True
    logging.getLogger("urllib3").setLevel(logging.INFO)
    opened: Any = apprise.Apprise()
    if not is_known(url):
        return None
    with confined(private, SECONDS):
        return opened if opened.add(url) and len(opened) == 1 else None


TEXT_LENGTH = 500


def notice_for(
    connection: Connection, workspace_id: str, type: str, payload: Mapping[str, Any]
) -> tuple[Notice, list[NotificationTarget]] | None:
    """Return the notification and its targets; None when there is none."""
    row = find_workspace(connection, workspace_id)
    if row is None or row.warm_state is not None:
        return None
    targets = targets_of(connection, row.organization_id, _people(connection, row, payload))
    notice = _notice(connection, row, type, payload) if targets else None
    return None if notice is None else (notice, targets)


def _people(
    connection: Connection, row: WorkspaceRow, payload: Mapping[str, Any]
) -> set[str] | None:
    """Return the replica's user and the message's sender; everybody when it has neither."""
    sender = select(messages.c.sender_user_id).where(
        messages.c.id == str(payload.get("messageId")), messages.c.workspace_id == row.id
    )
    user_ids = {row.user_id, connection.execute(sender).scalar()} - {None}
    return {user_id for user_id in user_ids if user_id is not None} or None


def _notice(
    connection: Connection, row: WorkspaceRow, type: str, payload: Mapping[str, Any]
) -> Notice | None:
    match type:
        case EventType.CHAT_TURN_COMPLETED if payload.get("isComplete"):
            return Notice(f"{row.name}: done", _last_message(connection, row, payload))
        case EventType.CHAT_TURN_COMPLETED:
            return Notice(f"{row.name}: stopped", "The turn was interrupted, or it failed.")
        case EventType.CHAT_UPDATED:
            return Notice(f"{row.name}: waits for you", "The agent asks something.")
        case _ if payload.get("workspaceStatus") == WorkspaceStatus.ERROR:
            return Notice(f"{row.name}: failed", _short(row.error or "The replica failed."))
        case _:
            return None


def _last_message(connection: Connection, row: WorkspaceRow, payload: Mapping[str, Any]) -> str:
    chat = find_chat(connection, row.id, str(payload.get("chatId")))
    return _short((chat and chat.last_message_text) or "The turn is over.")


def _short(text: str) -> str:
    return text if len(text) <= TEXT_LENGTH else f"{text[: TEXT_LENGTH - 1]}…"


SECONDS = 20.0
"""A notification that is not accepted within this has failed."""
THREADS = 4
WAITING = 1000
"""Maximum number of waiting events; further ones are dropped."""

log = logging.getLogger(__name__)

_Event = tuple[str, str, dict[str, Any]]


class Notifier:
    """The one owner of notifications."""

    def __init__(
        self, context: ServiceContext, send: Callable[[str, Notice, bool], bool] = send
    ) -> None:
        self._context = context
        self._send = send
        self._events: asyncio.Queue[_Event] = asyncio.Queue(WAITING)
        self._asking: set[tuple[str, str]] = set()
        """Replica and chat: an engine may name any chat."""
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="notifications")
        self._sending: set[asyncio.Task[None]] = set()

    def hear(self, workspace_id: str, stored: Sequence[StoredEvent]) -> None:
        """Select events that may notify; called for every event of the log."""
        for event in stored:
            if self._matters(workspace_id, event):
                if self._events.full():
                    log.warning("A notification is dropped: too many wait")
                    return
                payload = json.loads(event.payload_json)
                self._events.put_nowait((workspace_id, event.type, payload))

    async def run(self) -> None:
        """Send notifications forever."""
        try:
            while True:
                await self._notify(*await self._events.get())
        except DatabaseClosedError:
            return
        finally:
            for task in self._sending:
                task.cancel()
            await asyncio.gather(*self._sending, return_exceptions=True)
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def try_target(self, target: NotificationTarget, notice: Notice) -> bool:
        """Send one notification now; return whether it was accepted."""
        try:
            context = self._context
            url = context.vault.unseal(target.id, target.url_sealed)
            private = await reaches_private(
                context.database, context.outgoing_private, target.user_id
            )
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(SECONDS):
                accepted = await loop.run_in_executor(
                    self._threads, self._send, url, notice, private
                )
        except TimeoutError:
            log.warning("A notification was not accepted in time")
            return False
        except StorageError as e:
            log.warning("A notification cannot be sent: %s", e)
            return False
        if not accepted:
            log.warning("A notification to %s was not accepted", service_of(url))
        return accepted

    def _matters(self, workspace_id: str, event: StoredEvent) -> bool:
        match event.type:
            case EventType.CHAT_TURN_COMPLETED:
                return True
            case EventType.ENGINE_STATUS_CHANGED:
                return '"workspaceStatus":"error"' in event.payload_json
            case EventType.CHAT_UPDATED:
                return self._starts_waiting(workspace_id, event)
            case _:
                return False

    def _starts_waiting(self, workspace_id: str, event: StoredEvent) -> bool:
        """Return whether a chat started to wait for an answer; later changes of it do not count."""
        if '"awaitingInput":true' not in event.payload_json and not self._asking:
            return False
        chat = json.loads(event.payload_json).get("chat", {})
        waits, place = bool(chat.get("awaitingInput")), (workspace_id, str(chat.get("id")))
        new = waits and place not in self._asking
        (self._asking.add if waits else self._asking.discard)(place)
        return new

    async def _notify(self, workspace_id: str, type: str, payload: dict[str, Any]) -> None:
        try:
            event_notice = await self._context.database.read(
                lambda c: notice_for(c, workspace_id, type, payload)
            )
        except DatabaseClosedError:
            raise
        except StorageError as e:
            log_storage_error(log, "A notification could not be composed", e)
            return
        if event_notice is None:
            return
        notice, targets = event_notice
        for target in targets:
            self._begin(target, notice)

    def _begin(self, target: NotificationTarget, notice: Notice) -> None:
        async def send() -> None:
            await self.try_target(target, notice)

        task = asyncio.create_task(send(), name="notification")
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
