"""The contract as pydantic models: requests, answers, events, errors. Data only, no I/O.

One module per resource; import from the module that names it.
"""
