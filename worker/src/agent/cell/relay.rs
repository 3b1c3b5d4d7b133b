//! Ways between a cell's network and its host: to ports that the cell's programs listen at, and to the provider's API.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    net::{
        Ipv4Addr, SocketAddr, TcpListener as StdListener, TcpStream as StdStream,
        ToSocketAddrs as _,
    },
    ops::RangeInclusive,
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::{AbortHandle, spawn_blocking},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    network::{CellNetwork, CellPort, NetworkSwitch},
    ssh::INNER_PORT,
};
use crate::{
    jail::{JailCell, take_address},
    metadata::METADATA_ADDRESS,
};

/// Port of the provider's API at the metadata's address, in the cell's network.
const API_PORT: u16 = 7382;
/// Port at which a cell's ssh server is reached from the host.
const SSH_PORT: u16 = 22;
/// Connections that a cell has to its host at a time, and the host to the cell; further ones wait in the kernel.
const CONNECTIONS: usize = 16;
/// Permits for connections of all cells of this worker, which has descriptors for so many.
static ALL_CONNECTIONS: Semaphore = Semaphore::const_new(192);
/// Ports of a cell that can be reached at a time.
const PORTS: usize = 8;
/// Interval at which is looked for ports that the cell's programs listen at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Time that a connection within the host may take to be made.
const DIAL: Duration = Duration::from_secs(2);
/// Pause after the kernel had no descriptor for another connection.
const PAUSE: Duration = Duration::from_millis(100);
/// State of a listening socket in the kernel's table.
const LISTENS: &str = "0A";

/// Ways into and out of a cell.
#[derive(Clone, Debug)]
pub struct RelayOrder {
    /// Number of the cell's VM.
    pub(crate) vm: u32,
    /// Address of the cell's VM.
    pub own: Ipv4Addr,
    /// Address at which the provider's API answers, an unspecified IP being that of the coordinator's host; `None`: the cell's
    /// programs can't call it.
    pub api: Option<SocketAddr>,
    /// Address on the host at which open ports are reached; `None`: none can be.
    pub public: Option<Ipv4Addr>,
    /// The private network of the instance; `None`: it has none.
    pub(crate) network: Option<CellNetwork>,
    /// True if the cell has an ssh server.
    pub(crate) has_ssh: bool,
}

impl RelayOrder {
    /// The order with the IP address of the host of the coordinator, whose address is `host:port`, where the API is on that host.
    /// Blocks while the host's name is resolved.
    ///
    /// # Errors
    ///
    /// The name can't be resolved.
    pub(crate) fn with_api_found(self, coordinator: &str) -> io::Result<Self> {
        let Some(api) = self.api.filter(|api| api.ip().is_unspecified()) else { return Ok(self) };
        let all: Vec<SocketAddr> = coordinator.to_socket_addrs()?.collect();
        // The API listens at addresses of one kind, and the name may have both.
        let same = all.iter().find(|at| at.is_ipv4() == api.is_ipv4());
        let mut there = *same.or(all.first()).ok_or(io::ErrorKind::NotFound)?;
        there.set_port(api.port());
        Ok(Self { api: Some(there), ..self })
    }
}

/// The ways into and out of a cell, which end when this is dropped.
#[derive(Debug)]
pub struct CellRelays {
    _end: DropGuard,
    /// Ports of the cell that its host may reach.
    open_ports: watch::Sender<Vec<RangeInclusive<u16>>>,
    /// The cell's end in its private network; `None`: it is in none.
    port: Option<CellPort>,
}

/// The URL of the provider's API for programs in a cell.
pub(crate) fn api_url() -> String {
    format!("http://{METADATA_ADDRESS}:{API_PORT}")
}

