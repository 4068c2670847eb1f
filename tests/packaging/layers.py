# SPDX-License-Identifier: MIT
"""Fails if the Conan recipe or the crate lists other parts of the libraries than the build: both name them again.

  layers.py ROOT
"""
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])


def built():
    """{part: the parts that its library stands on}, of freehold/*/CMakeLists.txt."""
    parts = {}
    for file in sorted(ROOT.glob("freehold/*/CMakeLists.txt")):
        for part, arguments in re.findall(r"freehold_add_library\((\w+)([^)]*)\)", file.read_text(encoding="utf-8")):
            uses = re.search(r"USES ([\w ]*?)(?: EXCEPT| ROOMS|$)", arguments)
            parts[part] = uses[1].split() if uses else []
    return parts


def constant(file, pattern):
    found = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    if not found:
        sys.exit(f"{file}: not found: {pattern}")
    return found[1]


def complaints():
    parts = built()
    of_conan = ast.literal_eval(constant("packaging/conan/conanfile.py", r"^LAYERS = (\{.*?^\})"))
    for part in sorted(set(parts) | set(of_conan)):
        wanted = parts.get(part) if not part.startswith("thread_alloc") else ["alloc"]
        if of_conan.get(part) != wanted:
            yield f"packaging/conan/conanfile.py: LAYERS has {part}: {of_conan.get(part)}, the build {wanted}"
    headers_only = {part for part in parts if not list(ROOT.glob(f"freehold/{part}/*.cpp"))}
    if ast.literal_eval(constant("packaging/conan/conanfile.py", r"^HEADERS_ONLY = (\{.*?\})")) != headers_only:
        yield f"packaging/conan/conanfile.py: HEADERS_ONLY is not {headers_only}"
    engine = sorted({"alloc", "heap", *parts["alloc"], *parts["heap"]})  # and private heaps, for scopes
    of_crate = ast.literal_eval("[" + constant("packaging/rust/build.rs", r"const PARTS[^=]*= \[(.*?)\]") + "]")
    packed = constant("packaging/rust/build", r"find freehold/\{([\w,]+)\}").split(",")
    for where, listed in (("build.rs", of_crate), ("build", packed)):
        wanted = engine if where == "build.rs" else sorted({*engine, "pool"})  # which is there for the feature "pools"
        if sorted(listed) != wanted:
            yield f"packaging/rust/{where}: the parts are {sorted(listed)}, the build has {wanted}"


found = list(complaints())
print("\n".join(found) or "the packages name the parts that the build has")
sys.exit(1 if found else 0)
