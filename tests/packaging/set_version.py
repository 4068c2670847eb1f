#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""packaging/release/set_version on a scratch tree: what a release changes, and what it refuses.

  set_version.py TREE
"""
import pathlib
import subprocess
import sys
import tempfile

TREE = {
    "CMakeLists.txt": "project(\n  freehold\n  VERSION 0.1.0\n",
    "README.md": "find_package(freehold 0.1 REQUIRED)\nlibfreehold.so.0.1, libfreehold.so.0.1.0, libfreehold0.1_*.deb, libfreehold-process0.1, libfreehold0.15\n",
    "CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.1.0] - 2026-01-01\n\n- libfreehold.so.0.1\n",
}


def run(tool, tree, *words):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in tree.items():
            (root / name).write_text(text, encoding="utf-8")
        subprocess.run("git init -q . && git add -A", shell=True, cwd=root, check=True)
        done = subprocess.run([tool, *words], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done, {name: (root / name).read_text(encoding="utf-8") for name in tree}


def main():
    tool = pathlib.Path(sys.argv[1]).resolve() / "packaging/release/set_version"
    failures = []

    def expect(what, actual, wanted):
        if actual != wanted:
            failures.append(f"{what}: {actual!r}, not {wanted!r}")

    done, after = run(tool, TREE, "0.1.0", "0.2.0", "2026-02-03")
    expect("a minor version, exit code", done.returncode, 0)
    expect("a minor version, notes", done.stdout, "Freehold 0.2.0\n\n### Added\n\n- A thing.\n")
    expect("a minor version, CMake", after["CMakeLists.txt"], TREE["CMakeLists.txt"].replace("0.1.0", "0.2.0"))
    expect("a minor version, sonames", after["README.md"],
           "find_package(freehold 0.2 REQUIRED)\nlibfreehold.so.0.2, libfreehold.so.0.1.0, libfreehold0.2_*.deb, libfreehold-process0.2, libfreehold0.15\n")
    expect("a minor version, changelog", after["CHANGELOG.md"],
           "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-02-03\n\n### Added\n\n- A thing.\n\n## [0.1.0] - 2026-01-01\n\n- libfreehold.so.0.1\n")

    done, after = run(tool, TREE, "0.1.0", "0.1.1", "2026-02-03")
    expect("a patch version, exit code", done.returncode, 0)
    expect("a patch version, sonames", after["README.md"], TREE["README.md"])

    with_address = {**TREE, "CMakeLists.txt": TREE["CMakeLists.txt"] + '  HOMEPAGE_URL "https://a.example/f" # the one place\n',
                    "README.md": "git clone ADDRESS freehold && cd freehold    # the address\nscript/demo\n", "CITATION.cff": "title: Freehold\nversion: 0.1.0\n"}
    done, after = run(tool, with_address, "0.1.0", "0.1.1", "2026-02-03")
    expect("an address, exit code", (done.returncode, done.stdout[:14]), (0, "Freehold 0.1.1"))
    expect("an address, README", after["README.md"], "git clone https://a.example/f freehold && cd freehold\nscript/demo\n")
    expect("an address, citation", after["CITATION.cff"], 'title: Freehold\nversion: 0.1.1\nrepository-code: "https://a.example/f"\n')

    done, _ = run(tool, TREE, "--notes", "0.1.0")
    expect("notes of a release", done.stdout, "Freehold 0.1.0\n\n- libfreehold.so.0.1\n")

    nothing_new = {**TREE, "CHANGELOG.md": TREE["CHANGELOG.md"].replace("### Added\n\n- A thing.\n\n", "")}
    other = {**TREE, "CMakeLists.txt": "project(freehold VERSION 0.1.0)\n"}
    for what, tree, new in (("nothing new", nothing_new, "0.2.0"), ("a version written differently", other, "0.2.0"), ("a section twice", TREE, "0.1.0")):
        for words in (("0.1.0", new, "2026-02-03"), ("--check", "0.1.0", new)):
            done, after = run(tool, tree, *words)
            expect(f"{what}, {words}, exit code", done.returncode, 2)
            expect(f"{what}, {words}, lines", done.stdout.count("\n"), 1)
            expect(f"{what}, {words}, tree", after, tree)
    done, after = run(tool, TREE, "--check", "0.1.0", "0.2.0")
    expect("a question, answer", (done.returncode, done.stdout), (0, ""))
    expect("a question, tree", after, TREE)
    print("\n".join(failures) or "set_version: as expected")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
