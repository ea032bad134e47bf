"""The automations: a screen over the deck."""
