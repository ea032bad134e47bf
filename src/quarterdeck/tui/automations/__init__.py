"""The page of automations."""