impl CellRelays {
    /// Opens the ways into and out of a cell; `warn` gets what the cell's owner should know. Must be called within a runtime;
    /// blocks for as long as a thread takes to start.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub(crate) fn open(
        cell: &Arc<JailCell>,
        switch: &Arc<NetworkSwitch>,
        order: RelayOrder,
        warn: impl Fn(String) + Send + 'static,
    ) -> io::Result<Self> {
        let RelayOrder { vm, own, api, public, network, has_ssh } = order;
        let end = CancellationToken::new();
        if let Some(api) = api {
            let listener = cell.in_network(|| {
                take_address(c"lo:1", METADATA_ADDRESS)?;
                StdListener::bind((METADATA_ADDRESS, API_PORT))
            })?;
            serve_until(&end, listener, FarEnd::Host(api))?;
        }
        cell.in_network(|| take_address(c"lo:2", own))?;
        if has_ssh {
            let listener = cell.in_network(|| StdListener::bind((own, SSH_PORT)))?;
            let server = (Ipv4Addr::LOCALHOST, INNER_PORT).into();
            serve_until(&end, listener, FarEnd::Cell(Arc::clone(cell), server))?;
        }
        let ports = network.as_ref().map(CellNetwork::open_ports).unwrap_or_default();
        let (open_ports, ports) = watch::channel(ports);
        let port = match network.map(|network| CellPort::open(cell, switch, vm, network)) {
            Some(Ok(port)) => Some(port),
            Some(Err(error)) => {
                warn(format!("other instances can't be reached: no network device: {error}"));
                None
            }
            None => None,
        };
        if let Some(public) = public {
            let doors = CellDoors { cell: Arc::clone(cell), own, public, ports, end: end.clone() };
            tokio::spawn(doors.keep_open(warn));
        }
        Ok(Self { _end: end.drop_guard(), open_ports, port })
    }

    /// Changes what the security groups of the instance allow.
    pub(crate) fn set_network(&self, network: CellNetwork) {
        self.open_ports.send_replace(network.open_ports());
        if let Some(port) = &self.port {
            port.set_rules(network);
        }
    }

    /// Sets whether the instance gets and sends packets in its private network.
    pub(crate) fn set_open(&self, is_open: bool) {
        if let Some(port) = &self.port {
            port.set_open(is_open);
        }
    }
}

/// Serves the connections to a listener until the relays of its cell end.
fn serve_until(end: &CancellationToken, listener: StdListener, to: FarEnd) -> io::Result<()> {
    let turns = Arc::new(Semaphore::new(CONNECTIONS));
    let relay = PortRelay { to, turns, end: end.clone() };
    let serving = tokio::spawn(relay.serve(take_listener(listener)?)).abort_handle();
    let until = end.clone();
    tokio::spawn(async move {
        until.cancelled().await;
        serving.abort();
    });
    Ok(())
}

fn take_listener(listener: StdListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// The end of a relayed connection that the relay makes.
#[derive(Clone)]
enum FarEnd {
    /// An address of the host.
    Host(SocketAddr),
    /// An address in the network of a cell.
    Cell(Arc<JailCell>, SocketAddr),
}

impl FarEnd {
    async fn dial(self) -> io::Result<TcpStream> {
        match self {
            Self::Host(address) => tokio::time::timeout(DIAL, TcpStream::connect(address)).await?,
            Self::Cell(cell, address) => {
                let dialling = spawn_blocking(move || {
                    cell.in_network(|| StdStream::connect_timeout(&address, DIAL))
                });
                let stream = dialling.await.map_err(io::Error::other)??;
                stream.set_nonblocking(true)?;
                TcpStream::from_std(stream)
            }
        }
    }
}

/// Connections to one address.
struct PortRelay {
    to: FarEnd,
    turns: Arc<Semaphore>,
    end: CancellationToken,
}

impl PortRelay {
    /// Accepts connections; ones that were accepted outlive it until the relays of the cell end.
    async fn serve(self, listener: TcpListener) {
        loop {
            let Ok(turn) = Arc::clone(&self.turns).acquire_owned().await else { return };
            let Ok((near, _)) = listener.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let Ok(of_all) = ALL_CONNECTIONS.acquire().await else { return };
            let (to, end) = (self.to.clone(), self.end.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = carry(near, to) => {}
                    () = end.cancelled() => {}
                }
                drop((turn, of_all));
            });
        }
    }
}

