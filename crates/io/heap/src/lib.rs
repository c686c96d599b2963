//! How the C library hands out memory.

/// Bytes that the heap grows by at once. Pages count only when they are touched.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const GROWTH: libc::c_int = 1 << 20;

/// For a command that works on two threads for a moment and ends: all of them share one heap, which grows in large steps.
///
/// glibc gives each thread a heap of its own and asks the kernel for every few pages of it, which stops the page faults of the
/// other threads meanwhile. Rendering a large chart takes a few hundredths less processor time without that. A server is better off
/// with several heaps.
pub fn share() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(
        unsafe_code,
        reason = "there is no safe form of it; it takes two numbers and touches no memory of ours"
    )]
    // SAFETY: `mallopt` is safe to call at any time and from any thread; a number that it does not know changes nothing.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_TOP_PAD, GROWTH);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn threads_go_on_with_one_heap() {
        super::share();
        let made = |n: u8| (1..500usize).map(|size| vec![n; size]).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|n| std::thread::spawn(move || made(n))).collect();
        for (thread, n) in threads.into_iter().zip(0..) {
            let pieces = thread.join().expect("no panic");
            assert!(pieces.iter().zip(1..).all(|(piece, size)| *piece == vec![n; size]));
        }
    }
}
