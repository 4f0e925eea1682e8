"""Writes ir/schema/generated/contrib_schemas.cc from the operator schemas that onnxruntime reports.

    python ir/schema/tools/generate_contrib_schemas.py [--check]

--check compares instead of writing and exits 1 where the file is stale. Domains beyond ONNX's own that models on disk
hold: com.microsoft (what onnxruntime's optimizers and quantizers emit), and what onnxruntime adds to ai.onnx itself.
Operators with subgraphs (searches over a decoder) are left out, as are those on types other than tensors.
"""
import argparse
import pathlib
import re
import sys

import onnx
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

TARGET = pathlib.Path(__file__).resolve().parents[1] / "generated" / "contrib_schemas.cc"
# Fused from ONNX's own operators and written into ai.onnx, where ONNX has no such operator, or has it in later opsets only.
AI_ONNX = {("LayerNormalization", 1), ("SimplifiedLayerNormalization", 1)}
KINDS = {"FLOAT": "f", "INT": "i", "STRING": "s", "TENSOR": "t", "FLOATS": "F", "INTS": "I", "STRINGS": "S"}
OPTIONS = {"Single": "", "Optional": "?", "Variadic": "*"}


def dtype(text):
    """tensor(float) -> float; None for what is no tensor."""
    match = re.fullmatch(r"tensor\((\w+)\)", text)
    return match.group(1) if match else None


def spec(schema):
    """The schema as the four texts of a row, or None where a row cannot say it."""
    variables = {t.type_param_str: sorted(dtype(x) or "" for x in t.allowed_type_strs) for t in schema.type_constraints}
    parameters = []
    for formals in (schema.inputs, schema.outputs):
        texts = []
        for formal in formals:
            option = str(formal.option).rsplit(".", 1)[-1]
            variable = formal.typeStr
            if variable not in variables:
                variables[variable] = [dtype(variable) or ""]
            mixed = "*" if option == "Variadic" and not formal.isHomogeneous else ""
            texts.append(f"{formal.name}:{variable}{OPTIONS[option]}{mixed}")
        parameters.append(" ".join(texts))
    used = {formal.typeStr for formals in (schema.inputs, schema.outputs) for formal in formals}
    variables = {name: types for name, types in variables.items() if name in used}
    if any("" in types for types in variables.values()):
        return None
    attributes = []
    for name, attribute in sorted(schema.attributes.items()):
        kind = KINDS.get(str(attribute.type).rsplit(".", 1)[-1])
        if kind is None:
            return None
        attributes.append(f"{name}:{kind}{'!' if attribute.required else ''}")
    types = " ".join(f"{name}={','.join(allowed)}" for name, allowed in variables.items())
    return types, parameters[0], parameters[1], " ".join(attributes)


def wrapped(text):
    """A string literal, broken into lines at spaces."""
    lines, line = [], ""
    for word in text.split(" ") if text else []:
        if len(line) + len(word) > 100:
            lines.append(line)
            line = ""
        line += word + " "
    lines.append(line)
    lines[-1] = lines[-1].rstrip()
    return "\n     ".join(f'"{line}"' for line in lines)


def generate():
    rows = []
    known = {(s.name, s.since_version) for s in onnx.defs.get_all_schemas_with_history() if s.domain == ""}
    for schema in get_all_operator_schema():
        key = (schema.name, schema.since_version)
        if schema.domain != "com.microsoft" and not (schema.domain == "" and key in AI_ONNX and key not in known):
            continue
        texts = spec(schema)
        if texts is not None:
            rows.append((schema.domain, *key, texts))
    text = f"""// Generated, do not edit: made by ir/schema/tools/generate_contrib_schemas.py from onnxruntime {onnxruntime.__version__}.
// clang-format off
#include "ir/schema/contrib_schemas.h"

namespace tensorlint {{
namespace {{

constexpr ContribSchema kSchemas[] = {{
"""
    for domain, name, version, (types, inputs, outputs, attributes) in sorted(rows):
        text += f'    {{"{domain}", "{name}", {version},\n'
        text += ",\n".join(f"     {wrapped(part)}" for part in (types, inputs, outputs, attributes)) + "},\n"
    return text + """};

}  // namespace

std::span<const ContribSchema> contrib_schemas() { return kSchemas; }

}  // namespace tensorlint
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    text = generate()
    if not arguments.check:
        TARGET.write_text(text)
        return 0
    if TARGET.read_text() == text:
        return 0
    print(f"{TARGET.name} is not what onnxruntime {onnxruntime.__version__} says: run {pathlib.Path(__file__).name}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
