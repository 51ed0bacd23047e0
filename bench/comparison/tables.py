"""Medians with their spread, and Markdown."""

import re
import statistics


def spread(values, form="{:.2f}"):
    """`median [min-max]`."""
    if not values:
        return "none"
    low, high = form.format(min(values)), form.format(max(values))
    return f"{form.format(statistics.median(values))} [{low}-{high}]"


def least_to_most(counts):
    return f"{min(counts)}-{max(counts)}" if max(counts) else "0"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def goal(name, value, limit, unit="", at_least=False):
    """One line that says whether a goal is reached; never an error."""
    bound = "at least" if at_least else "at most"
    if value is None:
        return f"* {name}: goal {bound} {figure(limit)}{unit}: **no result**"
    reached = value >= limit if at_least else value <= limit
    word = "reached" if reached else "**missed**"
    return f"* {name}: {figure(value)}{unit}, goal {bound} {figure(limit)}{unit}: {word}"


def figure(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def merge_sections(old, new):
    """Replaces the `## ` blocks of `old` that are in `new` (heading -> text), keeps the others."""
    blocks = split_sections(old) | new
    return "\n\n".join(f"## {heading}\n\n{text}" for heading, text in blocks.items())


def split_sections(text):
    """The `## ` blocks of a text: heading -> text."""
    blocks = {}
    for block in re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]:
        heading, _, body = block.partition("\n")
        blocks[heading.removeprefix("## ").strip()] = body.strip()
    return blocks


def only(text, names):
    """The blocks of a text whose headings begin with one of these names."""
    blocks = split_sections(text)
    return merge_sections("", {h: body for h, body in blocks.items() if h.split()[0] in names})
