//! The calls by which workers send packets of instances to each other.

use std::sync::Arc;
use std::time::Duration;

use dormouse_proto::{BadBatch, check_batch, v1};
use dormouse_units::HostId;
use tokio_stream::StreamExt as _;
use tonic::{Request, Response, Status, Streaming};

use crate::protocol::given::OutgoingStream;
use crate::server::api::ClientApi;

/// Batches of packets that wait for a worker; what comes beyond is lost.
const WAITING: usize = 64;
/// Interval at which is looked whether the session of a worker that sends nothing is over.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[tonic::async_trait]
impl v1::instance_networks_server::InstanceNetworks for ClientApi {
    type CarryStream = OutgoingStream<v1::CarriedPackets>;

    async fn carry(
        &self,
        request: Request<Streaming<v1::CarriedPackets>>,
    ) -> Result<Response<Self::CarryStream>, Status> {
        let host = self.host_of(&request)?;
        let Some(exchange) = self.desk.exchange.clone() else {
            return Err(Status::failed_precondition("this run has no instances"));
        };
        let mut sent = request.into_inner();
        let (lives, end) = (Arc::clone(&self.desk.lives), self.desk.session_end.clone());
        let stream = OutgoingStream::start_giving(WAITING, None, move |line| async move {
            let line = exchange.open_line(host, line);
            let mut look = tokio::time::interval(LOOK_EVERY);
            loop {
                let packets = tokio::select! {
                    packets = sent.next() => packets,
                    () = line.wait_closed() => return Ok(()),
                    () = end.wait_announced() => return Ok(()),
                    _ = look.tick() => Some(Ok(v1::CarriedPackets::default())),
                };
                // A worker whose session is lost has no instances any more.
                if lives.life_of_host(host).is_none() {
                    return Err(Status::aborted("the session is over"));
                }
                match packets {
                    Some(Ok(packets)) => {
                        check_batch(&packets).map_err(|bad| refuse_batch(host, &bad))?;
                        line.pass_on(packets);
                    }
                    Some(Err(_)) | None => return Ok(()),
                }
            }
        });
        Ok(Response::new(stream))
    }
}

/// Refuses packets that no worker of this version sends: the call ends.
fn refuse_batch(host: HostId, bad: &BadBatch) -> Status {
    tracing::warn!(%host, %bad, "a worker's packets are refused");
    Status::invalid_argument(format!("packets of {host} are refused: {bad}"))
}
