//! Benchmark of the cost of TLS, over loopback, by turns in clear, encrypted and as bare bytes of TCP: uploads of
//! checkpoints of 64 and 512 MiB to a coordinator that drops them, round trips of small messages, and handshakes; and
//! of the gain from compressing chunks for a wire of 1 Gbit/s.
//!
//!     cargo bench -p dormouse-identity --bench transport [-- REPEATS]

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use dormouse_identity::{Authority, client_config, server_config};
use dormouse_proto::{Packing, unpack, v1};
use dormouse_samples::Samples;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};
use v1::coordinator_client::CoordinatorClient;
use v1::coordinator_server::{Coordinator, CoordinatorServer};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const CHUNK: usize = 256 << 10;
const PINGS: u32 = 5_000;

/// A coordinator that drops the data it receives, and answers every message of a session with an empty one.
struct Sink;

#[tonic::async_trait]
impl Coordinator for Sink {
    type SessionStream = ReceiverStream<std::result::Result<v1::ToWorker, Status>>;
    type GetCheckpointStream = ReceiverStream<std::result::Result<v1::CheckpointChunk, Status>>;

    async fn join(
        &self,
        _: Request<v1::JoinRequest>,
    ) -> std::result::Result<Response<v1::JoinReply>, Status> {
        Err(Status::unimplemented("nobody joins"))
    }

    async fn session(
        &self,
        request: Request<Streaming<v1::FromWorker>>,
    ) -> std::result::Result<Response<Self::SessionStream>, Status> {
        let mut heard = request.into_inner();
        let (say, said) = mpsc::channel(8);
        tokio::spawn(async move {
            while let Ok(Some(v1::FromWorker { ack, .. })) = heard.message().await {
                let _ = say.send(Ok(v1::ToWorker { ack, body: None })).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(said)))
    }

    async fn put_checkpoint(
        &self,
        request: Request<Streaming<v1::CheckpointChunk>>,
    ) -> std::result::Result<Response<v1::CheckpointReceipt>, Status> {
        let (mut chunks, mut bytes) = (request.into_inner(), 0);
        while let Some(mut chunk) = chunks.message().await? {
            let data =
                unpack(&mut chunk).map_err(|bad| Status::invalid_argument(bad.to_string()))?;
            bytes += data.len() as u64;
        }
        Ok(Response::new(v1::CheckpointReceipt { bytes }))
    }

    async fn get_checkpoint(
        &self,
        _: Request<v1::CheckpointRef>,
    ) -> std::result::Result<Response<Self::GetCheckpointStream>, Status> {
        Err(Status::unimplemented("there are none"))
    }
}

/// A connection in clear or over TLS.
struct Over<S>(S);

impl<S> Connected for Over<S> {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl<S: AsyncRead + Unpin> AsyncRead for Over<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Over<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}

/// Serves incoming connections; `accept` makes the stream to be served from a TCP connection, such as by a TLS
/// handshake.
async fn serve<S, F>(listener: TcpListener, accept: impl Fn(TcpStream) -> F)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = io::Result<S>>,
{
    let (ready, stream) = mpsc::channel(1);
    let service = CoordinatorServer::new(Sink);
    tokio::spawn(
        Server::builder().add_service(service).serve_with_incoming(ReceiverStream::new(stream)),
    );
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        if let Ok(stream) = accept(stream).await {
            let _ = ready.send(Ok::<_, io::Error>(Over(stream))).await;
        }
    }
}

async fn upload(channel: &Channel, bytes: usize) -> Result<Duration> {
    let chunk =
        v1::CheckpointChunk { data: vec![7; CHUNK].into(), ..v1::CheckpointChunk::default() };
    let chunks = tokio_stream::iter(std::iter::repeat_n(chunk, bytes / CHUNK));
    let begun = Instant::now();
    let receipt = CoordinatorClient::new(channel.clone()).put_checkpoint(chunks).await?;
    assert_eq!(receipt.into_inner().bytes, bytes as u64);
    Ok(begun.elapsed())
}

/// A text of this many bytes: lines of numbers, as programs write them.
fn lines(bytes: usize) -> Vec<u8> {
    let line =
        |n: u64| format!("{n},{:.6},{}\n", (n as f64 / 7.0).sin(), n * n % 1_009).into_bytes();
    (0..).flat_map(line).take(bytes).collect()
}

/// Sends bytes over a wire of 1 Gbit/s; if `packs` is true, chunks are compressed where that saves time.
async fn paced_upload(channel: &Channel, bytes: &[u8], packs: bool) -> Result<Duration> {
    const NANOS_PER_BYTE: u64 = 8;
    let (chunks, waiting) = mpsc::channel::<v1::CheckpointChunk>(8);
    let data = bytes.to_vec();
    let writing = tokio::task::spawn_blocking(move || {
        let mut packing = packs.then(Packing::begin);
        for data in data.chunks(CHUNK) {
            let data = data.to_vec().into();
            let mut chunk = v1::CheckpointChunk { data, ..v1::CheckpointChunk::default() };
            if let Some(packing) = &mut packing
                && packing.is_worth()
            {
                packing.pack(&mut chunk);
            }
            let (sent, waits) = (chunk.data.len(), tokio::time::Instant::now());
            let _ = chunks.blocking_send(chunk);
            if let Some(packing) = &mut packing {
                packing.went(sent, waits);
            }
        }
    });
    let mut free = tokio::time::Instant::now();
    let paced = ReceiverStream::new(waiting).then(move |chunk| {
        free = free.max(tokio::time::Instant::now())
            + Duration::from_nanos(NANOS_PER_BYTE * chunk.data.len() as u64);
        async move {
            tokio::time::sleep_until(free).await;
            chunk
        }
    });
    let begun = Instant::now();
    let receipt = CoordinatorClient::new(channel.clone()).put_checkpoint(paced).await?;
    assert_eq!(receipt.into_inner().bytes, bytes.len() as u64);
    writing.await?;
    Ok(begun.elapsed())
}

