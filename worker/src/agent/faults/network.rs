//! Disturbances of the network between this worker and the coordinator.

use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use dormouse_identity::Dialled;
use dormouse_units::Ppm;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::time::{Instant, sleep_until};
use tonic::transport::{Channel, Endpoint, Uri};

use super::{
    dialler::{DialledLink, HostDialler, TcpDialler},
    stream::DisturbedStream,
};

/// Time after which a lost segment is sent again, doubled for each further loss: the smallest timeout of Linux's TCP
/// (tcp(7), `TCP_RTO_MIN`).
const SENT_AGAIN: Duration = Duration::from_millis(200);
/// Number of losses in a row after which a segment always arrives: a network in which none arrives is a partition.
const MOST_LOSSES: u32 = 6;
/// Bytes of a segment: those of Ethernet without the headers of TCP over IPv4.
const SEGMENT: usize = 1448;

/// One kind of network disturbance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum NetworkDisturbance {
    /// No bytes pass in either direction.
    Partition,
    /// All bytes are delayed by this time.
    Delay(Duration),
    /// This fraction of the segments is lost, and sent again.
    Loss(Ppm),
    /// This many bytes pass per second.
    Rate(u64),
}

/// The network of a worker, shared by the connections of all its sessions. Faults disturb it.
#[derive(Clone, Debug)]
pub struct WorkerNetwork(Arc<SharedNetwork>);

#[derive(Debug)]
struct SharedNetwork {
    dialler: Box<dyn HostDialler>,
    /// Number of disturbances, so that an undisturbed network needs no lock.
    count: AtomicUsize,
    disturbances: Mutex<Vec<TimedDisturbance>>,
    /// Counter from which the random loss of each segment is derived.
    drawn: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
struct TimedDisturbance {
    number: u64,
    what: NetworkDisturbance,
    until: Instant,
}

/// A disturbance under way, which ends when dropped.
#[derive(Debug)]
pub(crate) struct DisturbanceGuard {
    network: WorkerNetwork,
    number: u64,
}

impl Default for WorkerNetwork {
    fn default() -> Self {
        Self::over_dialler(TcpDialler)
    }
}

impl WorkerNetwork {
    /// Makes a network whose connections are made by this dialler.
    #[must_use]
    pub fn over_dialler(dialler: impl HostDialler + 'static) -> Self {
        Self(Arc::new(SharedNetwork {
            dialler: Box::new(dialler),
            count: AtomicUsize::new(0),
            disturbances: Mutex::default(),
            drawn: AtomicU64::new(0),
        }))
    }

    /// Disturbs the network until this instant, or until the returned guard is dropped.
    pub(crate) fn disturb_until(
        &self,
        number: u64,
        what: NetworkDisturbance,
        until: Instant,
    ) -> DisturbanceGuard {
        self.0.drawn.fetch_add(number.wrapping_add(1), Ordering::Relaxed);
        self.all_disturbances().push(TimedDisturbance { number, what, until });
        self.0.count.fetch_add(1, Ordering::Release);
        DisturbanceGuard { network: self.clone(), number }
    }

    /// Returns whether the network is disturbed.
    pub(crate) fn is_disturbed(&self) -> bool {
        self.0.count.load(Ordering::Acquire) > 0
    }

    fn all_disturbances(&self) -> MutexGuard<'_, Vec<TimedDisturbance>> {
        self.0.disturbances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time at which bytes that are sent now arrive; `free_at` is the time until which earlier bytes
    /// occupy the line.
    pub(super) fn arrival_time(
        &self,
        now: Instant,
        bytes: usize,
        free_at: &mut Instant,
    ) -> Instant {
        let mut sets_out = now;
        let (mut later, mut late) = (Duration::ZERO, Duration::ZERO);
        for TimedDisturbance { what, until, .. } in
            self.all_disturbances().iter().filter(|it| it.until > now)
        {
            match *what {
                NetworkDisturbance::Partition => sets_out = sets_out.max(*until),
                NetworkDisturbance::Delay(by) => later += by,
                NetworkDisturbance::Loss(part) => late = late.max(self.sent_again(bytes, part)),
                NetworkDisturbance::Rate(per_second) => {
                    let micros = bytes as u64 * 1_000_000 / per_second.max(1);
                    *free_at = now.max(*free_at) + Duration::from_micros(micros);
                    sets_out = sets_out.max(*free_at);
                }
            }
        }
        sets_out + later + late
    }

    /// Returns the time lost by resending `bytes` bytes, if the part `part` of the segments is lost each time.
    fn sent_again(&self, bytes: usize, part: Ppm) -> Duration {
        let segments = bytes.div_ceil(SEGMENT).max(1);
        let times = (0..segments).map(|_| self.count_losses(part)).max().unwrap_or_default();
        // 200 ms, and 400 more, and 800 more.
        SENT_AGAIN * ((1 << times) - 1)
    }

