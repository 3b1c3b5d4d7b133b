//! The device by which the programs of a cell reach other instances.

use std::{
    fs::File,
    io::{self, Read as _},
    sync::Arc,
    time::Duration,
};

use dormouse_proto::LARGEST_PACKET;
use tokio::{io::unix::AsyncFd, task::AbortHandle};

use super::{
    rules::CellNetwork,
    switch::{NetworkPlace, NetworkSwitch},
};
use crate::jail::{JailCell, open_network_device};

/// Packets that are delivered before a pause, which keeps an instance that floods the network from using up its host.
const PACKETS: usize = 64;
/// The pause.
const PAUSE: Duration = Duration::from_millis(1);

/// The device of a cell, and its end in the host's switch; dropping the value takes the cell off its network.
#[derive(Debug)]
pub(crate) struct CellPort {
    switch: Arc<NetworkSwitch>,
    vm: u32,
    place: NetworkPlace,
    reading: AbortHandle,
}

impl CellPort {
    /// Makes the device in the network of a cell, whose packets the switch's own thread reads. Blocks for as long as a thread takes
    /// to start.
    ///
    /// # Errors
    ///
    /// The kernel's error, such as that it has no such devices.
    pub(crate) fn open(
        cell: &JailCell,
        switch: &Arc<NetworkSwitch>,
        vm: u32,
        network: CellNetwork,
    ) -> io::Result<Self> {
        let packets = switch.packet_runtime()?;
        let (address, bits) = (network.address, network.prefix_bits);
        let device = cell.in_network(|| open_network_device(address, bits, LARGEST_PACKET))?;
        let (device, place) = (Arc::new(device), (network.id.clone(), address));
        #[expect(
            unsafe_code,
            reason = "the runtime watches a number that has to stay the device's"
        )]
        // SAFETY: the descriptor is open as long as what watches it, which holds a reference to the file.
        let readable = unsafe {
            let _entered = packets.enter();
            AsyncFd::register(Arc::clone(&device))
        }?;
        switch.add(vm, network, device);
        let reading = read_packets(readable, Arc::clone(switch), vm, place.clone());
        let reading = packets.spawn(reading).abort_handle();
        Ok(Self { switch: Arc::clone(switch), vm, place, reading })
    }

    /// Changes what the security groups of the instance allow.
    pub(crate) fn set_rules(&self, network: CellNetwork) {
        self.switch.set_rules(self.vm, network);
    }

    /// Sets whether packets of the instance, and packets to it, are delivered.
    pub(crate) fn set_open(&self, is_open: bool) {
        self.switch.set_open(self.vm, &self.place, is_open);
    }
}

impl Drop for CellPort {
    fn drop(&mut self) {
        self.reading.abort();
        self.switch.remove(self.vm, &self.place);
    }
}

/// Delivers the packets that come from a device, until the device is gone.
async fn read_packets(
    device: AsyncFd<Arc<File>>,
    switch: Arc<NetworkSwitch>,
    vm: u32,
    place: NetworkPlace,
) {
    let mut bytes = vec![0; usize::from(LARGEST_PACKET) + 1];
    loop {
        let Ok(mut ready) = device.readable().await else { return };
        for _ in 0..PACKETS {
            match ready.try_io(|device| (&**device.get_ref()).read(&mut bytes)) {
                Ok(Ok(length)) => {
                    switch.deliver(vm, &place, bytes.get(..length).unwrap_or_default());
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => {
                    return tracing::warn!(vm, %error, "the network device of a cell can't be read");
                }
                Err(_) => break,
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
