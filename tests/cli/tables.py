"""Read what commands print as their users do: tables by heading, lines by their first words."""

import csv
import io
import re


def csv_rows(text):
    """Return the rows of a CSV table, each a mapping by heading."""
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def text_rows(text):
    """Return the rows of a table of columns two spaces apart, each a mapping by heading."""
    head, *rows = (re.split(r" {2,}", line.strip()) for line in text.splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows]


def entries(text, width):
    """Return paragraphs by the words in their first columns; what follows belongs to the last."""
    found = {}
    for line in text.splitlines():
        if line[:width].strip():
            name = line[:width].strip()
            found.setdefault(name, [])
        found[name].append(line[width:].strip())
    return found
