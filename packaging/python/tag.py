# SPDX-License-Identifier: MIT
"""Hatchling's hook: the wheel holds programs of one machine, but needs no particular Python.

In a source distribution it compiles them first, from native/: the malloc and the process pool, which need a C++20 compiler alone,
and the command, where its libraries are there (docs/install.md says which).
"""
import os
import pathlib
import shutil
import subprocess
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Where a build has a file, and where the package has it.
LIBRARIES = {"libfreehold.so": "lib", "freehold/process/libfreehold_process.so": "lib", "bin/freehold-worker": "bin"}
COMMAND = {"bin/freehold": "bin", "bin/freehold-doctor-example": "libexec/freehold", "libfreehold-probe.so": "lib", "libfreehold-pad.so": "lib",
           "libfreehold-age.so": "lib"}
TARGETS = ["freehold_malloc_shared", "freehold_process_shared", "freehold_worker"]
OFF = ["-DFREEHOLD_BUILD_TESTS=OFF", "-DFREEHOLD_BUILD_BENCH=OFF", "-DFREEHOLD_BUILD_GEARMAN=OFF", "-DFREEHOLD_BUILD_LAB=OFF"]


def compile_native(root: pathlib.Path) -> None:
    build = root / "native-build"
    configure = ["cmake", "-G", "Ninja", "-S", str(root / "native"), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release", *OFF]
    files, targets = {**LIBRARIES, **COMMAND}, [*TARGETS, "freehold_demo"]
    if "FREEHOLD_SDIST_LIBRARIES" in os.environ or subprocess.run(configure, check=False).returncode != 0:
        shutil.rmtree(build, ignore_errors=True)
        files, targets = LIBRARIES, TARGETS
        subprocess.run([*configure, "-DFREEHOLD_BUILD_CLI=OFF", "-DFREEHOLD_BUILD_DOCTOR=OFF"], check=True)
    subprocess.run(["cmake", "--build", str(build), "--target", *targets], check=True)
    for name, folder in files.items():
        to = root / "freehold" / folder
        to.mkdir(parents=True, exist_ok=True)
        shutil.copy(build / name, to)


class Tag(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: "dict[str, Any]") -> None:
        if self.target_name != "wheel":
            return
        root = pathlib.Path(self.root)
        if (root / "native").is_dir():
            compile_native(root)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ.get('FREEHOLD_WHEEL_PLATFORM', f'linux_{os.uname().machine}')}"
