//! A relay between a coordinator and its clients, by which a test can read the traffic and interrupt it.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A relay in front of a coordinator, which records all bytes that pass.
#[derive(Clone, Debug)]
pub struct Wire {
    /// The address to dial in the coordinator's place.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

/// The bytes that have passed over a connection in one direction.
#[derive(Debug, Default)]
struct Passed {
    bytes: Vec<u8>,
    /// The times of the first and the last bytes; `None` if no bytes have passed.
    between: Option<(Instant, Instant)>,
}

#[derive(Debug)]
struct Shared {
    to: SocketAddr,
    /// The bytes that have passed, by connection and direction.
    seen: Mutex<Vec<Passed>>,
    /// Connections made before this instant carry nothing any more.
    silent_before: Mutex<Instant>,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wire {
    /// A relay in front of the coordinator that listens at this address, now or later.
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

    /// Lets nothing pass for this time. Present connections, and those made meanwhile, stay silent for good: TCP would
    /// repeat lost data ever more seldom.
    pub fn partition(&self, lasts: Duration) {
        *locked(&self.shared.silent_before) = Instant::now() + lasts;
    }

    /// All bytes that have passed, one item for each connection and direction.
    #[must_use]
    pub fn seen(&self) -> Vec<Vec<u8>> {
        locked(&self.shared.seen).iter().map(|passed| passed.bytes.clone()).collect()
    }

    /// The number of directions so far: two for each connection that was made.
    #[must_use]
    pub fn directions(&self) -> usize {
        locked(&self.shared.seen).len()
    }

    /// The number of directions, not counting the first `after`, in which bytes have passed over a time of at least
    /// `least`.
    #[must_use]
    pub fn in_use(&self, after: usize, least: Duration) -> usize {
        let seen = locked(&self.shared.seen);
        let lasted = |passed: &&Passed| {
            passed.between.is_some_and(|(first, last)| last.duration_since(first) >= least)
        };
        seen.iter().skip(after).filter(lasted).count()
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
        all.push(Passed::default());
        all.len() - 1
    };
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if since < *locked(&shared.silent_before) {
            continue;
        }
        if let Some(passed) = locked(&shared.seen).get_mut(own) {
            let now = Instant::now();
            passed.bytes.extend_from_slice(&bytes[..count]);
            passed.between = Some((passed.between.map_or(now, |(first, _)| first), now));
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    if since >= *locked(&shared.silent_before) {
        let _ = to.shutdown(Shutdown::Write);
    }
}
