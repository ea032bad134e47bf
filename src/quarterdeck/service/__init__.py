"""The control plane: records, event log, relay to engines, authentication, HTTP routes."""
