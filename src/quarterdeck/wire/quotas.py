"""How many records may be stored. More are refused; what an earlier version stored stays usable."""

OWNED_MOST = 1_000
"""Automations, environments, API keys, keys of providers and waiting runs of an owner: of a user in an
organization, or of the organization itself. Variables, skills and MCP servers of one environment, too."""

REPLICAS_MOST = 10_000
"""Replicas of an organization in every state, also sleeping and archived ones."""

HOOK_TESTS_MOST = 10
"""Tests of hooks that an organization runs at once: each has a replica, which `max_active` does not
count."""

POOLS_MOST = 20
"""Warm pools of an owner that are switched on: their replicas are not counted either."""

MESSAGES_MOST = 1_000
"""Messages of a chat that have not ended: the running one and those that wait."""

UPLOADS_MOST = 20
"""Uncommitted changes of an owner that wait for their replica; a later one takes the place of the
oldest."""

CHATS_MOST, STORED_CHATS_MOST = 1_000, 10_000
"""Chats of a replica; the second number counts deleted ones, too."""
