"""The changes of a replica on the screen: differences, and comments on their lines."""
