"""Variables with which programs inside a workspace find its service."""

URL_VARIABLE = "QD_URL"
WORKSPACE_VARIABLE = "QD_WORKSPACE_ID"
SECRET_VARIABLE = "QD_ENGINE_SECRET"
"""Authenticates calls from within this workspace only."""
CA_VARIABLE = "QD_CA"
"""File with the certificate that the service's is checked against; not set where that is not pinned."""
HOME_VARIABLE = "QD_HOME_URL"
"""The address to which the engine of a container dials (`wire.dial_home`)."""
CHAT_VARIABLE = "QD_CHAT_ID"
"""The chat of the agent that a program belongs to; not set in terminals and hooks."""

CO_AUTHOR_VARIABLE = "QD_CO_AUTHOR"
"""`NAME <ADDRESS>` that commits of an agent name as co-author; not set in terminals."""

PORT_VARIABLE = "QD_PORT"
"""The first port of a workspace's own block. An environment may set another."""
FIRST_PORT, PORTS_EACH, PORT_BLOCKS = 20_000, 10, 1_276
"""Blocks of ports, one for each workspace of an installation. Higher ports are the system's ephemeral ports."""

WAY_OUT = (URL_VARIABLE, WORKSPACE_VARIABLE, SECRET_VARIABLE)
"""What every program needs that calls the service."""
