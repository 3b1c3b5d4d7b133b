//! The calls by which workers send packets of instances to each other.

use std::sync::Arc;

use dormouse_proto::v1;
use tokio_stream::StreamExt as _;
use tonic::{Request, Response, Status, Streaming};

use crate::protocol::given::OutgoingStream;
use crate::server::api::ClientApi;

/// Batches of packets that wait for a worker; what comes beyond is lost.
const WAITING: usize = 64;

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
            exchange.open_line(host, line);
            loop {
                let packets = tokio::select! {
                    packets = sent.next() => packets,
                    () = end.wait_announced() => return Ok(()),
                };
                // A worker whose session is lost has no instances any more.
                match packets {
                    Some(Ok(packets)) if lives.life_of_host(host).is_some() => {
                        exchange.pass_on(host, packets);
                    }
                    Some(Ok(_)) => return Err(Status::aborted("the session is over")),
                    Some(Err(_)) | None => return Ok(()),
                }
            }
        });
        Ok(Response::new(stream))
    }
}
