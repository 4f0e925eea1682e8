"""The part of JSON Schema that docs/schema uses; anything else in a schema is an error here."""

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "null": type(None),
    "boolean": bool,
}
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "const", "enum", "pattern", "minimum", "required",
         "properties", "additionalProperties", "items", "anyOf"}


def problems(value, schema, root=None, where="$"):
    """Where and how `value` is not what the schema says."""
    import re
    root = root or schema
    unknown = set(schema) - KNOWN
    if unknown:
        raise ValueError(f"{where}: keywords {unknown} are not known here")
    found = []
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        found += problems(value, target, root, where)
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        # To Python True is an integer.
        if not any(isinstance(value, TYPES[name]) and isinstance(value, bool) == (name == "boolean") for name in names):
            return found + [f"{where}: {value!r} is no {' or '.join(names)}"]
    if "anyOf" in schema:
        tried = [problems(value, each, root, where) for each in schema["anyOf"]]
        if all(tried):
            found += min(tried, key=len)
    if "const" in schema and value != schema["const"]:
        found.append(f"{where}: {value!r} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r} is none of {schema['enum']}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{where}: {value!r} does not match {schema['pattern']}")
    if "minimum" in schema and isinstance(value, (int, float)) and value < schema["minimum"]:
        found.append(f"{where}: {value!r} is less than {schema['minimum']}")
    if isinstance(value, dict):
        found += [f"{where}: {name} is missing" for name in schema.get("required", []) if name not in value]
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            if inner is False:
                found.append(f"{where}: {name} is not part of the schema")
            else:
                found += problems(item, inner, root, f"{where}.{name}")
    if isinstance(value, list):
        for i, item in enumerate(value):
            found += problems(item, schema.get("items", {}), root, f"{where}[{i}]")
    return found
