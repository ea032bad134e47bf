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
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cachetools import LRUCache
from sqlalchemy import Connection, select

from quarterdeck.local.shared_threads import SharedThreads
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


def send(url: str, notice: Notice, private: bool, proxy: bool = False) -> bool:
    """Send; False when the target did not accept it. Blocks: call it in a thread.

    `private` is whether it may have a private address, `proxy` whether it is reached through the
    proxies of the environment.
    """
    target = _opened(url, private)
    if target is None:
        return False
    body, title = _without_markup(notice.text), _without_markup(notice.title)
    with confined(private, SECONDS, proxy):
        return bool(target.notify(body=body, title=title, body_format="text"))


def _without_markup(text: str) -> str:
    """Return a text without tags, links with another text, images and mentions: agents write it.

    Targets that read HTML or markdown get it escaped by the library, except in titles, and except those
    that take even plain text for markdown.
    """
    return _MARKUP.sub("\\1\u200b", text)


_MARKUP = re.compile(r"(<(?=[A-Za-z/!@#])|(?<!\w)@(?=\w)|\](?=[(\[:]))")
"""What begins a tag or a mention, or ends the text of a link; a blank without width after it ends that."""


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
) -> tuple[str, Notice, list[NotificationTarget]] | None:
    """Return the organization, the notification and its targets; None when there is none."""
    row = find_workspace(connection, workspace_id)
    if row is None or row.warm_state is not None:
        return None
    targets = targets_of(connection, row.organization_id, _people(connection, row, payload))
    notice = _notice(connection, row, type, payload) if targets else None
    return None if notice is None else (row.organization_id, notice, targets)


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
        case _ if row.status == WorkspaceStatus.ERROR:  # an engine may report anything
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
THREADS = 16
SHARE = 4
"""How many notifications of one organization are sent at once."""
PAUSE = 2.0
"""Seconds between two notifications of a replica. Of the events in between, the newest of each kind is sent."""
WAITING = 1000
"""Maximum number of replicas whose notifications wait; those of further ones are dropped."""
ASKING, REPLICAS = 1000, 10_000
"""How many chats of a replica, and how many replicas, are known to wait for an answer."""

log = logging.getLogger(__name__)


class Notifier:
    """The one owner of notifications."""

    def __init__(
        self, context: ServiceContext, send: Callable[[str, Notice, bool, bool], bool] = send
    ) -> None:
        self._context = context
        self._send = send
        self._waiting: dict[str, dict[str, dict[str, Any]]] = {}
        """The newest payloads by replica and type of event; a replica stays while its task runs."""
        self._new: asyncio.Queue[str] = asyncio.Queue()
        """Replicas whose task is to be started."""
        self._asking: LRUCache[str, set[str]] = LRUCache(REPLICAS)
        """Waiting chats by replica: an engine may name any chat."""
        self._threads = SharedThreads("notifications", THREADS, SHARE)

    def hear(self, workspace_id: str, stored: Sequence[StoredEvent]) -> None:
        """Select events that may notify; called for every event of the log."""
        for event in stored:
            if self._matters(workspace_id, event):
                if workspace_id not in self._waiting:
                    if len(self._waiting) >= WAITING:
                        log.warning("A notification is dropped: too many wait")
                        return
                    self._new.put_nowait(workspace_id)
                events = self._waiting.setdefault(workspace_id, {})
                events[event.type] = json.loads(event.payload_json)

    async def run(self) -> None:
        """Send notifications forever."""
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    workspace_id = await self._new.get()
                    tasks.create_task(self._serve(workspace_id), name="notifications")
        except* DatabaseClosedError:
            log.debug("The database is closed: notifications end.")

    async def _serve(self, workspace_id: str) -> None:
        """Send the notifications of a replica until none are left."""
        while events := self._waiting[workspace_id]:
            self._waiting[workspace_id] = {}
            for type, payload in events.items():
                await self._notify(workspace_id, type, payload)
            await asyncio.sleep(PAUSE)
        del self._waiting[workspace_id]

    async def try_target(
        self, organization_id: str, target: NotificationTarget, notice: Notice
    ) -> bool:
        """Send one notification to a person of an organization; return whether it was accepted."""
        try:
            context = self._context
            url = context.vault.unseal(target.id, target.url_sealed)
            private = await reaches_private(
                context.database, context.outgoing_private, target.user_id
            )
            accepted = await self._threads.run(
                organization_id,
                *(self._send, url, notice, private, context.outgoing_proxy),
                seconds=SECONDS,
            )
        except TimeoutError:
            log.warning("A notification was not accepted in time")
            return False
        except StorageError as e:
            log.warning("A notification cannot be sent: %s", e)
            return False
        except Exception as e:  # noqa: BLE001 - the library has a hundred services, made by many people
            # Without its text, which may contain the URL.
            log.warning("A notification failed: %s", type(e).__name__)
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
            case EventType.CHAT_DELETED:
                self._end_waiting(workspace_id, json.loads(event.payload_json).get("chatId"))
                return False
            case _:
                return False

    def _starts_waiting(self, workspace_id: str, event: StoredEvent) -> bool:
        """Return whether a chat started to wait for an answer; later changes of it do not count."""
        asking = self._asking.get(workspace_id, set[str]())
        if '"awaitingInput":true' not in event.payload_json and not asking:
            return False
        chat = json.loads(event.payload_json).get("chat", {})
        id = str(chat.get("id"))
        if not chat.get("awaitingInput"):
            self._end_waiting(workspace_id, id)
            return False
        is_new = id not in asking
        if is_new and len(asking) < ASKING:
            self._asking[workspace_id] = asking | {id}
        return is_new

    def _end_waiting(self, workspace_id: str, chat_id: str) -> None:
        if asking := self._asking.pop(workspace_id, set[str]()) - {chat_id}:
            self._asking[workspace_id] = asking

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
        if event_notice is not None:
            organization_id, notice, targets = event_notice
            sent = (self.try_target(organization_id, target, notice) for target in targets)
            await asyncio.gather(*sent)
