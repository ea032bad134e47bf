"""How a user token is obtained (INTERFACE 2; RFC 8628)."""

from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Request
from fastapi.responses import PlainTextResponse, Response
from pydantic import ValidationError

from quarterdeck.service.auth import OwnerDep
from quarterdeck.service.context import Context
from quarterdeck.service.description.failures import fails
from quarterdeck.service.errors import ApiError
from quarterdeck.service.identity.authenticator import AuthenticatorDep
from quarterdeck.service.identity.device import begin, collect, refused, settle
from quarterdeck.service.identity.doors import admits
from quarterdeck.wire import auth as wire
from quarterdeck.wire.base import Success
from quarterdeck.wire.errors import ErrorCode

FORM = "application/x-www-form-urlencoded"
VERIFY = """\
A device shows you a code and waits to be let in.

Where the service runs, as the user who runs it:

    qd auth approve CODE
"""

_SCHEMA: dict[str, Any] = {"schema": wire.TokenRequest.model_json_schema()}
_BODY = {"required": True, "content": {"application/json": _SCHEMA, FORM: _SCHEMA}}

router = APIRouter(prefix="/v1/auth", tags=["auth"])


async def _only_owner(owner: OwnerDep) -> None:
    if not owner:
        raise ApiError(
            ErrorCode.FORBIDDEN,
            "Only the owner may approve, where the service runs: qd auth approve CODE.",
        )


@router.post("/device", responses=fails(429))
async def ask(request: Request, context: Context, owner: OwnerDep) -> wire.DeviceCode:
    """Opens a request for a user token; the installation's owner is let in at once."""
    return await begin(context, str(request.base_url), owner)


@router.post("/token", openapi_extra={"requestBody": _BODY})
async def take_token(
    request: Request, response: Response, context: Context, authenticator: AuthenticatorDep
) -> wire.AccessToken:
    """The token of an approved request. Until then 400, and `error` is the code of RFC 8628."""
    asked = _token_request(request.headers.get("content-type", ""), await request.body())
    response.headers["Cache-Control"] = "no-store"
    return await collect(context, authenticator.tokens, asked.device_code)


@router.get("/verify", response_class=PlainTextResponse)
async def explain() -> str:
    """What a person does with a user code."""
    return VERIFY


@router.post("/approve")
@admits(organization=False)
async def approve(
    body: wire.ApproveDevice, context: Context, _: Annotated[None, Depends(_only_owner)]
) -> Success:
    """Lets a waiting device in as the owner, or turns it away; for the owner's own socket."""
    await settle(context, body.user_code, body.deny)
    return Success()


def _token_request(content_type: str, body: bytes) -> wire.TokenRequest:
    try:
        if content_type.partition(";")[0].strip().lower() == FORM:
            asked = wire.TokenRequest.model_validate(dict(parse_qsl(body.decode())))
        else:
            asked = wire.TokenRequest.model_validate_json(body)
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise refused(wire.INVALID_REQUEST, f"{where}: {first['msg']}") from e
    except ValueError as e:
        raise refused(wire.INVALID_REQUEST, "body: not a form") from e
    if asked.grant_type != wire.DEVICE_GRANT:
        raise refused(wire.UNSUPPORTED_GRANT_TYPE, f"grant_type: must be {wire.DEVICE_GRANT}")
    return asked
