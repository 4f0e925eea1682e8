"""Each name has one definition in the whole program (C++20, [basic.def.odr]); a linker takes the first of several and says nothing.

Usage: one_definition.py BUILD_FOLDER, a build without optimisation: there two objects have the same code of one inline function, whatever else they compile.

Two questions. Of the objects: is a function or table that several have of one size in all, and a function that must be one in a single
object? Of the sources: does one file define a type of a name? Types without a function leave no trace in objects."""

import collections
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("base", "ir", "passes", "analyzer", "runtime", "kernels")

OPENED = re.compile(r"^(?:inline )?namespace ?([\w:]*) ?\{$")
CLOSED = re.compile(r"^\}  // namespace")
TYPE = re.compile(r"^(?:class|struct|union|enum class|enum) (?:alignas\(\w+\) |\[\[\w+\]\] )?([A-Za-z_][\w:]*)(<.*>)?(?: final)?(?= :| \{|$)(?:.*\{|[^;]*$)")


def types_in(text: str) -> Iterator[str]:
    """The types that other files can name: those outside of unnamed namespaces, as `space::Name`."""
    spaces: list[str] = []
    for line in text.splitlines():
        if opened := OPENED.match(line):
            spaces.append(opened.group(1))
        elif CLOSED.match(line):
            spaces.pop()
        elif (found := TYPE.match(line)) and "" not in spaces:
            yield "::".join([*spaces, found.group(1) + (found.group(2) or "")])


def types_defined_twice(files: Iterable[tuple[str, str]]) -> list[str]:
    places: dict[str, list[str]] = collections.defaultdict(list)
    for name, text in files:
        for each in types_in(text):
            places[each].append(name)
    return [f"{each} is defined in {' and '.join(where)}" for each, where in sorted(places.items()) if len(where) > 1]


def symbols_of(listing: str) -> Iterator[tuple[str, str, int, str]]:
    """object, kind, size, name: what `nm -A -S --defined-only` prints."""
    for line in listing.splitlines():
        parts = line.split(None, 3)
        if len(parts) == 4 and len(parts[2]) == 1:  # the others have no size
            yield parts[0].rsplit(":", 1)[0], parts[2], int(parts[1], 16), parts[3]


def definitions_that_differ(listing: str, is_own: re.Pattern[str] = re.compile("tensorlint")) -> list[str]:
    """Weak symbols of several sizes, and strong ones in several objects."""
    weak: dict[str, dict[int, str]] = collections.defaultdict(dict)
    strong: dict[str, list[str]] = collections.defaultdict(list)
    for file, kind, size, name in symbols_of(listing):
        if not is_own.search(name):
            continue
        if kind in "WV":
            weak[name].setdefault(size, file)
        elif kind in "TDBR":
            strong[name].append(file)
    found = [f"{name} has {' and '.join(f'{size} bytes in {file}' for size, file in sorted(sizes.items()))}" for name, sizes in sorted(weak.items()) if len(sizes) > 1]
    return found + [f"{name} is defined in {' and '.join(files)}" for name, files in sorted(strong.items()) if len(files) > 1]


def objects_of(folder: pathlib.Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*.o") if path.relative_to(folder).parts[0] in ("CMakeFiles", *FOLDERS))


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    objects = objects_of(folder)
    if not objects:
        print(f"no objects in {folder}: build it first")
        return 2
    listing = "".join(
        subprocess.run(["nm", "-A", "-S", "--defined-only", *objects[at : at + 200]], capture_output=True, text=True, check=True).stdout for at in range(0, len(objects), 200)
    )
    sources = [path for room in FOLDERS for path in sorted((ROOT / room).rglob("*")) if path.suffix in (".h", ".cc", ".cuh", ".cu")]
    found = types_defined_twice((str(path.relative_to(ROOT)), path.read_text()) for path in sources) + definitions_that_differ(listing)
    print("\n".join(found) or f"{len(objects)} objects, {len(sources)} sources: each name has one definition")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
