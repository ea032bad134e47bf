"""Who asks, and where they belong (INTERFACE 9)."""

from fastapi import APIRouter
from sqlalchemy import Connection

from quarterdeck.service.auth import CallerDep, CallerKind, UserDep
from quarterdeck.service.context import Context
from quarterdeck.service.errors import ApiError
from quarterdeck.service.identity.doors import admits
from quarterdeck.service.records.users import find_user, organization_name, organizations_of
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.users import Organization, OrganizationList, UserProfile

router = APIRouter(tags=["users"])


@router.get("/v1/user/profile")
@admits(organization=False)
async def read_profile(context: Context, caller: UserDep) -> UserProfile:
    """The caller's user."""
    user_id = caller.user_id or ""
    user = await context.database.read(lambda c: find_user(c, user_id))
    if user is None:
        raise ApiError(ErrorCode.NOT_FOUND, "The user of this key is gone.")
    return UserProfile(user=user)


@router.get("/v1/organizations")
@admits(organization=False)
async def list_organizations(context: Context, caller: CallerDep) -> OrganizationList:
    """The organizations of a user token's user; of a key, the one that it fixes."""

    def run(connection: Connection) -> list[Organization]:
        if caller.kind is CallerKind.USER_TOKEN:
            return organizations_of(connection, caller.user_id or "")
        name = organization_name(connection, caller.organization_id)
        found = {"id": caller.organization_id, "name": name, "role": caller.role}
        return [Organization.model_validate(found)]

    return OrganizationList(organizations=await context.database.read(run))
