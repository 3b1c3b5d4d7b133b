//! The way of packets to instances on other hosts, which the coordinator passes on.

use std::{
    io,
    sync::{Arc, Once},
    time::Duration,
};

use dormouse_proto::{
    CARRIED_PACKETS, check_batch,
    v1::{CarriedPacket, CarriedPackets, instance_networks_client::InstanceNetworksClient},
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Code, Status, transport::Channel};

use super::switch::NetworkSwitch;

/// Packets that wait for the connection to the coordinator; what comes beyond is lost.
const WAITING: usize = 256;
/// Messages that wait for the connection.
const IN_FLIGHT: usize = 4;
/// Pause before another call after one has ended.
const PAUSE: Duration = Duration::from_secs(1);

/// Carries packets between this host's instances and those of other hosts, from the first instance on; dropping the value ends it.
#[derive(Debug)]
pub(crate) struct NetworkUplink {
    coordinator: Channel,
    begun: Once,
    end: CancellationToken,
    _end: DropGuard,
}

impl NetworkUplink {
    pub(crate) fn new(coordinator: Channel) -> Self {
        let end = CancellationToken::new();
        Self { coordinator, begun: Once::new(), _end: end.clone().drop_guard(), end }
    }

    /// Begins to carry packets in the switch's own thread, if that has not begun before.
    ///
    /// # Errors
    ///
    /// The thread can't be started.
    pub(crate) fn begin(&self, switch: &Arc<NetworkSwitch>) -> io::Result<()> {
        let packets = switch.packet_runtime()?;
        self.begun.call_once(|| {
            let (uplink, waiting) = mpsc::channel(WAITING);
            switch.set_uplink(uplink);
            let carrying = carry_packets(self.coordinator.clone(), Arc::clone(switch), waiting);
            let end = self.end.clone();
            packets.spawn(async move { end.run_until_cancelled(carrying).await });
        });
        Ok(())
    }
}

/// Carries packets for as long as the coordinator does.
async fn carry_packets(
    coordinator: Channel,
    switch: Arc<NetworkSwitch>,
    mut waiting: mpsc::Receiver<CarriedPacket>,
) {
    loop {
        let mut client = InstanceNetworksClient::new(coordinator.clone());
        let Err(status) = carry_by_call(&mut client, &switch, &mut waiting).await else {
            // Of a session that goes on another call may.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if matches!(status.code(), Code::Unimplemented | Code::FailedPrecondition) {
            return tracing::debug!(%status, "the coordinator carries no packets");
        }
        if status.code() == Code::InvalidArgument {
            tracing::warn!(%status, "packets between workers are refused");
        }
        tracing::debug!(%status, "no packets go to other hosts until the next try");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Carries packets by one call, until it ends.
async fn carry_by_call(
    client: &mut InstanceNetworksClient<Channel>,
    switch: &NetworkSwitch,
    waiting: &mut mpsc::Receiver<CarriedPacket>,
) -> Result<(), Status> {
    let (sending, outgoing) = mpsc::channel(IN_FLIGHT);
    let mut incoming = client.carry(ReceiverStream::new(outgoing)).await?.into_inner();
    let mut packets = Vec::new();
    loop {
        tokio::select! {
            received = incoming.message() => match received? {
                Some(batch) => {
                    check_batch(&batch).map_err(|bad| {
                        Status::invalid_argument(format!("packets of the coordinator: {bad}"))
                    })?;
                    batch.packets.iter().for_each(|carried| switch.deliver_carried(carried));
                }
                None => return Ok(()),
            },
            count = waiting.recv_many(&mut packets, CARRIED_PACKETS) => {
                let batch = CarriedPackets { packets: std::mem::take(&mut packets) };
                if count == 0 || sending.send(batch).await.is_err() {
                    return Ok(());
                }
            }
        }
    }
}
