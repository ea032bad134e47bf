"""Dialogs that ask for something."""
