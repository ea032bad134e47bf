"""Programs of the person's own, which take the terminal for a while: an editor, a pager.

    text -> a copy in a file -> the cockpit steps aside -> program -> terminal put right -> what it wrote

Streams are read meanwhile, nothing is painted, and what came is there afterwards.
"""