    /// Draws the number of times in a row that a segment is lost.
    fn count_losses(&self, part: Ppm) -> u32 {
        let lost = |_: &u32| {
            let n = self.0.drawn.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
            scramble_number(n) % 1_000_000 < u64::from(part.get())
        };
        u32::try_from((0..MOST_LOSSES).take_while(lost).count()).unwrap_or(MOST_LOSSES)
    }

    /// Waits while no bytes pass.
    async fn wait_passable(&self) {
        loop {
            let now = Instant::now();
            let partitions = self
                .all_disturbances()
                .iter()
                .filter(|it| it.what == NetworkDisturbance::Partition)
                .map(|it| it.until)
                .max();
            match partitions.filter(|until| *until > now) {
                Some(until) => sleep_until(until).await,
                None => return,
            }
        }
    }

    async fn dial_link(self, to: Uri) -> io::Result<DisturbedStream<Box<dyn DialledLink>>> {
        self.wait_passable().await;
        let host = to.host().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
        let link = self.0.dialler.dial_host(host, to.port_u16().unwrap_or(80)).await?;
        Ok(DisturbedStream::new(link, self))
    }

    /// Connects to the coordinator, and verifies it.
    ///
    /// # Errors
    ///
    /// The coordinator can't be reached or verified.
    pub(crate) async fn connect_securely(
        &self,
        to: &Endpoint,
        tls: Arc<ClientConfig>,
    ) -> Result<Channel, tonic::transport::Error> {
        let network = self.clone();
        let connect = move |uri| network.clone().secured_stream(uri, Arc::clone(&tls));
        to.connect_with_connector(tower::service_fn(connect)).await
    }

    /// Makes a connection that is established when it is first needed, and again whenever it breaks.
    pub(crate) fn connect_lazy(&self, to: &Endpoint, tls: Arc<ClientConfig>) -> Channel {
        let network = self.clone();
        let connect = move |uri| network.clone().secured_stream(uri, Arc::clone(&tls));
        to.connect_with_connector_lazy(tower::service_fn(connect))
    }

    async fn secured_stream(
        self,
        to: Uri,
        tls: Arc<ClientConfig>,
    ) -> io::Result<TokioIo<Dialled<DisturbedStream<Box<dyn DialledLink>>>>> {
        Ok(TokioIo::new(dormouse_identity::dial(tls, self.dial_link(to).await?).await?))
    }
}

impl Drop for DisturbanceGuard {
    fn drop(&mut self) {
        self.network.all_disturbances().retain(|it| it.number != self.number);
        self.network.0.count.fetch_sub(1, Ordering::Release);
    }
}

/// Scrambles a counter into a random-looking number (the last steps of SplitMix64).
const fn scramble_number(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(network: &WorkerNetwork, bytes: usize) -> Duration {
        let now = Instant::now();
        let mut free = now;
        network.arrival_time(now, bytes, &mut free) - now
    }

    #[tokio::test]
    async fn what_is_wrong_adds_up_and_passes() {
        let network = WorkerNetwork::default();
        let until = Instant::now() + Duration::from_secs(100);
        assert!(!network.is_disturbed());
        let delay =
            network.disturb_until(1, NetworkDisturbance::Delay(Duration::from_millis(30)), until);
        let rate = network.disturb_until(2, NetworkDisturbance::Rate(1000), until);
        assert_eq!(after(&network, 500), Duration::from_millis(530));
        drop(delay);
        assert_eq!(after(&network, 500), Duration::from_millis(500));
        drop(rate);
        assert!(!network.is_disturbed());
        let partition = network.disturb_until(3, NetworkDisturbance::Partition, until);
        assert!(after(&network, 1) > Duration::from_secs(99));
        drop(partition);
        assert_eq!(after(&network, 1), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_rate_holds_for_all_that_sets_out() {
        let network = WorkerNetwork::default();
        let now = Instant::now();
        let _rate = network.disturb_until(
            1,
            NetworkDisturbance::Rate(1_000_000),
            now + Duration::from_secs(9),
        );
        let mut free = now;
        let ends: Vec<_> =
            (0..3).map(|_| network.arrival_time(now, 100_000, &mut free) - now).collect();
        assert_eq!(ends, [100, 200, 300].map(Duration::from_millis));
    }

    #[tokio::test]
    async fn as_many_segments_are_lost_as_are_said() {
        let network = WorkerNetwork::default();
        let half = Ppm::new(250_000);
        let lost = (0..10_000).filter(|_| network.sent_again(SEGMENT, half) > Duration::ZERO);
        // Three times the standard deviation of a binomial distribution.
        let lost = lost.count();
        assert!(lost.abs_diff(2500) < 130, "{lost} of 10,000");
        assert_eq!(network.sent_again(99, Ppm::ZERO), Duration::ZERO);
    }
}
