// SPDX-License-Identifier: MIT
//! With Freehold.
mod work;

#[global_allocator]
static ALLOCATOR: freehold::Freehold = freehold::Freehold;

fn main() {
    let block = Box::new([0u8; 100]);
    // SAFETY: the block is alive.
    let usable = unsafe { freehold::usable_size(block.as_ptr()) };
    assert!(usable >= 100, "another allocator is active");
    work::run();
}
