"""The cockpit's full screens and dialogs."""