/// Carries the bytes of a connection both ways, until both sides have ended.
async fn carry(mut near: TcpStream, to: FarEnd) {
    let carried = async {
        let mut far = to.dial().await?;
        // It is slower without, and nothing worse.
        let _ = near.set_nodelay(true).and_then(|()| far.set_nodelay(true));
        tokio::io::copy_bidirectional(&mut near, &mut far).await
    };
    if let Err(error) = carried.await {
        tracing::debug!(%error, "a connection of a cell has ended");
    }
}

/// Ports of a cell that are reached at an address of the host while programs in the cell listen at them.
struct CellDoors {
    cell: Arc<JailCell>,
    own: Ipv4Addr,
    public: Ipv4Addr,
    ports: watch::Receiver<Vec<RangeInclusive<u16>>>,
    end: CancellationToken,
}

impl CellDoors {
    async fn keep_open(self, warn: impl Fn(String)) {
        let turns = Arc::new(Semaphore::new(CONNECTIONS));
        let mut open: BTreeMap<u16, AbortHandle> = BTreeMap::new();
        let mut refused = BTreeSet::new();
        loop {
            tokio::select! {
                () = self.end.cancelled() => break,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let targets = self.find_targets().await;
            open.retain(|port, door| {
                let stays = targets.contains_key(port);
                if !stays {
                    door.abort();
                }
                stays
            });
            for (port, to) in targets {
                if open.contains_key(&port) || open.len() >= PORTS {
                    continue;
                }
                match StdListener::bind((self.public, port)).and_then(take_listener) {
                    Ok(listener) => {
                        let to = FarEnd::Cell(Arc::clone(&self.cell), to);
                        let relay =
                            PortRelay { to, turns: Arc::clone(&turns), end: self.end.clone() };
                        open.insert(port, tokio::spawn(relay.serve(listener)).abort_handle());
                    }
                    Err(error) if refused.insert(port) => {
                        warn(format!("port {port} can't be reached at {}: {error}", self.public));
                    }
                    // The instance's own former VM may still have it, and leave.
                    Err(_) => {}
                }
            }
        }
        open.values().for_each(AbortHandle::abort);
    }

    /// Returns the open ports at which somebody listens, and where in the cell.
    async fn find_targets(&self) -> BTreeMap<u16, SocketAddr> {
        let ports = self.ports.borrow().clone();
        if ports.is_empty() {
            return BTreeMap::new();
        }
        let cell = Arc::clone(&self.cell);
        let reading = spawn_blocking(move || {
            cell.in_network(|| {
                let read = |name| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
                Ok((read("tcp")?, read("tcp6").unwrap_or_default()))
            })
        });
        let (v4, v6) = match reading.await {
            Ok(Ok(tables)) => tables,
            Ok(Err(error)) => {
                tracing::debug!(%error, "the ports of a cell can't be read");
                return BTreeMap::new();
            }
            Err(_) => return BTreeMap::new(),
        };
        let listeners = listeners_of(&v4).chain(listeners_of(&v6));
        let found = listeners.filter_map(|(address, port)| target_of(address, port, self.own));
        found.filter(|(port, _)| ports.iter().any(|range| range.contains(port))).collect()
    }
}

/// Returns the public port of a listening socket with this local address (as the kernel's table has it) and port, and the address
/// at which the socket is reached in the cell; `None`: it has no public port.
fn target_of(address: &str, port: u16, own: Ipv4Addr) -> Option<(u16, SocketAddr)> {
    let hex = |address: Ipv4Addr| format!("{:08X}", u32::from_ne_bytes(address.octets()));
    if port == INNER_PORT && address == hex(Ipv4Addr::LOCALHOST) {
        return Some((SSH_PORT, (Ipv4Addr::LOCALHOST, INNER_PORT).into()));
    }
    let is_any = !address.is_empty() && address.bytes().all(|digit| digit == b'0');
    // Of the ssh server's port at the private address the relay is the only listener: users may not listen there.
    let is_own = address == hex(own) && port != SSH_PORT;
    (is_any || is_own).then(|| (port, (own, port).into()))
}

/// Returns the local addresses and ports of listening sockets in a table of the kernel's (proc(5), `/proc/net/tcp`).
fn listeners_of(table: &str) -> impl Iterator<Item = (&str, u16)> {
    table.lines().skip(1).filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (local, state) = (words.nth(1)?, words.nth(1)?);
        let (address, port) = local.split_once(':').filter(|_| state == LISTENS)?;
        Some((address, u16::from_str_radix(port, 16).ok()?))
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
        0: 0100007F:08AE 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0\n   \
        1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 2 1 0 100 0 0 10 0\n   \
        2: 0900000A:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 3 1 0 100 0 0 10 0\n   \
        3: 0100007F:0051 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4 1 0 100 0 0 10 0\n   \
        4: 0900000A:0052 0900000A:0050 01 00000000:00000000 00:00000000 00000000  1000        0 5 1 0 100 0 0 10 0\n   \
        broken\n   5: 00000000:XXXX 00000000:0000 0A";

    #[test]
    fn what_listens_at_an_address_of_the_vm_has_a_public_port() {
        let own = Ipv4Addr::new(10, 0, 0, 9);
        let found = listeners_of(TABLE).filter_map(|(address, port)| target_of(address, port, own));
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, INNER_PORT));
        let expected = [(22, loopback), (8080, (own, 8080).into()), (80, (own, 80).into())];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        let v6 = "h\n 0: 00000000000000000000000000000000:1F90 0:0 0A";
        let found = listeners_of(v6).filter_map(|(address, port)| target_of(address, port, own));
        assert_eq!(found.collect::<Vec<_>>(), [(8080, (own, 8080).into())]);
    }

    #[test]
    fn the_api_is_on_this_host_or_on_the_coordinator_s() {
        let own = Ipv4Addr::new(10, 0, 0, 9);
        let order = |api: &str| {
            let api = Some(api.parse().unwrap());
            RelayOrder { vm: 0, own, api, public: None, network: None, has_ssh: false }
        };
        let api = |api: &str, coordinator: &str| {
            order(api).with_api_found(coordinator).unwrap().api.unwrap().to_string()
        };
        assert_eq!(api("127.0.0.1:7000", "10.0.0.5:7380"), "127.0.0.1:7000");
        assert_eq!(api("0.0.0.0:7000", "10.0.0.5:7380"), "10.0.0.5:7000");
        assert_eq!(api("0.0.0.0:7000", "[fd00::5]:7380"), "[fd00::5]:7000");
        order("0.0.0.0:7000").with_api_found("nowhere").unwrap_err();
    }

    #[tokio::test]
    async fn bytes_are_carried_both_ways_until_the_relays_end() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let at = listener.local_addr().unwrap();
        let end = CancellationToken::new();
        let relay = PortRelay {
            to: FarEnd::Host(server.local_addr().unwrap()),
            turns: Arc::new(Semaphore::new(1)),
            end: end.clone(),
        };
        let serving = tokio::spawn(relay.serve(listener));
        let mut near = TcpStream::connect(at).await.unwrap();
        near.write_all(b"ping").await.unwrap();
        let (mut far, _) = server.accept().await.unwrap();
        let mut said = [0; 4];
        far.read_exact(&mut said).await.unwrap();
        far.write_all(b"pong").await.unwrap();
        near.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"pong");
        // The relay's end ends its connections, too.
        end.cancel();
        assert_eq!(near.read(&mut said).await.unwrap(), 0);
        serving.abort();
    }
}
