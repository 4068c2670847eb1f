# SPDX-License-Identifier: MIT
"""The mallocs to compare with: where each comes from, and how the newer ones are built.

Debian's packages are used as installed. Newer sources are taken from the crates that vendor them: `cargo vendor` into a
scratch project, then the C or C++ sources are compiled as their own release builds do, into build/bench/peers. Wheels of
PyPI are installed into build/bench/wheels. Nothing of them is shipped. A peer that cannot be had is reported as missing,
with the reason and the command that gets it; the others still run.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

from .refusal import refuse

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "bench"
PEERS = BUILD / "peers"
CRATES = BUILD / "crates"
WHEELS = BUILD / "wheels"
LOGS = BUILD / "logs"

OURS = "freehold"
SYSTEM = "glibc"

DEBIAN = {  # name -> (library, package)
    "jemalloc-deb": ("libjemalloc.so.2", "libjemalloc2"),
    "gperftools": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    "onetbb": ("libtbbmalloc_proxy.so.2", "libtbbmalloc2"),
    "mimalloc-deb": ("libmimalloc.so.2.0", "libmimalloc2.0"),
}
CRATE_VERSIONS = {  # pinned, so that two runs compare with the same sources
    "libmimalloc-sys": "0.1.49",  # mimalloc 2.3.2
    "snmalloc-sys": "0.7.6",
    "rpmalloc-sys": "0.2.3",  # rpmalloc 1.4.3 (b097fd0)
    "tikv-jemalloc-sys": "0.7.1",  # jemalloc 5.3.1
    "libtcmalloc-sys": "0.1.14",  # google/tcmalloc of June 2025, which has no version numbers
    "libffi-sys": "4.2.2",  # dlmalloc 2.8.6, for `script/bench mspace`
    "hardened-malloc-sys": "16.0.2026071503",  # GrapheneOS's hardened_malloc of July 2026
}
WHEEL_VERSIONS = {"cmeel-mimalloc": "3.4.3"}
RELEASE = ["-O3", "-DNDEBUG", "-fPIC", "-shared", "-pthread", "-ftls-model=initial-exec", "-fno-builtin-malloc"]


class Missing(Exception):
    """Says why a peer is not there."""


@dataclass(frozen=True)
class Allocator:
    name: str
    library: str | None  # None: no preload
    version: str
    source: str = ""  # the package, crate or wheel that it comes from

    @property
    def label(self):
        """For tables: a peer's version says which release was compared; ours stands above the tables."""
        return self.name if self.name == OURS or not self.version else f"{re.sub('[23]$', '', self.name)} {self.version}"


def debian_allocator(name):
    library, package = DEBIAN[name]
    found = next(pathlib.Path("/usr/lib").glob(f"*/{library}"), None)
    if found is None:
        raise Missing(f"{library} is not installed: script/bootstrap peers, or apt-get install {package}")
    query = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True, check=False)
    package_version = query.stdout.strip() or "unknown"
    version = re.sub(r"[+-](ds|dfsg|\d).*$", "", package_version.rpartition("-")[0] or package_version)
    return Allocator(name, str(found), version, f"package {package} {package_version}")


