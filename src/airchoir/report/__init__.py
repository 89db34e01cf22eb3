"""Findings -> tables (LaTeX, Markdown, CSV), figures (PDF, PGF, SVG, PNG) and one HTML page. Draws, never computes."""
