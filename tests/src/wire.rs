//! The wire between a coordinator and whoever dials it, as somebody on the way sees it and cuts it.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A relay before a coordinator. It remembers all bytes that pass.
#[derive(Clone, Debug)]
pub struct Wire {
    /// The address to dial in the coordinator's place.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    to: SocketAddr,
    /// What has passed, by connection and direction.
    seen: Mutex<Vec<Vec<u8>>>,
    /// Connections that were made before then carry nothing any more.
    silent_before: Mutex<Instant>,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wire {
    /// A relay before the coordinator that listens, or will, at this address.
    ///
    /// # Panics
    ///
    /// There is no port left on loopback.
    #[must_use]
    pub fn before(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|e| panic!("no port: {e}"));
        let address = listener.local_addr().unwrap_or_else(|e| panic!("no address: {e}"));
        let shared =
            Shared { to, seen: Mutex::default(), silent_before: Mutex::new(Instant::now()) };
        let wire = Self { address, shared: Arc::new(shared) };
        let shared = Arc::clone(&wire.shared);
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || relay(&shared, near));
            }
        });
        wire
    }

    /// Nothing passes for so long, and nothing ever more over the connections that are there or are
    /// made meanwhile: TCP sends what was lost again ever more seldom.
    pub fn partition(&self, lasts: Duration) {
        *locked(&self.shared.silent_before) = Instant::now() + lasts;
    }

    /// All bytes that have passed: those of each connection, in either direction apart.
    #[must_use]
    pub fn seen(&self) -> Vec<Vec<u8>> {
        locked(&self.shared.seen).clone()
    }
}

fn relay(shared: &Arc<Shared>, near: TcpStream) {
    let since = Instant::now();
    let Ok(far) = TcpStream::connect(shared.to) else { return };
    let (Ok(near_too), Ok(far_too)) = (near.try_clone(), far.try_clone()) else { return };
    for stream in [&near, &far] {
        // It is slower without, and nothing worse.
        let _ = stream.set_nodelay(true);
    }
    let there = Arc::clone(shared);
    let back = thread::spawn(move || pass(&there, since, far_too, near_too));
    pass(shared, since, near, far);
    // What it panics of it has said.
    let _ = back.join();
}

fn pass(shared: &Shared, since: Instant, mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = vec![0; 64 << 10];
    let own = {
        let mut all = locked(&shared.seen);
        all.push(Vec::new());
        all.len() - 1
    };
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if since < *locked(&shared.silent_before) {
            continue;
        }
        locked(&shared.seen)[own].extend_from_slice(&bytes[..count]);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    if since >= *locked(&shared.silent_before) {
        let _ = to.shutdown(Shutdown::Write);
    }
}
