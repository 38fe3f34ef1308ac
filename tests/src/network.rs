//! Another program's network namespace, with a server at an address that means
//! somebody else outside it.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// It is there as long as this is.
#[derive(Debug)]
pub struct Network {
    server: TcpListener,
    thread: libc::pid_t,
    work: Option<Sender<Work>>,
    inside: Option<JoinHandle<()>>,
}

type Work = Box<dyn FnOnce() + Send>;

impl Network {
    /// A new one, in which a server listens.
    ///
    /// # Panics
    /// When it cannot be made.
    #[must_use]
    pub fn with_server(address: SocketAddr) -> Network {
        let (work, wanted) = channel::<Work>();
        let (made, ready) = channel();
        let inside = std::thread::spawn(move || {
            // SAFETY: takes a number; what this thread alone leaves is its network.
            let left = unsafe { libc::unshare(libc::CLONE_NEWNET) };
            assert_eq!(left, 0, "{}", std::io::Error::last_os_error());
            loopback();
            let server = TcpListener::bind(address).expect("nobody else is there");
            server.set_nonblocking(true).expect("fcntl");
            // SAFETY: takes nothing.
            let thread = unsafe { libc::gettid() };
            made.send((server, thread)).expect("somebody waits");
            wanted.into_iter().for_each(|work| work());
        });
        let (server, thread) = ready.recv().expect("the thread says so or panics");
        Network { server, thread, work: Some(work), inside: Some(inside) }
    }

    /// The file by which others can enter.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/task/{}/ns/net", std::process::id(), self.thread).into()
    }

    /// Where the server listens.
    ///
    /// # Panics
    /// When the kernel does not say.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.local_addr().expect("bound")
    }

    /// Whether anybody connected since this was asked last.
    #[must_use]
    pub fn reached(&self) -> bool {
        self.server.accept().is_ok()
    }

    /// Does something inside.
    ///
    /// # Panics
    /// When it panics.
    pub fn within<T: Send + 'static>(&self, act: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        let work = Box::new(move || {
            let _ = done.send(act());
        });
        self.work.as_ref().expect("not dropped").send(work).expect("the thread waits");
        result.recv().expect("it did not panic")
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        drop(self.work.take());
        if let Some(inside) = self.inside.take() {
            let _ = inside.join();
        }
    }
}

/// Brings the loopback device up.
fn loopback() {
    // SAFETY: takes numbers; the descriptor is nobody else's.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: every field of `ifreq` may be zero, and it lives across the call.
    let done = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = libc::IFF_UP as i16;
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Gives whoever is at the other end a descriptor.
///
/// # Errors
/// When it cannot be sent.
pub fn give(stream: &impl AsRawFd, given: &impl AsRawFd) -> std::io::Result<()> {
    let mut byte = *b"x";
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = [0_u64; 3];
    // SAFETY: every field of `msghdr` may be zero; the header lies in `control`,
    // which has room for one descriptor; all of it lives across the call.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(header).cast::<i32>().write_unaligned(given.as_raw_fd());
        libc::sendmsg(stream.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    if sent < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}
