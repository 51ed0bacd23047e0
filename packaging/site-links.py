"""Preprocessor of mdBook: replaces links out of docs/, which lead nowhere in a site.

`[text](../deny.toml)` becomes `text` followed by the path in the repository, unless the text is
that path.
"""

import json
import re
import sys

LINK = re.compile(r"\[([^][]+)\]\(\.\./([^)#]+)[^)]*\)")


def named(link):
    text, path = link.groups()
    return text if path in text else f"{text} (`{path}`)"


def visit(items):
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            chapter = item["Chapter"]
            chapter["content"] = LINK.sub(named, chapter["content"])
            visit(chapter["sub_items"])


if sys.argv[1:2] == ["supports"]:
    sys.exit(sys.argv[2:] != ["html"])
_, book = json.load(sys.stdin)
visit(book["items"])
json.dump(book, sys.stdout)
