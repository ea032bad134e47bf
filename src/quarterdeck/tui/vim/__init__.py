"""Vim's keys, without a widget or a screen."""
