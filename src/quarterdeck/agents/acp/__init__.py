"""Driver of any agent that speaks the Agent Client Protocol, on the official Python SDK."""