/// Sends this many bytes through an existing bare TCP connection; returns the time until the other end has all of them.
async fn bare_upload(bytes: usize) -> Result<Duration> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut near = TcpStream::connect(listener.local_addr()?).await?;
    let (mut far, _) = listener.accept().await?;
    let reading = tokio::spawn(async move {
        let (mut chunk, mut left) = (vec![0; CHUNK], bytes);
        while left > 0 {
            match far.read(&mut chunk).await? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                n => left -= n,
            }
        }
        far.write_all(&[1]).await
    });
    let (chunk, begun) = (vec![7; CHUNK], Instant::now());
    for _ in 0..bytes / CHUNK {
        near.write_all(&chunk).await?;
    }
    near.read_exact(&mut [0]).await?;
    let took = begun.elapsed();
    reading.await??;
    Ok(took)
}

/// Sends single bytes there and back through a bare TCP connection; returns the mean time of a round trip.
async fn bare_pings() -> Result<Duration> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut near = TcpStream::connect(listener.local_addr()?).await?;
    let (mut far, _) = listener.accept().await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    tokio::spawn(async move {
        let mut byte = [0];
        while far.read_exact(&mut byte).await.is_ok() && far.write_all(&byte).await.is_ok() {}
    });
    let (mut byte, begun) = ([1], Instant::now());
    for _ in 0..PINGS {
        near.write_all(&byte).await?;
        near.read_exact(&mut byte).await?;
    }
    Ok(begun.elapsed() / PINGS)
}

async fn pings(channel: &Channel) -> Result<Duration> {
    let (say, said) = mpsc::channel(8);
    let mut client = CoordinatorClient::new(channel.clone());
    let mut heard = client.session(ReceiverStream::new(said)).await?.into_inner();
    let begun = Instant::now();
    for ack in 0..u64::from(PINGS) {
        say.send(v1::FromWorker { ack, body: None }).await?;
        heard.next().await.ok_or("it ended")??;
    }
    Ok(begun.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Rate in gibibytes per second of `mib` mebibytes in this time.
#[expect(clippy::cast_precision_loss, reason = "some MiB")]
fn per_second(mib: usize, took: Duration) -> f64 {
    mib as f64 / 1024.0 / took.as_secs_f64()
}

fn endpoint(at: SocketAddr) -> Result<Endpoint> {
    Ok(Endpoint::from_shared(format!("http://{at}"))?.tcp_nodelay(true))
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    // cargo says `--bench`, too.
    let repeats = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(7);
    let authority = Authority::generate()?;
    let plain = TcpListener::bind("127.0.0.1:0").await?;
    let in_clear = plain.local_addr()?;
    tokio::spawn(serve(plain, |stream| async { Ok(stream) }));
    let secured = TcpListener::bind("127.0.0.1:0").await?;
    let encrypted = secured.local_addr()?;
    let acceptor = TlsAcceptor::from(server_config(&authority)?);
    tokio::spawn(serve(secured, move |stream| acceptor.clone().accept(stream)));
    let config = client_config(authority.fingerprint(), None)?;
    let clear = endpoint(in_clear)?.connect().await?;
    let tls = dormouse_identity::channel(&endpoint(encrypted)?, Arc::clone(&config)).await?;
    for mib in [64, 512] {
        let (mut before, mut after, mut rates) = (Vec::new(), Vec::new(), Samples::default());
        for _ in 0..repeats {
            let bare = bare_upload(mib << 20).await?;
            before.push(upload(&clear, mib << 20).await?);
            after.push(upload(&tls, mib << 20).await?);
            rates.push(per_second(mib, after[after.len() - 1]), per_second(mib, bare));
        }
        rates.report_rates(&format!("transfer-{mib}"))?;
        let (before, after) = (median(before), median(after));
        println!("{mib} MiB: {before:.0?} in clear, {after:.0?} over TLS");
    }
    let (mut packed, data) = (Samples::default(), lines(64 << 20));
    for _ in 0..repeats {
        let as_it_is = paced_upload(&tls, &data, false).await?;
        let took = paced_upload(&tls, &data, true).await?;
        packed.push(per_second(64, took), per_second(64, as_it_is));
    }
    packed.report_rates("transfer-packed")?;
    let (mut before, mut after, mut trips) = (Vec::new(), Vec::new(), Samples::default());
    for _ in 0..repeats {
        let bare = bare_pings().await?;
        before.push(pings(&clear).await? / PINGS);
        after.push(pings(&tls).await? / PINGS);
        trips.push(after[after.len() - 1].as_secs_f64() * 1e6, bare.as_secs_f64() * 1e6);
    }
    trips.report_costs("round-trip")?;
    println!("there and back: {:.1?} in clear, {:.1?} over TLS", median(before), median(after));
    let mut shakes = Vec::new();
    for _ in 0..100 {
        let begun = Instant::now();
        let stream = TcpStream::connect(encrypted).await?;
        dormouse_identity::dial(Arc::clone(&config), stream).await?;
        shakes.push(begun.elapsed());
    }
    println!("a connection and its handshake: {:.0?}", median(shakes));
    Ok(())
}
