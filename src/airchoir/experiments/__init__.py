"""[open] The paper's evaluation and what goes beyond it: a grid, a table, a figure each."""
