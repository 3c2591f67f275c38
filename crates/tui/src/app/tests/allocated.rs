//! Counts the memory that a test has allocated, by thread: tests do not count each other's.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

pub(super) struct Allocated;

#[global_allocator]
static ALLOCATOR: Allocated = Allocated;

impl Allocated {
    /// Bytes that this thread has allocated and not freed.
    pub(super) fn now() -> isize {
        NOW.get()
    }

    /// The most that it has had since [`Allocated::forget_most`].
    pub(super) fn most() -> isize {
        MOST.get()
    }

    pub(super) fn forget_most() {
        MOST.set(NOW.get());
    }

    fn add(bytes: isize) {
        // A thread that ends has no counter any more.
        let _ = NOW.try_with(|now| {
            now.set(now.get() + bytes);
            let _ = MOST.try_with(|most| most.set(most.get().max(now.get())));
        });
    }
}

#[allow(unsafe_code, reason = "an allocator cannot be written without it")]
// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Allocated {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size() as isize);
        // SAFETY: as for the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::add(-(layout.size() as isize));
        // SAFETY: as for the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}
