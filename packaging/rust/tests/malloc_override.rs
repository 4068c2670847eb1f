// SPDX-License-Identifier: MIT
//! The feature `override`: malloc and operator new of this whole process are Freehold's, also as libc's own functions call them.
use std::ffi::{c_char, c_int, CStr};

use freehold as _; // linked, although nothing of it is named

extern "C" {
    fn malloc(bytes: usize) -> *mut u8;
    fn free(block: *mut u8);
    fn strdup(text: *const c_char) -> *mut c_char;
    fn freehold_is_active() -> c_int;
}

#[test]
fn malloc_and_what_calls_it_in_libc_are_freeholds() {
    unsafe {
        assert_eq!(freehold_is_active(), 1);
        let block = malloc(100);
        assert!(freehold::usable_size(block) >= 100);
        free(block);
        let copy = strdup(b"a text\0".as_ptr().cast());
        assert!(freehold::usable_size(copy.cast()) >= 7);
        assert_eq!(CStr::from_ptr(copy).to_bytes(), b"a text");
        free(copy.cast());
    }
}

#[test]
fn rusts_system_allocator_is_freehold_then() {
    let text = String::from("a text on the heap");
    assert!(unsafe { freehold::usable_size(text.as_ptr()) } >= text.len());
}
