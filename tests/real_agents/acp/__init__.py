"""Real agents that speak the Agent Client Protocol, each through the driver and the engine."""