def run_logged(log, command, cwd=None, env=None):
    """Runs a build step; its output goes to a log, whose end becomes the reason if the step fails."""
    LOGS.mkdir(parents=True, exist_ok=True)
    path = LOGS / f"{log}.log"
    try:
        with path.open("a") as out:
            done = subprocess.run(command, cwd=cwd, env=env, stdout=out, stderr=subprocess.STDOUT, timeout=900, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        last = [line for line in path.read_text(errors="replace").splitlines() if line.strip()][-1:]
        raise Missing(f"{command[0]} failed ({' '.join(last)}); see {path.relative_to(ROOT)}")


def crate_sources(crate):
    """The unpacked sources of one crate. Each has a scratch project of its own, so that one that fails hurts no other."""
    project = CRATES / crate
    sources = project / "vendor" / crate
    if sources.exists():
        return sources
    if shutil.which("cargo") is None:
        raise Missing(f"its sources come from the crate {crate}, and cargo is not installed: script/bootstrap crates")
    (project / "src").mkdir(parents=True, exist_ok=True)
    (project / "src" / "lib.rs").write_text("")
    (project / "Cargo.toml").write_text(
        f'[package]\nname = "peer"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]\n{crate} = "={CRATE_VERSIONS[crate]}"\n'
        "\n[workspace]\n"
    )
    run_logged(crate, ["cargo", "vendor", "--quiet"], cwd=project)
    return sources


def compiler(language, best=()):
    """The first compiler there is: the one in CC or CXX, a preferred one, the system's."""
    chosen = os.environ.get({"c": "CC", "c++": "CXX"}[language])
    fallback = {"c": "cc", "c++": "c++"}[language]
    return next((c for c in (chosen, *best) if c and shutil.which(c)), fallback)


def build_mimalloc2(output):
    sources = crate_sources("libmimalloc-sys") / "c_src" / "mimalloc" / "v2"
    defines = ["-DMI_MALLOC_OVERRIDE", "-DMI_SHARED_LIB", "-DMI_SHARED_LIB_EXPORT", "-DMI_BUILD_RELEASE"]
    run_logged(output.stem, [compiler("c"), *RELEASE, "-fvisibility=hidden", *defines, f"-I{sources}/include",
                             f"{sources}/src/static.c", "-o", str(output)])


def build_rpmalloc(output):
    sources = crate_sources("rpmalloc-sys") / "rpmalloc" / "rpmalloc"
    defines = ["-D_GNU_SOURCE=1", "-DENABLE_PRELOAD=1", "-DENABLE_OVERRIDE=1"]
    run_logged(output.stem, [compiler("c"), *RELEASE, "-std=gnu11", *defines, f"{sources}/rpmalloc.c", "-o", str(output)])


def build_snmalloc(output):
    """snmalloc's own CMake project and its shim. It asks for clang: GCC compiles its fast path worse."""
    sources = crate_sources("snmalloc-sys") / "upstream"
    tree = BUILD / "trees" / "snmalloc"
    cxx = compiler("c++", ["clang++-19", "clang++"])
    run_logged(output.stem, ["cmake", "-S", str(sources), "-B", str(tree), "-DCMAKE_BUILD_TYPE=Release",
                             "-DSNMALLOC_BUILD_TESTING=OFF", f"-DCMAKE_CXX_COMPILER={cxx}"])
    run_logged(output.stem, ["cmake", "--build", str(tree), "--target", "snmallocshim", "--parallel", "2"])
    shutil.copy(tree / "libsnmallocshim.so", output)


def build_jemalloc(output):
    crate = crate_sources("tikv-jemalloc-sys")
    tree = BUILD / "trees" / "jemalloc"
    if not tree.exists():
        shutil.copytree(crate / "jemalloc", tree)
        shutil.copy(crate / "configure" / "configure", tree / "configure")
    version = re.search(r'^version = "[^"+]*\+([^"]*)"', (crate / "Cargo.toml").read_text(), re.MULTILINE).group(1)
    run_logged(output.stem, ["sh", "./configure", f"--with-version={version}", "--disable-static", "--enable-doc=no"], cwd=tree)
    run_logged(output.stem, ["make", "-j2", "build_lib_shared"], cwd=tree)
    shutil.copy(tree / "lib" / "libjemalloc.so.2", output)


def build_tcmalloc(output):
    """The crate's own list of source files; its bridge to Rust is replaced by the exported malloc family."""
    crate = crate_sources("libtcmalloc-sys")
    listed = re.findall(r'"(c_src/[^"]+\.(?:cc|S))"', (crate / "build.rs").read_text())
    sources = [f for f in listed if "bridge" not in f] + ["c_src/tcmalloc/tcmalloc/tcmalloc.cc"]
    tree = BUILD / "trees" / "tcmalloc"
    tree.mkdir(parents=True, exist_ok=True)
    files = "\n".join(f"  {crate / f}" for f in sources)
    (tree / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.25)
project(tcmalloc LANGUAGES CXX ASM)
find_package(Threads REQUIRED)
add_library(tcmalloc SHARED
{files})
target_compile_features(tcmalloc PRIVATE cxx_std_17)
target_compile_definitions(tcmalloc PRIVATE NOMINMAX TCMALLOC_INTERNAL_8K_PAGES)
target_compile_options(tcmalloc PRIVATE -w -O2 -fno-omit-frame-pointer -ftls-model=initial-exec
                       $<$<COMPILE_LANGUAGE:CXX>:-fno-builtin-malloc>)
target_include_directories(tcmalloc PRIVATE {crate}/c_src/abseil-cpp {crate}/c_src/tcmalloc)
target_link_libraries(tcmalloc PRIVATE Threads::Threads)
""")
    cxx = compiler("c++", ["clang++-19", "clang++"])  # its authors' compiler
    cc = cxx.replace("clang++", "clang")
    run_logged(output.stem, ["cmake", "-S", str(tree), "-B", str(tree / "build"), "-DCMAKE_BUILD_TYPE=Release",
                             f"-DCMAKE_CXX_COMPILER={cxx}", f"-DCMAKE_ASM_COMPILER={cc}"])
    run_logged(output.stem, ["cmake", "--build", str(tree / "build"), "--target", "tcmalloc", "--parallel", "2"])
    shutil.copy(tree / "build" / "libtcmalloc.so", output)


def build_hardened_malloc(output):
    """With the settings of its default configuration, which the crate keeps as a list of macros."""
    crate = crate_sources("hardened-malloc-sys")
    sources = crate / "vendor" / "hardened-malloc"
    settings = [line.strip() for line in (crate / "config-default.conf").read_text().splitlines() if re.match(r"\w+=", line)]
    flags = ["-O3", "-fPIC", "-D_GNU_SOURCE", "-fno-plt", "-fvisibility=hidden", "-pthread", f"-I{sources}/include",
             f"-I{sources}/third_party", *(f"-D{one}" for one in settings)]
    tree = BUILD / "trees" / "hardened_malloc"
    tree.mkdir(parents=True, exist_ok=True)
    objects = []
    for file in (*(f"{name}.c" for name in ("chacha", "h_malloc", "memory", "pages", "random", "util")), "new.cc"):
        command = [compiler("c++"), "-std=c++17", "-fsized-deallocation"] if file.endswith(".cc") else [compiler("c", ["clang-19"]), "-std=c2x"]
        objects.append(str(tree / f"{file}.o"))
        run_logged(output.stem, [*command, *flags, "-c", str(sources / file), "-o", objects[-1]])
    run_logged(output.stem, [compiler("c++"), "-shared", "-pthread", *objects, "-o", str(output)])


BUILT = {  # name -> (crate, version shown, how to build it)
    "mimalloc2": ("libmimalloc-sys", "2.3.2", build_mimalloc2),
    "snmalloc": ("snmalloc-sys", "0.7.6", build_snmalloc),
    "rpmalloc": ("rpmalloc-sys", "1.4.3", build_rpmalloc),
    "jemalloc": ("tikv-jemalloc-sys", "5.3.1", build_jemalloc),
    "tcmalloc": ("libtcmalloc-sys", "2025-06", build_tcmalloc),
    "hardened_malloc": ("hardened-malloc-sys", "2026-07", build_hardened_malloc),
}
# As a peer's own documents ask: tcmalloc's per-CPU caches need the rseq area, which glibc takes otherwise.
ENVIRONMENT = {"tcmalloc": {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}}


def preloaded(library, name=None):
    """The environment of a program under a library; None: under the system's malloc. `name`: the allocator's, of which it asks more."""
    return {**os.environ, **ENVIRONMENT.get(name, {}), **({"LD_PRELOAD": library} if library else {})}


WHEEL = {  # name -> (wheel, the library in it)
    "mimalloc3": ("cmeel-mimalloc", "cmeel.prefix/lib/libmimalloc.so.3"),
}


def built_allocator(name):
    crate, version, build = BUILT[name]
    output = PEERS / CRATE_VERSIONS[crate] / f"lib{name}.so"
    if not output.exists():
        output.parent.mkdir(parents=True, exist_ok=True)
        print(f"building {name} {version} …", flush=True)
        build(output)
    return Allocator(name, str(output), version, f"crate {crate} {CRATE_VERSIONS[crate]}")


def wheel_allocator(name):
    wheel, library = WHEEL[name]
    version = WHEEL_VERSIONS[wheel]
    folder = WHEELS / f"{wheel}-{version}"
    output = folder / library
    if not output.exists():
        if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
            raise Missing(f"it comes from the wheel {wheel}, and pip is not installed: script/bootstrap wheels")
        run_logged(wheel, [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                           "--target", str(folder), f"{wheel}=={version}"])
    if not output.exists():
        raise Missing(f"the wheel {wheel} {version} has no {library}")
    return Allocator(name, str(output.resolve()), version, f"wheel {wheel} {version}")


def our_version():
    described = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False)
    return described.stdout.strip() or "this tree"


def our_library():
    """FREEHOLD_LIBRARY, or the release build's."""
    chosen = os.environ.get("FREEHOLD_LIBRARY")
    candidates = [pathlib.Path(chosen)] if chosen else sorted((ROOT / "build" / "release").rglob("libfreehold.so"))
    found = next((c for c in candidates if c.exists()), None)
    if found is None:
        raise Missing(f"{chosen} does not exist" if chosen else "build/release has no libfreehold.so: build the release preset")
    return Allocator(OURS, str(found.resolve()), our_version(), "FREEHOLD_LIBRARY" if chosen else "build/release")


def scudo_allocator():
    """Of Clang's runtime, as Debian's package has it."""
    found = sorted(pathlib.Path("/usr/lib").glob("llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-x86_64.so"))
    if not found:
        raise Missing("libclang_rt.scudo_standalone is not installed: script/bootstrap build, or apt-get install libclang-rt-19-dev")
    return Allocator("scudo", str(found[-1]), f"of Clang {found[-1].parts[-4]}", "package libclang-rt-dev")


ALL = [OURS, SYSTEM, "mimalloc3", "mimalloc2", "snmalloc", "rpmalloc", "jemalloc", "tcmalloc", "gperftools", "onetbb"]
OLDER = ["jemalloc-deb", "mimalloc-deb"]  # Debian's versions; only when asked for
HARDENED = ["hardened_malloc", "scudo"]  # which look for misuse; only when asked for


def find(name):
    """The allocator of that name (or name=/path/to/library.so). Raises Missing with the reason."""
    if "=" in name:
        label, path = name.split("=", 1)
        if not os.path.exists(path):
            raise Missing(f"{path} does not exist")
        return Allocator(label, os.path.abspath(path), "given", path)
    if name == OURS:
        return our_library()
    if name == SYSTEM:
        return Allocator(SYSTEM, None, " ".join(os.confstr("CS_GNU_LIBC_VERSION").split()[1:]), "the system")
    if name in DEBIAN:
        return debian_allocator(name)
    if name in BUILT:
        return built_allocator(name)
    if name in WHEEL:
        return wheel_allocator(name)
    if name == "scudo":
        return scudo_allocator()
    raise Missing(f"unknown; known are {', '.join(ALL + OLDER + HARDENED)}, or name=/path/to/library.so")


def find_all(names):
    """([allocator …], {name: reason it is missing}). Refuses unknown names, and a list of which none is there."""
    known = ALL + OLDER + HARDENED
    if unknown := [name for name in names if "=" not in name and name not in known]:
        refuse(f"no such allocator: {', '.join(unknown)}; there are {', '.join(known)}, or name=/path/to/library.so")
    found, missing = [], {}
    for name in names:
        try:
            found.append(find(name))
        except Missing as reason:
            missing[name] = str(reason)
    if not found:
        refuse("no allocator to measure: " + "; ".join(f"{name}: {reason}" for name, reason in missing.items()))
    return found, missing
