//! Ends the process with an error message when it is out of memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

/// The system's allocator, except that when it is out of memory (`ulimit -v`, a control group) the
/// process ends with an error, a hint and exit code 1 instead of an abort.
///
/// A binary uses it by `#[global_allocator]`. Costs a comparison an allocation.
pub struct Memory;

/// The exit code of a process that ran, but not to its end.
const EXIT_CODE: i32 = 1;

const MESSAGE: &[u8] = b"error: the system gives this process no more memory\n\
    hint: raise its limits (`ulimit -v`, the memory of its control group), or use fewer clients, \
    workers or questions\n";

// SAFETY: each call is the system allocator's own, with the arguments as given, and what it
// returns is returned as it is unless it is null, from where nothing returns.
unsafe impl GlobalAlloc for Memory {
    // SAFETY: the caller's promises are those that the system's allocator asks for.
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        given(unsafe { System.alloc(layout) })
    }

    // SAFETY: the caller's promises are those that the system's allocator asks for.
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        given(unsafe { System.alloc_zeroed(layout) })
    }

    // SAFETY: the caller's promises are those that the system's allocator asks for.
    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        given(unsafe { System.realloc(memory, layout, size) })
    }

    // SAFETY: the caller's promises are those that the system's allocator asks for.
    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }
}

#[inline]
fn given(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        exhausted();
    }
    memory
}

/// Whether a thread has reported the lack of memory.
static IS_TOLD: AtomicBool = AtomicBool::new(false);

/// Reports the lack of memory, once for all threads, and ends the process. Allocates nothing.
#[cold]
pub fn exhausted() -> ! {
    if !IS_TOLD.swap(true, Ordering::SeqCst) {
        // SAFETY: the message is valid for its length. A failed write is ignored.
        unsafe { libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len()) };
        // SAFETY: ends the process without running anything of it, which might allocate.
        unsafe { libc::_exit(EXIT_CODE) };
    }
    loop {
        // SAFETY: waits for the end of the process, which another thread has begun.
        unsafe { libc::pause() };
    }
}

/// Address space that the C library maps at once for a thread's heap arena.
const HEAP_OCTETS: usize = 64 << 20;

/// Ends the process as [`exhausted`] does where the C library would abort it: glibc does so in a
/// thread for whose destructors it gets no memory.
pub fn end_aborts_without_memory() {
    let handler = on_abort as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler calls only what may be called in one (signal-safety(7)), and mmap and
    // munmap, which are system calls. Where it cannot be installed, abort does what it always does.
    unsafe { libc::signal(libc::SIGABRT, handler) };
}

extern "C" fn on_abort(_: libc::c_int) {
    if IS_TOLD.load(Ordering::SeqCst) || !has_room() {
        exhausted();
    }
    // The C library continues and ends the process.
}

fn has_room() -> bool {
    let (access, kind) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping touches no other, and nothing refers to it when it is removed.
    unsafe {
        let there = libc::mmap(std::ptr::null_mut(), HEAP_OCTETS, access, kind, -1, 0);
        there != libc::MAP_FAILED && libc::munmap(there, HEAP_OCTETS) == 0
    }
}
