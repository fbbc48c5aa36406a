//! Telling a service manager how far we are.
//!
//! systemd names a datagram socket in `NOTIFY_SOCKET` when a unit is of `Type=notify`, and waits for
//! `READY=1` there before it starts what depends on the unit.

use std::{ffi::OsStr, io, os::unix::net::UnixDatagram};

/// Sends one line to the service manager, if there is one. It learns the rest from our exit.
pub(crate) fn tell(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        tracing::warn!(%error, "the service manager cannot be told that we are {state}");
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let from = UnixDatagram::unbound()?;
    // A service manager that does not listen must not keep us from serving.
    from.set_nonblocking(true)?;
    #[cfg(target_os = "linux")]
    if let [b'@', name @ ..] = std::os::unix::ffi::OsStrExt::as_bytes(socket) {
        use std::os::linux::net::SocketAddrExt as _;
        let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
        return from.send_to_addr(state.as_bytes(), &address).map(drop);
    }
    from.send_to(state.as_bytes(), socket).map(drop)
}
