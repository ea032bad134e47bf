"""The files of a replica: a finder over all of them, and one that is read."""
