"""The common part of agent sessions, independent of the agent's protocol."""
