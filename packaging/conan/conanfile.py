# SPDX-License-Identifier: MIT
"""Freehold's libraries as a Conan package. `override` adds what replaces malloc.

The sources are those of the tree that this file lies in; beside a conandata.yml, as in a release's recipe, those that it names.
"""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, get, load, rm, rmdir

required_conan_version = ">=2.0"

# Each library with those that it stands on.
LAYERS = {
    "base": [],
    "os": ["base"],
    "sync": ["os", "base"],
    "check": ["sync", "os", "base"],
    "profile": ["check", "sync", "os", "base"],
    "slots": ["sync", "os", "base"],
    "pool": ["slots", "check", "sync", "os", "base"],
    "alloc": ["profile", "slots", "check", "sync", "os", "base"],
    "heap": ["alloc", "check", "sync", "os", "base"],
    "timer": ["pool", "sync", "os", "base"],
    "process": ["sync", "os", "base"],
    "thread_alloc": ["alloc"],
    "thread_alloc_owner_pages": ["alloc"],
    "thread_alloc_article": ["alloc"],
}
HEADERS_ONLY = {"sync"}
# What freehold/malloc/CMakeLists.txt gives to programs that link these.
USE_MALLOC = ["-Wl,--undefined=malloc,--undefined=freehold_is_active,--undefined=freehold_refuse_sanitizers"]
USE_SHARED_MALLOC = ["-Wl,--no-as-needed", "-Wl,--undefined=_ZSt17__throw_bad_allocv,--undefined=_ZSt15get_new_handlerv"]


class FreeholdConan(ConanFile):
    name = "freehold"
    description = "A scalable malloc, pools, private heaps, timers and worker processes for multithreaded programs"
    license = "MIT"
    topics = ("malloc", "allocator", "memory-pool", "timer", "process-pool")
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"override": [True, False]}
    default_options = {"override": False}

    @property
    def _tree(self):
        return os.path.join(self.recipe_folder, os.pardir, os.pardir)

    def set_version(self):
        if self.conan_data:
            (self.version,) = self.conan_data["sources"]
            return
        text = load(self, os.path.join(self._tree, "CMakeLists.txt"))
        self.version = re.search(r"^  VERSION ([0-9.]+)$", text, re.MULTILINE).group(1)
        self.url = self.homepage = re.search(r'^  HOMEPAGE_URL "([^"]*)"', text, re.MULTILINE).group(1) or None

    def init(self):
        self.url = self.homepage = (self.conan_data or {}).get("homepage")

    def export_sources(self):
        if self.conan_data:
            return
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "freehold/*", "python/freehold/*", "third_party/uplot/LICENSE"):
            copy(self, pattern, self._tree, self.export_sources_folder, excludes="*__pycache__*")

    def source(self):
        if self.conan_data:
            get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def layout(self):
        cmake_layout(self)

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("freehold needs Linux with glibc")
        if self.settings.get_safe("compiler.cppstd"):
            check_min_cppstd(self, 20)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update({
            "FREEHOLD_BUILD_MALLOC": bool(self.options.override), "FREEHOLD_BUILD_DOCTOR": False, "FREEHOLD_BUILD_GEARMAN": False,
            "FREEHOLD_BUILD_CLI": False, "FREEHOLD_BUILD_TESTS": False, "FREEHOLD_BUILD_BENCH": False, "FREEHOLD_INSTALL": True})
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build(target="freehold_shipped")

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        # Conan writes its own, from package_info().
        for folder in ("cmake", "pkgconfig"):
            rmdir(self, os.path.join(self.package_folder, "lib", folder))
        rmdir(self, os.path.join(self.package_folder, "share", "doc"))
        rm(self, "process_gearman.hpp", os.path.join(self.package_folder, "include", "freehold"))

    def _component(self, name, libs, requires, flags=()):
        component = self.cpp_info.components[name]
        component.set_property("cmake_target_name", f"freehold::{name}")
        component.set_property("pkg_config_name", f"freehold-{name.replace('_', '-')}")
        component.libs = libs
        component.requires = requires
        component.system_libs = ["pthread"]
        component.exelinkflags = component.sharedlinkflags = list(flags)

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "freehold")
        # Not everything at once: a program chooses its libraries, and malloc is replaced where freehold::malloc is named.
        self.cpp_info.set_property("cmake_target_name", "freehold::all")
        for name, requires in LAYERS.items():
            self._component(name, [] if name in HEADERS_ONLY else [f"freehold_{name}"], requires)
        self._component("process_shared", ["freehold_process"], [])
        if self.options.override:
            self._component("malloc", ["freehold_malloc"], ["alloc"], USE_MALLOC)
            self._component("malloc_shared", ["freehold"], [], USE_SHARED_MALLOC)
        self.runenv_info.define_path("FREEHOLD_WORKER_PROGRAM", os.path.join(self.package_folder, "bin", "freehold-worker"))
