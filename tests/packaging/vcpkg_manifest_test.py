# SPDX-License-Identifier: MIT
"""packaging/vcpkg/check_manifest.py accepts the port's manifest and rejects each of these changes.

  vcpkg_manifest_test.py FOLDER
"""
import copy
import json
import pathlib
import sys

sys.path.insert(0, sys.argv[1])
import check_manifest  # noqa: E402


def changed(change):
    manifest = copy.deepcopy(RIGHT)
    change(manifest)
    return manifest


FILE = pathlib.Path(sys.argv[1], "ports/freehold/vcpkg.json")
RIGHT = json.loads(FILE.read_text(encoding="utf-8"))
WRONG = {
    "another version": lambda m: m.update({"version": "9.9.9"}),
    "an unknown member": lambda m: m.update({"licence": "MIT"}),
    "a member out of order": lambda m: m.update({"name": m.pop("name")}),
    "no description": lambda m: m.pop("description"),
    "a name in upper case": lambda m: m.update({"name": "Freehold"}),
    "dependencies that are not sorted": lambda m: m["dependencies"].reverse(),
    "a feature without a sorted place": lambda m: m["features"].update({"a": {"description": "x"}}),
    "a feature with an unknown member": lambda m: m["features"]["override"].update({"default": True}),
    "a default feature that does not exist": lambda m: (m.pop("features"), m.update({"default-features": ["x"]})),
    "override by default": lambda m: (m.update({"default-features": ["override"]}), m.update({"features": m.pop("features")})),
}

failed = [f"the right manifest: {complaint}" for complaint in check_manifest.complaints(RIGHT, RIGHT["version"])]
failed += [name for name, change in WRONG.items() if not list(check_manifest.complaints(changed(change), RIGHT["version"]))]
print("\n".join(f"not as wanted: {what}" for what in failed) or f"{len(WRONG)} wrong manifests rejected, the right one accepted")
sys.exit(1 if failed else 0)
