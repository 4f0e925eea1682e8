"""Writes the operator table that is compiled in, from the schemas of the installed `onnx` package.

usage: generate_schemas.py [--check] [-o FILE]

With --check nothing is written: exit code 1 and a diff when FILE differs from what would be written.
"""

import argparse
import difflib
import pathlib
import re
import sys

import numpy
import onnx
from onnx import AttributeProto, defs, helper

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEFAULT_OUTPUT = ROOT / "ir" / "schema" / "generated" / "onnx_schemas.cc"

UNBOUNDED = 65535
CONTAINERS = ("tensor", "sequence", "optional_tensor", "optional_sequence", "sparse_tensor")
# ONNX's spelling of element types in type strings, where it is not TensorProto's in lower case.
ELEMENT_TYPES = {"float": "FLOAT", "double": "DOUBLE", "string": "STRING", "bool": "BOOL"}


def pinned_onnx():
    return re.search(r"^onnx==(\S+)$", (ROOT / "requirements-test.txt").read_text(), re.MULTILINE).group(1)


def element_bit(name):
    return 1 << onnx.TensorProto.DataType.Value(ELEMENT_TYPES.get(name, name.upper()))


def type_set(type_strings):
    """The fields of TypeSet of ir/schema/schema.h in their order: dtype bits, then flags."""
    result = dict.fromkeys((*CONTAINERS, "map", "sequence_map"), 0)
    patterns = (
        ("tensor", r"tensor\((\w+)\)"),
        ("sequence", r"seq\(tensor\((\w+)\)\)"),
        ("optional_tensor", r"optional\(tensor\((\w+)\)\)"),
        ("optional_sequence", r"optional\(seq\(tensor\((\w+)\)\)\)"),
        ("sparse_tensor", r"sparse_tensor\((\w+)\)"),
    )
    for text in type_strings:
        compact = text.replace(" ", "")
        if compact.startswith("map("):
            result["map"] = 1
        elif compact.startswith("seq(map("):
            result["sequence_map"] = 1
        else:
            for field, pattern in patterns:
                match = re.fullmatch(pattern, compact)
                if match:
                    result[field] |= element_bit(match.group(1))
                    break
            else:
                raise ValueError(f"type string {text!r} is of no known form")
    return result


def c_string(data):
    """A C++ string_view literal of `data`; octal escapes always have three digits, so no character joins them."""
    if isinstance(data, str):
        data = data.encode()
    text = "".join(
        chr(byte) if 0x20 <= byte < 0x7F and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in data
    )
    return f'"{text}"sv'


def number(value):
    """The shortest text that gives back the same float32."""
    return str(numpy.float32(value))


def default_text(attribute):
    value = attribute.default_value
    kind = value.type
    if kind == AttributeProto.FLOAT:
        return number(value.f)
    if kind == AttributeProto.INT:
        return str(value.i)
    if kind == AttributeProto.STRING:
        return value.s.decode()
    if kind == AttributeProto.FLOATS:
        return ",".join(number(item) for item in value.floats)
    if kind == AttributeProto.INTS:
        return ",".join(str(item) for item in value.ints)
    if kind == AttributeProto.STRINGS:
        items = [item.decode() for item in value.strings]
        if any("," in item for item in items):
            raise ValueError(f"default of `{attribute.name}` has a comma inside an element")
        return ",".join(items)
    raise ValueError(f"default of `{attribute.name}` is of kind {kind}, which has no text form here")


def without_docs(function):
    function.ClearField("doc_string")
    pending = list(function.node)
    while pending:
        node = pending.pop()
        node.ClearField("doc_string")
        for attribute in node.attribute:
            attribute.ClearField("doc_string")
            for graph in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
                graph.ClearField("doc_string")
                pending.extend(graph.node)
    return function


def static_body(schema):
    """(serialised FunctionProto, opset it is written in) of the newest static body; empty and 0 without one."""
    if not schema.has_function:
        return b"", 0
    function = onnx.FunctionProto()
    function.ParseFromString(schema.get_function_with_opset_version(max(schema.function_opset_versions)))
    opset = next(entry.version for entry in function.opset_import if entry.domain in ("", "ai.onnx"))
    return without_docs(function).SerializeToString(deterministic=True), opset


class Pool:
    """A flat C++ array in which equal lists share their place."""

    def __init__(self, name, element):
        self.name, self.element = name, element
        self.rows, self.places = [], {}

    def span(self, rows):
        rows = tuple(rows)
        if not rows:
            return "{}"
        if rows not in self.places:
            self.places[rows] = len(self.rows)
            self.rows.extend(rows)
        return f"{{{self.name} + {self.places[rows]}, {len(rows)}}}"

    def declaration(self):
        lines = "".join(f"    {row},\n" for row in self.rows)
        return f"constexpr {self.element} {self.name}[] = {{\n{lines}}};\n"


def parameter_row(parameter, type_indices):
    option = {
        defs.OpSchema.FormalParameterOption.Single: "kSingle",
        defs.OpSchema.FormalParameterOption.Optional: "kOptional",
        defs.OpSchema.FormalParameterOption.Variadic: "kVariadic",
    }[parameter.option]
    homogeneous = int(parameter.option == defs.OpSchema.FormalParameterOption.Variadic and parameter.is_homogeneous)
    return f"{{{c_string(parameter.name)}, {type_indices[parameter.type_str]}, {option}, {homogeneous}}}"


