"""Each file reaches, by what it includes itself, the header of each common name that it uses.

The presets compile with precompiled headers (cmake/rooms.cmake), which are there whether or not a file includes them; a program that
compiles these files without has to find all names, too.
"""

import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("base", "ir", "passes", "analyzer", "runtime")

ALGORITHMS = (
    "adjacent_find|all_of|any_of|binary_search|clamp|copy|copy_if|count|count_if|equal|equal_range|fill|find|find_if|for_each|includes|is_sorted|lower_bound|max_element|merge|"
    "min_element|minmax|mismatch|none_of|remove|remove_if|replace|reverse|rotate|search|set_difference|set_intersection|set_union|sort|stable_sort|transform|unique|upper_bound"
)
#: The headers that cmake/rooms.cmake precompiles, and the names that come from each.
NAMES = {
    "algorithm": rf"std::ranges::({ALGORITHMS}|min|max|contains)\b|std::({ALGORITHMS})\(",
    "array": r"std::array\b",
    "cmath": r"std::(sqrt|exp|log|log2|log1p|pow|isnan|isinf|isfinite|floor|ceil|round|nearbyint|trunc|ldexp|ilogb|tanh|sin|cos|tan|fmax|fmin|nextafter|hypot|lgamma|erf|fabs)\(",
    "cstdint": r"std::u?int(8|16|32|64|ptr)_t\b",
    "functional": r"std::(function|greater|hash|plus|multiplies)\b",
    "limits": r"std::numeric_limits\b",
    "map": r"std::(multi)?map\b",
    "memory": r"std::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared)\b",
    "optional": r"std::(optional|nullopt)\b",
    "set": r"std::(multi)?set\b",
    "span": r"std::span\b",
    "string": r"std::(string|to_string|stoi)\b",
    "string_view": r"std::string_view\b",
    "utility": r"std::(exchange|pair)\b",
    "vector": r"std::vector\b",
    "fmt/format.h": r"fmt::(format|format_to|memory_buffer)\b",
}
#: Headers whose names others promise as well.
ALSO = {"map": ("utility",), "string": ("string_view",), "fmt/ranges.h": ("fmt/format.h",), "unordered_map": ("utility",)}


@functools.cache
def code_of(path: pathlib.Path) -> str:
    return re.sub(r"//[^\n]*", "", path.read_text())


@functools.cache
def included_by(path: pathlib.Path) -> tuple[tuple[str, ...], tuple[pathlib.Path, ...]]:
    text = path.read_text()
    system = re.findall(r"^#include <([^>]+)>", text, re.MULTILINE)
    own = (ROOT / name for name in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE))
    return tuple(system), tuple(file for file in own if file.exists())


def reached_from(path: pathlib.Path) -> tuple[set[str], set[pathlib.Path]]:
    found: set[str] = set()
    seen, pending = {path}, [path]
    while pending:
        system, own = included_by(pending.pop())
        for header in system:
            found.add(header)
            found.update(ALSO.get(header, ()))
        for file in own:
            if file not in seen:
                seen.add(file)
                pending.append(file)
    return found, seen


def rule_headers() -> dict[pathlib.Path, str]:
    """Of the precompiled headers of rules: what they declare."""
    call = re.search(r"tensorlint_room\(rules [^)]*PRECOMPILED ([^)]*)\)", (ROOT / "analyzer/CMakeLists.txt").read_text())
    headers = [ROOT / name for name in call[1].split()] if call else []
    return {header: "|".join(re.findall(r"^(?:class|struct|[\w:<>*&]+(?: [\w:<>*&]+)*) (\w+)[({ ;]", header.read_text(), re.MULTILINE)) for header in headers}


def main() -> int:
    precompiled = set(re.findall(r"<([\w/.]+)>", (ROOT / "cmake/rooms.cmake").read_text()))
    faults = [f"cmake/rooms.cmake precompiles <{header}>, of which this test knows no names" for header in precompiled - set(NAMES) - {"cstddef"}]
    files = 0
    rules = rule_headers()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".cc", ".h"):
                continue
            files += 1
            code, (reached, files_reached) = code_of(path), reached_from(path)
            if path.parent.parent == ROOT / "analyzer/rules":
                for own, declared in rules.items():
                    used = re.search(rf"(?<![\w.>:] )(?<![\w.>:])({declared})\(", code)
                    if used and own not in files_reached:
                        faults.append(f"{path.relative_to(ROOT)} uses {used[1]} and reaches no {own.relative_to(ROOT)}")
            for header, names in NAMES.items():
                used = re.search(names, code)
                if used and header not in reached:
                    faults.append(f"{path.relative_to(ROOT)} uses {used[0].rstrip('(')} and reaches no <{header}>")
    for fault in sorted(faults):
        print(fault)
    if files < 500 or not all(rules.values()):
        print(f"only {files} files were looked at, and the headers {list(rules)}")
        return 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
