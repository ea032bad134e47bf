"""The cockpit before real agents."""
