# SPDX-License-Identifier: MIT
"""Fails on a vcpkg manifest that `vcpkg format-manifest` would change, or whose members are not those of a port.

  check_manifest.py FILE VERSION

The rules are those of vcpkg's documentation of vcpkg.json: the order of the members, sorted dependencies and features, names in lower
case, default features that exist, an indentation of two spaces. Where vcpkg is there, script/package --test vcpkg asks it, too.
"""
import json
import re
import sys

MEMBERS = ["name", "version", "port-version", "maintainers", "summary", "description", "homepage", "documentation", "license", "supports",
           "dependencies", "default-features", "features"]
FEATURE_MEMBERS = ["description", "license", "supports", "dependencies"]
DEPENDENCY_MEMBERS = ["name", "host", "default-features", "features", "platform", "version>="]
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def order_complaints(what, members, known):
    """`members` is a subset of `known`, in its order."""
    unknown = [member for member in members if member not in known]
    if unknown:
        yield f"{what}: unknown members {unknown}"
    elif sorted(members, key=known.index) != list(members):
        yield f"{what}: the order is {[member for member in known if member in members]}"


def complaints(manifest, version):
    yield from order_complaints("manifest", manifest, MEMBERS)
    yield from (f"{member} is missing" for member in ("name", "version", "description", "license") if not manifest.get(member))
    if manifest.get("version") != version:
        yield f"version is {manifest.get('version')}, that of CMakeLists.txt {version}"
    features, dependencies = manifest.get("features", {}), manifest.get("dependencies", [])
    names = [dependency["name"] for dependency in dependencies]
    yield from (f"{name}: no name for a port or a feature" for name in [manifest.get("name", ""), *names, *features] if not NAME.fullmatch(name))
    for what, listed in (("dependencies", names), ("features", list(features))):
        if listed != sorted(listed):
            yield f"{what} are not sorted"
    for dependency in dependencies:
        yield from order_complaints(f"dependency {dependency['name']}", dependency, DEPENDENCY_MEMBERS)
    for name, feature in features.items():
        yield from order_complaints(f"feature {name}", feature, FEATURE_MEMBERS)
    yield from (f"default feature {name} does not exist" for name in manifest.get("default-features", []) if name not in features)
    if "override" in manifest.get("default-features", []):
        yield "override replaces malloc: it must be asked for"


def main(file, version):
    with open(file, encoding="utf-8") as stream:
        text = stream.read()
    manifest = json.loads(text)
    found = list(complaints(manifest, version))
    if text != json.dumps(manifest, indent=2, ensure_ascii=False) + "\n":
        found.append("it is not formatted as `vcpkg format-manifest` does it")
    for complaint in found:
        print(f"{file}: {complaint}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