def generate():
    types = Pool("kTypes", "TypeConstraint")
    parameters = Pool("kParameters", "FormalParameter")
    attributes = Pool("kAttributes", "FormalAttribute")
    bodies, body_names, schema_rows, type_sets = [], {}, [], {}

    def set_name(type_strings):
        fields = tuple(type_set(type_strings).values())
        return type_sets.setdefault(fields, f"kSet{len(type_sets)}")

    schemas = sorted(
        defs.get_all_schemas_with_history(), key=lambda s: (s.domain.encode(), s.name.encode(), s.since_version)
    )
    for index, schema in enumerate(schemas):
        type_rows, type_indices = [], {}
        for constraint in schema.type_constraints:
            type_indices[constraint.type_param_str] = len(type_rows)
            type_rows.append((constraint.type_param_str, constraint.allowed_type_strs))
        for parameter in (*schema.inputs, *schema.outputs):
            if parameter.type_str not in type_indices:
                type_indices[parameter.type_str] = len(type_rows)
                type_rows.append((parameter.type_str, parameter.types))
        type_span = types.span(f"{{{c_string(name)}, {set_name(allowed)}}}" for name, allowed in type_rows)

        attribute_rows = []
        for name in sorted(schema.attributes):
            attribute = schema.attributes[name]
            kind = AttributeProto.AttributeType.Name(attribute.type.value)
            has_default = attribute.default_value.type != AttributeProto.UNDEFINED
            camel = "".join(part.capitalize() for part in kind.lower().split("_"))
            attribute_rows.append(
                f"{{{c_string(name)}, AttributeKind::k{camel}, {int(attribute.required)}, {int(has_default)}, "
                f"{c_string(default_text(attribute) if has_default else '')}}}"
            )

        body, body_opset = static_body(schema)
        if body and body not in body_names:
            body_names[body] = f"kBody{len(bodies)}"
            bodies.append(f"// {schema.name} {schema.since_version}\n"
                          f"constexpr std::string_view {body_names[body]} = {c_string(body)};\n")

        # Python's schema knows an unbounded count as the largest int.
        counts = ", ".join(
            str(min(count, UNBOUNDED))
            for count in (schema.min_input, schema.max_input, schema.min_output, schema.max_output)
        )
        schema_rows.append(
            f"    {{{c_string(schema.domain)}, {c_string(schema.name)}, {schema.since_version}, "
            f"{int(schema.deprecated)}, {counts},\n"
            f"     {parameters.span(parameter_row(p, type_indices) for p in schema.inputs)}, "
            f"{parameters.span(parameter_row(p, type_indices) for p in schema.outputs)}, "
            f"{attributes.span(attribute_rows)}, {type_span},\n"
            f"     {body_names.get(body, '{}')}, {body_opset}, {index}}},\n"
        )

    # The newest opset of a domain is that of the release, or of an operator newer than the release table.
    newest = {}
    for schema in schemas:
        newest[schema.domain] = max(newest.get(schema.domain, 0), schema.since_version)
    newest[""] = max(newest[""], defs.onnx_opset_version())
    released = {row[0]: row for row in helper.VERSION_TABLE}.get(f"{onnx.__version__.rsplit('.', 1)[0]}.0")
    if released:
        newest["ai.onnx.ml"] = max(newest["ai.onnx.ml"], released[3])
        newest["ai.onnx.preview.training"] = max(newest["ai.onnx.preview.training"], released[4])

    set_lines = ""
    for fields, name in type_sets.items():
        bits = ", ".join(f"bits(0x{value:x})" if value else "{}" for value in fields[: len(CONTAINERS)])
        flags = ", ".join("true" if value else "false" for value in fields[len(CONTAINERS) :])
        set_lines += f"constexpr TypeSet {name} = {{{bits}, {flags}}};\n"
    domain_rows = "".join(f"    {{{c_string(domain)}, {opset}}},\n" for domain, opset in sorted(newest.items()))

    return (
        f"// Generated, do not edit: made by ir/schema/tools/generate_schemas.py from onnx {onnx.__version__}.\n"
        "// clang-format off\n"
        '#include "ir/schema/schema.h"\n\n'
        "namespace tensorlint {\n"
        "namespace {\n\n"
        "using namespace std::string_view_literals;\n"
        "using enum FormalOption;\n\n"
        "constexpr DTypeSet bits(std::uint32_t value) { return DTypeSet::from_bits(value); }\n\n"
        + set_lines + "\n" + types.declaration() + "\n" + parameters.declaration() + "\n"
        + attributes.declaration() + "\n" + "".join(bodies) + "\n"
        + "constexpr OpSchema kSchemas[] = {\n" + "".join(schema_rows) + "};\n\n"
        + "constexpr DomainOpset kDomains[] = {\n" + domain_rows + "};\n\n"
        "}  // namespace\n\n"
        "std::span<const OpSchema> all_schemas() { return kSchemas; }\n\n"
        "std::span<const DomainOpset> known_domains() { return kDomains; }\n\n"
        "}  // namespace tensorlint\n"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the file is stale")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=DEFAULT_OUTPUT)
    arguments = parser.parse_args()
    pinned = pinned_onnx()
    if onnx.__version__ != pinned:
        sys.exit(f"generate_schemas.py: needs onnx {pinned}, found {onnx.__version__}; run `./dev setup test`")
    text = generate()
    if not arguments.check:
        arguments.output.write_text(text)
        return 0
    committed = arguments.output.read_text() if arguments.output.exists() else ""
    if committed == text:
        return 0
    diff = difflib.unified_diff(committed.splitlines(), text.splitlines(), "committed", "generated", lineterm="", n=1)
    for count, line in enumerate(diff):
        if count == 40:
            print("...")
            break
        print(line[:200])
    print(f"{arguments.output} is stale: run ir/schema/tools/generate_schemas.py and commit the result")
    return 1


if __name__ == "__main__":
    sys.exit(main())
