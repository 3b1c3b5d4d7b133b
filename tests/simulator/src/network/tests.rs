//! Tests of what each end of a connection notices when it breaks.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dormouse_identity::WorkerLife;
use dormouse_proto::v1;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Status;

use super::connection::PING;
use super::{Inbound, Messages, Network, Server, Serving};
use crate::faults::Hears;
use crate::oracle::Oracle;
use crate::stage::Stage;
use crate::trace::{Lines, Trace};
use crate::witness::Witness;

/// A time longer than any message takes, and shorter than the time until a missed ping is noticed.
const WHILE: Duration = Duration::from_secs(10);

type ToWorker = mpsc::UnboundedSender<Result<v1::ToWorker, Status>>;

/// A server whose sessions are driven by a test; it never answers a call for a checkpoint.
#[derive(Debug, Default)]
struct Desk(Mutex<Option<(Heard, ToWorker)>>);

/// The messages that a server receives in a session.
struct Heard(Messages<v1::FromWorker>);

impl std::fmt::Debug for Heard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Heard")
    }
}

impl Server for Desk {
    fn join(&self, worker: &str, _: Option<&WorkerLife>) -> Result<WorkerLife, Status> {
        Ok(life(worker))
    }

    fn session(
        self: Arc<Self>,
        _: WorkerLife,
        inbound: Messages<v1::FromWorker>,
    ) -> Serving<Messages<v1::ToWorker>> {
        let (say, said) = mpsc::unbounded_channel();
        *self.0.lock().expect("nobody panics with it") = Some((Heard(inbound), say));
        Box::pin(async move {
            let said: Messages<v1::ToWorker> = Box::pin(UnboundedReceiverStream::new(said));
            Ok(said)
        })
    }

    fn put_checkpoint(
        self: Arc<Self>,
        _: WorkerLife,
        mut chunks: Messages<v1::CheckpointChunk>,
    ) -> Serving<v1::CheckpointReceipt> {
        Box::pin(async move {
            while let Some(Ok(_)) = chunks.next().await {}
            pending().await
        })
    }

    fn get_checkpoint(
        self: Arc<Self>,
        _: WorkerLife,
        _: v1::CheckpointRef,
    ) -> Serving<Vec<v1::CheckpointChunk>> {
        Box::pin(pending())
    }
}

fn life(worker: &str) -> WorkerLife {
    WorkerLife { run: "r".to_owned(), worker: worker.to_owned(), incarnation: 1 }
}

const fn beat() -> v1::FromWorker {
    let body = Some(v1::from_worker::Body::Heartbeat(v1::Heartbeat {}));
    v1::FromWorker { ack: 0, body }
}

const fn word(ack: u64) -> v1::ToWorker {
    v1::ToWorker { ack, body: Some(v1::to_worker::Body::Heartbeat(v1::Heartbeat {})) }
}

/// An open session, with both of its ends.
struct Up {
    network: Network,
    worker_says: mpsc::Sender<v1::FromWorker>,
    worker_hears: Inbound,
    coordinator_hears: Messages<v1::FromWorker>,
    coordinator_says: ToWorker,
}

impl Up {
    async fn new() -> Self {
        let make = Arc::new(|| panic!("there is no log"));
        let oracle = Oracle::new(make, Witness::default(), Default::default());
        let stage = Stage::new(Trace::new(Lines::Digested, String::new()), oracle);
        let network = Network::new(stage.clone(), 1, Duration::ZERO);
        let desk = Arc::new(Desk::default());
        network.serve(Arc::<Desk>::clone(&desk), stage.coordinator_starts());
        let (worker_says, messages) = mpsc::channel(64);
        let worker_hears = network.port("w").session(&life("w"), messages).await.expect("it is up");
        let (heard, coordinator_says) =
            desk.0.lock().expect("nobody panics with it").take().expect("it was opened");
        let coordinator_hears = heard.0;
        Self { network, worker_says, worker_hears, coordinator_hears, coordinator_says }
    }
}

