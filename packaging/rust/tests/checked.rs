// SPDX-License-Identifier: MIT
//! Misuse by unsafe code, in checked mode and with a guard for every block. Each kind ends a process of its own: this file, run again.
use std::alloc::{alloc, alloc_zeroed, dealloc, realloc, Layout};
use std::mem::ManuallyDrop;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use freehold::Freehold;

#[global_allocator]
static ALLOCATOR: Freehold = Freehold;

const CHECKED: (&str, &str) = ("FREEHOLD_CHECK", "1");
const GUARDED: (&str, &str) = ("FREEHOLD_GUARD_RATE", "1");
const ABORTED: Option<i32> = Some(6);
const FAULT: Option<i32> = Some(11);

fn layout(size: usize, alignment: usize) -> Layout {
    Layout::from_size_align(size, alignment).unwrap()
}

/// A vector that owns `wrong(capacity)` of its block, by its own account.
fn vector_with(wrong: fn(usize) -> usize) -> Vec<u64> {
    let mut right = ManuallyDrop::new(Vec::<u64>::with_capacity(64));
    right.push(1);
    unsafe { Vec::from_raw_parts(right.as_mut_ptr(), 1, wrong(right.capacity())) }
}

unsafe fn commit(kind: &str) {
    match kind {
        "right layouts" => {
            for alignment in [1, 16, 32, 4096] {
                for (from, to) in [(1, 100), (100, 90), (5000, 60_000), (60_000, 50_000)] {
                    let block = alloc_zeroed(layout(from, alignment));
                    assert!((0..from).all(|at| *block.add(at) == 0));
                    block.write_bytes(1, from);
                    let moved = realloc(block, layout(from, alignment), to);
                    assert_eq!(moved as usize % alignment, 0);
                    assert!((0..from.min(to)).all(|at| *moved.add(at) == 1));
                    moved.write_bytes(2, to);
                    dealloc(moved, layout(to, alignment));
                }
            }
            assert_eq!(freehold::check_all(), 0);
        }
        "double free" => {
            let block = alloc(layout(100, 8));
            dealloc(block, layout(100, 8));
            dealloc(block, layout(100, 8));
        }
        "wrong size" => dealloc(alloc(layout(100, 8)), layout(99, 8)),
        "wrong alignment" => dealloc(alloc(layout(100, 64)), layout(100, 128)),
        "wrong capacity at drop" => drop(vector_with(|capacity| capacity - 1)),
        "wrong capacity at growth" => {
            let mut vector = vector_with(|capacity| capacity / 2);
            vector.resize(1000, 0);
        }
        "too much capacity at growth" => {
            let mut vector = vector_with(|capacity| capacity * 2);
            vector.resize(1000, 0);
        }
        "wrong aligned size at growth" => {
            let _ = realloc(alloc(layout(100, 64)), layout(200, 64), 300);
        }
        "interior" => dealloc(alloc(layout(100, 8)).add(16), layout(84, 8)),
        "foreign" => dealloc(std::ptr::addr_of!(ALLOCATOR) as *mut u8, layout(16, 8)),
        "write behind" => {
            let block = alloc(layout(100, 8));
            block.add(100).write_volatile(7);
            dealloc(block, layout(100, 8));
        }
        "write to freed, looked for" => {
            let block = alloc(layout(100, 8));
            dealloc(block, layout(100, 8));
            block.add(50).write_volatile(7);
            freehold::check_all();
        }
        "read of freed" => {
            let block = alloc_zeroed(layout(100, 8));
            dealloc(block, layout(100, 8));
            block.add(50).read_volatile();
        }
        other => panic!("no kind {other}"),
    }
}

#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn child() {
    unsafe { commit(&std::env::var("FREEHOLD_TEST_KIND").unwrap()) }
}

/// How a process ended that did this, and what Freehold said.
fn run(kind: &str, mode: (&str, &str)) -> (ExitStatus, String) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "child",
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("FREEHOLD_TEST_KIND", kind)
        .env(mode.0, mode.1)
        .output()
        .unwrap();
    (
        output.status,
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

fn assert_reported(kind: &str, mode: (&str, &str), signal: Option<i32>, wanted: &[&str]) {
    let (status, said) = run(kind, mode);
    assert_eq!(status.signal(), signal, "{kind}: {status}\n{said}");
    for words in wanted {
        assert!(said.contains(words), "{kind}, without \"{words}\":\n{said}");
    }
}

#[test]
fn right_layouts_are_accepted() {
    for mode in [CHECKED, GUARDED] {
        let (status, said) = run("right layouts", mode);
        assert!(status.success() && !said.contains("freehold:"), "{said}");
    }
}

#[test]
fn checked_mode_reports_misuse() {
    const WRONG: &str = "freehold: free of a block with a wrong size or alignment: 0x";
    for (kind, wanted) in [
        ("double free", ["freehold: double free: 0x", "of 100 bytes"]),
        ("wrong size", [WRONG, "freed with the size 99"]),
        ("wrong alignment", [WRONG, "freed with the alignment 128"]),
        ("wrong capacity at drop", [WRONG, "freed with the size 504"]),
        (
            "wrong capacity at growth",
            [WRONG, "freed with the size 256"],
        ),
        (
            "too much capacity at growth",
            [WRONG, "freed with the size 1024"],
        ),
        (
            "wrong aligned size at growth",
            [WRONG, "freed with the size 200"],
        ),
        (
            "interior",
            [
                "freehold: free of a pointer into the middle of a block: 0x",
                "",
            ],
        ),
        (
            "foreign",
            [
                "freehold: free of a pointer that is not from this allocator: 0x",
                "",
            ],
        ),
        (
            "write behind",
            [
                "freehold: write behind the end of a block: 0x",
                "1 behind the end",
            ],
        ),
        (
            "write to freed, looked for",
            ["freehold: write to a freed block: 0x", "at offset 50"],
        ),
    ] {
        assert_reported(kind, CHECKED, ABORTED, &wanted);
    }
}

#[test]
fn guards_report_misuse() {
    assert_reported(
        "read of freed",
        GUARDED,
        FAULT,
        &[
            "freehold: use of a freed block: 0x",
            "50 bytes into a block of 100",
        ],
    );
    assert_reported(
        "double free",
        GUARDED,
        ABORTED,
        &["freehold: double free: 0x"],
    );
}
