//! Memory, semaphores and messages of another program, which go away with it.

use std::ffi::CStr;
use std::io;

/// Shared memory of another program.
pub(crate) struct Segment(pub(crate) i32);

impl Segment {
    pub(crate) fn new() -> Segment {
        // SAFETY: takes numbers.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, 0o1600) };
        assert!(id >= 0, "{}", io::Error::last_os_error());
        Segment(id)
    }

    pub(crate) fn byte(&self) -> u8 {
        // SAFETY: the segment is there as long as this value is, and has a first
        // byte; it is let go of again.
        unsafe {
            let address = libc::shmat(self.0, std::ptr::null(), libc::SHM_RDONLY);
            assert!(address.addr() != usize::MAX, "{}", io::Error::last_os_error());
            let byte = address.cast::<u8>().read_volatile();
            libc::shmdt(address);
            byte
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: takes numbers.
        unsafe { libc::shmctl(self.0, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// One semaphore.
pub(crate) struct Set(pub(crate) i32);

impl Set {
    pub(crate) fn new() -> Set {
        // SAFETY: takes numbers.
        let id = unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o1600) };
        assert!(id >= 0, "{}", io::Error::last_os_error());
        Set(id)
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        // SAFETY: takes numbers.
        unsafe { libc::semctl(self.0, 0, libc::IPC_RMID) };
    }
}

/// A System V message queue.
pub(crate) struct Messages(pub(crate) i32);

impl Messages {
    pub(crate) fn new() -> Messages {
        // SAFETY: takes numbers.
        let id = unsafe { libc::msgget(libc::IPC_PRIVATE, 0o1600) };
        assert!(id >= 0, "{}", io::Error::last_os_error());
        Messages(id)
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        // SAFETY: takes numbers.
        unsafe { libc::msgctl(self.0, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// A POSIX message queue.
pub(crate) struct Queue(());

impl Queue {
    const NAME: &CStr = c"/effectgate-test-of-others";

    pub(crate) fn new() -> Queue {
        let none = std::ptr::null_mut::<libc::mq_attr>();
        // SAFETY: the name is static, and there are no attributes.
        let queue = unsafe { libc::mq_open(Queue::NAME.as_ptr(), libc::O_CREAT, 0o600, none) };
        assert!(queue >= 0, "{}", io::Error::last_os_error());
        // SAFETY: the descriptor was given to us just now.
        unsafe { libc::mq_close(queue) };
        Queue(())
    }

    /// As the kernel knows it.
    pub(crate) fn name(&self) -> String {
        Queue::NAME.to_string_lossy().trim_start_matches('/').to_owned()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the name is static.
        unsafe { libc::mq_unlink(Queue::NAME.as_ptr()) };
    }
}
