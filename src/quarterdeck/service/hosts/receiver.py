"""Accepts a host's webhook: the receipt and the started runs are stored in one transaction.

So an answered webhook is done, an unanswered one can be sent again, and nothing is done twice.
"""

import hashlib
import logging
from collections.abc import Callable

from pydantic import ValidationError
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.automations.dispatch import read_payload, take_event
from quarterdeck.service.automations.prompts import TriggerEvent
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.formats import moment_text
from quarterdeck.service.hosts.api import HostApis
from quarterdeck.service.hosts.events import HostEvent
from quarterdeck.service.hosts.host_a import read_host_a
from quarterdeck.service.hosts.host_b import read_host_b
from quarterdeck.service.hosts.settings import HOST_A, HOST_B
from quarterdeck.service.hosts.webhooks import matches
from quarterdeck.service.system_rows import add_receipt
from quarterdeck.wire.errors import ErrorCode

log = logging.getLogger(__name__)

_READERS: dict[str, Callable[[str, object], HostEvent | None]] = {
    HOST_A: read_host_a,
    HOST_B: read_host_b,
}


async def take_host_webhook(
    context: ServiceContext,
    apis: HostApis,
    host: str,
    kind: str,
    body: bytes,
    delivery_id: str | None = None,
) -> None:
    """Start the runs of an authentic webhook. One that is not understood starts none.

    `delivery_id` is the sender's own id of it, if the signature covers that: a repeated id means
    the same webhook, whatever its body. Without an id the body is compared.

    Raises:
        ApiError: INVALID_REQUEST when it is not JSON, CONFLICT when it was accepted before.
    """
    try:
        payload = read_payload(body)
    except ValueError as e:
        raise ApiError(ErrorCode.INVALID_REQUEST, "A webhook's body is JSON.", str(e)) from e
    changed = _repository_of(payload)
    if changed is not None:  # also by events that no automation uses, such as the end of a check
        apis.expire(host, changed)
    event = _understood(host, kind, payload)
    digest, now = _digest(host, body, delivery_id), context.clock()

    def run(connection: Connection) -> int:
        add_receipt(connection, digest, moment_text(now))
        matched = [] if event is None else matches(connection, host, event)
        for match in matched:
            assert event is not None  # something matched it
            about = event.pull_request
            occasion = TriggerEvent(
                host,
                event.name,
                moment_text(now),
                payload,
                about,
                match.joins,
                match.repository_ids,
                event.trusted,
                event.author,
            )
            group = f"{host} {event.repository}#{about.number}"
            take_event(connection, match.automation, occasion, now, group, is_push=event.is_push)
        return len(matched)

    try:
        count = await context.database.write(run)
    except IntegrityError as e:
        raise ApiError(ErrorCode.CONFLICT, "This webhook was taken before.") from e
    if event is not None:
        where = f"{event.repository}#{event.pull_request.number}"
        log.info("%s of %s at %s matched %d automations", event.name, where, host, count)


def _digest(host: str, body: bytes, delivery_id: str | None) -> str:
    key = b"\n" + body if delivery_id is None else b" id " + delivery_id.encode("latin-1")
    return hashlib.sha256(host.encode() + key).hexdigest()


def _repository_of(payload: object) -> str | None:
    """Return the full name of the repository that a webhook of either host is about."""
    match payload:
        case {"repository": {"full_name": str(name)}}:
            return name
        case {"project": {"path_with_namespace": str(name)}}:
            return name
        case _:
            return None


def _understood(host: str, kind: str, payload: object) -> HostEvent | None:
    try:
        return _READERS[host](kind, payload)
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        reason = f"{where}: {first['msg']}"
        log.warning("A webhook %.60r of %s is not understood: %s", kind, host, reason)
        return None
