// SPDX-License-Identifier: MIT
//! Compiles the engine's C++ sources into a static library. They lie in `freehold/` of this package, or of the tree that this folder
//! belongs to. The engine needs libc alone, so no C++ runtime is linked.
use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// The folders of the engine; `malloc` has the exported symbols, of which the crate takes some.
const PARTS: [&str; 8] = ["alloc", "base", "check", "heap", "os", "profile", "slots", "sync"];
/// The malloc family and operator new, for the feature `override`. The linker takes operator new only for a program that has C++
/// in it, and so a C++ runtime.
const OVERRIDE: [&str; 3] = ["malloc.cpp", "malloc_info.cpp", "new.cpp"];

fn main() {
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") != "linux" || !["gnu", "musl"].contains(&target("ENV").as_str()) {
        refuse("Freehold needs Linux with glibc or musl");
    }
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = [package.clone(), package.join("../..")]
        .into_iter()
        .find(|root| root.join("freehold/alloc/engine.hpp").exists())
        .unwrap_or_else(|| refuse("the folder freehold/ with the C++ sources is not there"));
    println!("cargo:rerun-if-changed={}", root.join("freehold").display());
    println!("cargo:rerun-if-changed=src");

    let mut sources: Vec<PathBuf> = PARTS
        .iter()
        .flat_map(|part| sources_of(&root.join("freehold").join(part)))
        .collect();
    sources.push(root.join("freehold/malloc/stats.cpp"));
    sources.push(root.join("freehold/malloc/count.cpp"));
    sources.push(root.join("freehold/malloc/scope.cpp"));
    sources.push(package.join("src/shim.cpp"));
    compiler(&root).files(sources).compile("freehold_engine");

    if env::var_os("CARGO_FEATURE_POOLS").is_some() {
        compiler(&root)
            .cpp_link_stdlib("stdc++")
            .flag("-fexceptions")
            .files(sources_of(&root.join("freehold/pool")))
            .file(package.join("src/pool_shim.cpp"))
            .compile("freehold_pools");
    }
    if env::var_os("CARGO_FEATURE_OVERRIDE").is_some() {
        let sources = OVERRIDE
            .iter()
            .map(|name| root.join("freehold/malloc").join(name));
        compiler(&root).files(sources).compile("freehold_override");
        compiler(&root)
            .flag("-fexceptions")
            .file(root.join("freehold/malloc/cxx_runtime.cpp"))
            .compile("freehold_cxx_runtime");
    }
}

/// As freehold/CMakeLists.txt does it, and optimised whatever the profile is: every program calls this all the time.
fn compiler(root: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .cpp_link_stdlib(None)
        .std("c++20")
        .opt_level(2)
        .define("NDEBUG", None)
        .include(root)
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        .flag("-fno-plt")
        .flag("-ftls-model=initial-exec")
        .flag("-fvisibility=hidden")
        .flag("-fvisibility-inlines-hidden")
        .flag("-pthread")
        .warnings(false);
    build
}

/// Those of a folder and of the folders in it.
fn sources_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|error| refuse(&format!("{}: {error}", folder.display())));
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .flat_map(|path| if path.is_dir() { sources_of(&path) } else { vec![path] })
        .collect();
    files.retain(|file| file.extension().map_or(false, |end| end == "cpp"));
    files.sort();
    files
}

fn refuse(why: &str) -> ! {
    eprintln!("freehold: {why}");
    process::exit(2)
}
