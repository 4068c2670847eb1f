// SPDX-License-Identifier: MIT
//! With musl's malloc, which Rust's standard library calls.
mod work;

fn main() {
    work::run();
}
