// SPDX-License-Identifier: MIT
//! A program without the standard library: the allocator is Freehold, the rest is libc.
#![no_std]
#![no_main]
extern crate alloc;

use alloc::vec::Vec;
use core::ffi::{c_char, c_int};

#[global_allocator]
static ALLOCATOR: freehold::Freehold = freehold::Freehold;

#[link(name = "c")]
extern "C" {
    fn printf(format: *const c_char, ...) -> c_int;
    fn abort() -> !;
}

#[no_mangle]
extern "C" fn main(_: c_int, _: *const *const c_char) -> c_int {
    let numbers: Vec<u64> = (1..=100_000).collect();
    let ours = unsafe { freehold::usable_size(numbers.as_ptr().cast()) } != 0;
    unsafe {
        printf(
            b"sum %lu, %s\n\0".as_ptr().cast(),
            numbers.iter().sum::<u64>(),
            if ours {
                b"ours\0".as_ptr()
            } else {
                b"not ours\0".as_ptr()
            },
        )
    };
    0
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unsafe { abort() }
}

// The precompiled library `alloc` names it, although nothing unwinds.
#[no_mangle]
extern "C" fn rust_eh_personality() {}
