"""What is read or chosen line by line: texts, output, markdown, lists.

A page lays text out as rows of spans; `TextView` shows a page, `RowList` shows rows to choose from.
Both paint only the rows that are seen, whatever there is of them.
"""
