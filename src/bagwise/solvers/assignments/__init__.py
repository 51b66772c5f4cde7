"""Which instance stands for which bag: column generation over assignments, and their search."""
