# SPDX-License-Identifier: MIT
"""A program that uses the package. It ends with status 1 if malloc is Freehold's without `override`, or is not with it."""
import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout


class FreeholdTestConan(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["WITH_OVERRIDE"] = bool(self.dependencies["freehold"].options.override)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            for program in self.programs():
                self.run(os.path.join(self.cpp.build.bindir, program), env="conanrun")

    def programs(self):
        if self.dependencies["freehold"].options.override:
            return ["libraries", "malloc_static", "malloc_shared"]
        return ["libraries"]
