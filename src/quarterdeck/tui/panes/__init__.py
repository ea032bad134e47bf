"""The right side of the main screen: chat and terminals of a replica."""
