// SPDX-License-Identifier: MIT
// Rust with a global allocator of the program's own: free lists behind one spin lock. malloc is not called for a Box.
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

// As std::hint::black_box, which older compilers do not have.
fn black_box<T>(value: T) -> T {
    unsafe {
        let copy = std::ptr::read_volatile(&value);
        std::mem::forget(value);
        copy
    }
}

const LARGEST: usize = 1024;
const SLAB: usize = 64 * 1024;

struct Listed {
    held: AtomicBool,
    lists: UnsafeCell<[*mut u8; LARGEST / 16 + 1]>,
}

// The lists are touched under `held` only.
unsafe impl Sync for Listed {}

impl Listed {
    fn locked<R>(&self, act: impl FnOnce(&mut [*mut u8; LARGEST / 16 + 1]) -> R) -> R {
        while self.held.swap(true, Ordering::Acquire) {
            spin_loop();
        }
        let result = act(unsafe { &mut *self.lists.get() });
        self.held.store(false, Ordering::Release);
        result
    }
}

unsafe impl GlobalAlloc for Listed {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LARGEST || layout.align() > 16 {
            return System.alloc(layout);
        }
        let kind = (layout.size() + 15) / 16;
        self.locked(|lists| {
            if lists[kind].is_null() {
                let slab = System.alloc(Layout::from_size_align_unchecked(SLAB, 16));
                for i in 0..SLAB / (kind * 16) {
                    let block = slab.add(i * kind * 16);
                    *(block as *mut *mut u8) = lists[kind];
                    lists[kind] = block;
                }
            }
            let block = lists[kind];
            lists[kind] = *(block as *mut *mut u8);
            block
        })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.size() > LARGEST || layout.align() > 16 {
            return System.dealloc(block, layout);
        }
        self.locked(|lists| {
            let kind = (layout.size() + 15) / 16;
            *(block as *mut *mut u8) = lists[kind];
            lists[kind] = block;
        });
    }
}

#[global_allocator]
static ALLOCATOR: Listed = Listed { held: AtomicBool::new(false), lists: UnsafeCell::new([null_mut(); LARGEST / 16 + 1]) };

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let (threads, rounds): (usize, usize) = (words[1].parse().unwrap(), words[2].parse().unwrap());
    let running: Vec<_> = (0..threads)
        .map(|_| {
            thread::spawn(move || {
                for _ in 0..rounds / threads {
                    let boxes: Vec<Box<[u64; 6]>> = (0..600).map(|i| Box::new([i; 6])).collect();
                    black_box(boxes);
                }
            })
        })
        .collect();
    running.into_iter().for_each(|thread| thread.join().unwrap());
    println!("{threads} threads, {rounds} rounds");
}