#[tokio::test(start_paused = true)]
async fn both_ends_hear_that_a_connection_breaks() {
    let mut up = Up::new().await;
    up.worker_says.send(beat()).await.expect("it is up");
    assert!(matches!(up.coordinator_hears.next().await, Some(Ok(_))));
    assert!(up.network.break_up("w", Hears::Both));
    assert!(matches!(up.coordinator_hears.next().await, Some(Err(_))));
    assert!(matches!(up.worker_hears.next().await, Some(Err(_))));
    assert!(!up.network.break_up("w", Hears::Both), "there is none any more");
}

#[tokio::test(start_paused = true)]
async fn a_coordinator_waits_on_a_connection_that_broke_for_its_worker_alone() {
    let mut up = Up::new().await;
    let broke = Instant::now();
    up.worker_says.send(beat()).await.expect("it is up");
    assert!(up.network.break_up("w", Hears::Worker));
    assert!(matches!(up.worker_hears.next().await, Some(Err(_))));
    // What was under way is lost, and so is what is said by then.
    up.coordinator_says.send(Ok(word(1))).expect("it is up for it");
    timeout(WHILE, up.coordinator_hears.next()).await.expect_err("it hears nothing");
    assert!(!up.coordinator_says.is_closed());
    assert!(matches!(up.coordinator_hears.next().await, Some(Err(_))));
    assert_eq!(broke.elapsed(), PING);
}

#[tokio::test(start_paused = true)]
async fn a_worker_waits_on_a_connection_that_broke_for_its_coordinator_alone() {
    for is_under_way in [false, true] {
        let mut up = Up::new().await;
        if is_under_way {
            up.coordinator_says.send(Ok(word(1))).expect("it is up");
            tokio::task::yield_now().await;
        }
        let broke = Instant::now();
        assert!(up.network.break_up("w", Hears::Coordinator));
        assert!(matches!(up.coordinator_hears.next().await, Some(Err(_))));
        if is_under_way {
            let word = up.worker_hears.next().await;
            assert!(matches!(word, Some(Ok(v1::ToWorker { ack: 1, .. }))), "{word:?}");
        }
        timeout(WHILE, up.worker_hears.next())
            .await
            .expect_err("it hears nothing, not even an end");
        up.worker_says.send(beat()).await.expect("it is up for it");
        assert!(matches!(up.worker_hears.next().await, Some(Err(_))));
        assert_eq!(broke.elapsed(), PING);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_on_a_connection_that_broke_for_the_coordinator_alone_is_waited_for() {
    let up = Up::new().await;
    let port = up.network.port("w");
    let call =
        tokio::spawn(
            async move { port.get_checkpoint(&life("w"), v1::CheckpointRef::default()).await },
        );
    tokio::time::sleep(Duration::from_millis(50)).await;
    let broke = Instant::now();
    assert!(up.network.break_up("w", Hears::Coordinator));
    call.await.expect("no panic").expect_err("it breaks in the end");
    assert_eq!(broke.elapsed(), PING);
}

/// Messages of a connection that broke late, or was closed, are dropped if their coordinator is gone when they would
/// arrive.
#[tokio::test(start_paused = true)]
async fn no_connection_outlives_its_coordinator() {
    for is_closed in [false, true] {
        let mut up = Up::new().await;
        up.network.delay("w", Duration::from_secs(9), WHILE);
        up.worker_says.send(beat()).await.expect("it is up");
        tokio::task::yield_now().await;
        match is_closed {
            true => {
                drop(up.worker_says);
                up.network.closed("w");
            }
            false => assert!(up.network.break_late("w", Duration::from_secs(9))),
        }
        assert!(!up.network.break_up("w", Hears::Both), "none is open at both ends");
        let died = Instant::now();
        up.network.gone(false);
        let heard = up.coordinator_hears.next().await;
        assert!(matches!(heard, Some(Err(_))), "{is_closed}: {heard:?}");
        assert_eq!(died.elapsed(), Duration::ZERO);
    }
}
