"""Opens the check of a run that is about to start, and makes the ticket for its prompt."""

import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.automations.prompts import Occasion, Ticket
from quarterdeck.service.automations.runs import tell_run
from quarterdeck.service.checks.places import place_of, wants_check
from quarterdeck.service.checks.states import give_out, open_check
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.identity.keys import hash_of
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.checks import find_check
from quarterdeck.service.records.executions import find_execution
from quarterdeck.service.records.repositories import list_repositories
from quarterdeck.wire.automations import ExecutionStatus

TOKEN_BYTES = 32


@dataclass(frozen=True)
class Opened:
    """A check with a ticket that opens it once `store` was called in the start's own write."""

    check_id: str
    ticket: Ticket

    def store(self, connection: Connection) -> None:
        """The prompt with the ticket is being stored: from now on its token counts, no other."""
        give_out(connection, self.check_id, self.ticket.id, hash_of(self.ticket.token))


async def check_for(
    context: ServiceContext, execution: RowMapping, automation: RowMapping, occasion: Occasion
) -> Opened | None:
    """Opens the check of a run, or finds it as an earlier try left it; None when it has none.

    The host is given a moment to make a record of its own, whose id the agent then gets. One that
    does not answer holds nothing up: the check keeps an id of ours, and the host is told later.
    """
    if not wants_check(automation, occasion):
        return None
    check_id = await context.database.write(
        lambda c: _open(c, context, execution["id"], automation, occasion)
    )
    if check_id is None:
        return None
    if context.checks is not None:
        await context.checks.tell(check_id)
    row = await context.database.read(lambda c: find_check(c, check_id))
    if row is None:
        return None
    ticket = Ticket(
        row["host_ref"] or row["check_run_id"], secrets.token_urlsafe(TOKEN_BYTES), row["name"]
    )
    return Opened(check_id, ticket)


def _open(
    connection: Connection,
    context: ServiceContext,
    execution_id: str,
    automation: RowMapping,
    occasion: Occasion,
) -> str | None:
    execution = find_execution(connection, execution_id)
    if execution is None or execution["status"] != ExecutionStatus.PENDING:
        return None  # somebody else has started it, or it is gone
    repositories = list_repositories(connection, automation["organization_id"])
    place = place_of(context.hosts, occasion, repositories)
    now = moment_text(context.clock())
    check_id, superseded = open_check(connection, execution, automation, place, now)
    for one in (*superseded, execution_id):
        tell_run(connection, one, now)
    return check_id
