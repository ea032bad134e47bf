"""The screen of environments: what workspaces are made from.

    EnvironmentsScreen -> list of environments | one Section at a time -> dialogs made from forms

State is in `store.environments` and its siblings; nothing is read but when a person looks.
"""
