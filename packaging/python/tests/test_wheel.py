# SPDX-License-Identifier: MIT
"""What pip has laid down: complete, marked as typed, and in need of nothing that is not in the wheel or promised by its tag."""
import importlib.metadata
import os
import pathlib
import platform
import re
import struct
import subprocess
import sys
import zipfile

import freehold

PACKAGE = pathlib.Path(freehold.__file__).parent
WHEEL = pathlib.Path(os.environ["FREEHOLD_TEST_WHEEL"])
BINARIES = sorted(file for folder in ("bin", "lib", "libexec") for file in (PACKAGE / folder).rglob("*") if file.is_file())
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}


def test_wheel_names_agree_with_metadata() -> None:
    assert importlib.metadata.version("freehold") == freehold.__version__ == WHEEL.name.split("-")[1]
    assert importlib.metadata.requires("freehold") is None
    assert (PACKAGE / "py.typed").exists()
    assert sys.prefix in str(PACKAGE)


def test_binaries_and_tag_are_of_this_machine() -> None:
    assert WHEEL.name.endswith(f"_{platform.machine()}.whl")
    brought = sorted((PACKAGE.parent / "freehold.libs").iterdir())
    assert brought
    for file in [*BINARIES, *brought]:
        head = file.read_bytes()[:20]
        assert (head[:4], struct.unpack_from("<H", head, 18)[0]) == (b"\x7fELF", ELF_MACHINES[platform.machine()]), file


def test_wheel_holds_licences_of_what_it_brings() -> None:
    with zipfile.ZipFile(WHEEL) as archive:
        names = archive.namelist()
    licences = {name.rsplit("/", 1)[1] for name in names if "/licenses/" in name}
    brought = {re.match(r"(lib[a-z0-9]+)", pathlib.Path(name).name)[1] for name in names if ".libs/lib" in name}  # type: ignore[index]
    assert "LICENSE" in licences
    for library in brought:
        assert any(licence.startswith(library) for licence in licences), (library, licences)
    # Those of this wheel's libraries, not of a package for another machine that has a library of the same name.
    assert not [licence for licence in licences if licence.endswith("-cross") or licence.startswith("libc6")]


def test_binaries_find_their_libraries_in_the_wheel() -> None:
    assert {file.name for file in BINARIES} >= {"freehold", "freehold-worker", "libfreehold.so", "libfreehold_process.so",
                                                "libfreehold-probe.so", "libfreehold-pad.so", "libfreehold-age.so", "freehold-doctor-example"}
    for file in BINARIES:
        needed = subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
        assert "not found" not in needed, file
        for name in ("libdw", "libelf", "libfmt"):  # no system need have them
            for path in re.findall(rf"{name}\S* => (\S+)", needed):
                assert pathlib.Path(path).resolve().is_relative_to(sys.prefix), (file, path)


def test_binaries_need_no_newer_glibc_than_the_tag_says() -> None:
    promised = tuple(map(int, re.search(r"manylinux_(\d+)_(\d+)", WHEEL.name).groups()))  # type: ignore[union-attr]
    newest = (0, 0)
    for file in BINARIES:
        needs = subprocess.run(["objdump", "-p", file], capture_output=True, text=True, check=True).stdout  # not the names of weak symbols
        for version in re.findall(r"GLIBC_(\d+)\.(\d+)", needs.partition("Version References")[2]):
            newest = max(newest, (int(version[0]), int(version[1])))
    assert newest == promised
    assert promised <= (2, 34)  # RHEL 9, Amazon Linux 2023


def test_preloaded_libraries_keep_their_symbols() -> None:
    sections = subprocess.run(["readelf", "--sections", "--wide", freehold.find_malloc()], capture_output=True, text=True)
    assert ".symtab" in sections.stdout and ".debug_info" not in sections.stdout
