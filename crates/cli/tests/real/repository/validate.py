"""Validates documents against JSON Schemas with Python's jsonschema.

Arguments: a folder of schemas, `NAME.schema.json`; then pairs of NAME and document. A document is
JSON, or TOML if its name ends so. Prints a line for each schema and then for each document: its
path and `valid`, or its path, where the first error is, and what it is.
"""

import json
import pathlib
import sys
import tomllib

from jsonschema.exceptions import SchemaError, best_match
from jsonschema.validators import validator_for


def load(path):
    with open(path, "rb") as file:
        return tomllib.load(file) if path.endswith(".toml") else json.load(file)


def checked_schema(path):
    schema = load(path)
    # Without a default: a schema has to name its draft.
    validator = validator_for(schema, default=None)
    if validator is None:
        return "invalid: it names no known draft", None
    try:
        validator.check_schema(schema)
    except SchemaError as error:
        return f"invalid: {error.json_path}: {error.message[:200]}", None
    return "valid", validator(schema)


def checked(validator, path):
    if validator is None:
        return "invalid: its schema is"
    error = best_match(validator.iter_errors(load(path)))
    if error is None:
        return "valid"
    return f"invalid: {error.json_path}: {error.message[:200]}"


folder, *rest = sys.argv[1:]
validators = {}
for schema in sorted(pathlib.Path(folder).glob("*.schema.json")):
    found, validators[schema.name.removesuffix(".schema.json")] = checked_schema(str(schema))
    print(schema.name, found)
for name, document in zip(rest[::2], rest[1::2]):
    print(document, checked(validators.get(name), document))
