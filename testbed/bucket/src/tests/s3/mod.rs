//! A real server of S3's protocol, s3s-fs, on loopback.

use std::path::Path;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The access key that it knows.
pub(crate) const KEY: &str = "who";
/// The secret of that key.
pub(crate) const SECRET: &str = "a-secret-that-is-no-secret";

/// A server whose buckets are the folders of a folder. It ends with its value.
pub(crate) struct Server {
    /// The server's address, as an endpoint is written.
    pub(crate) address: String,
    serving: JoinSet<()>,
}

impl Server {
    /// Serves the folders in `root` at a free port.
    pub(crate) async fn start(root: &Path) -> Self {
        Self::start_at(root, "127.0.0.1:0").await
    }

    /// Serves the folders in `root` at this address.
    pub(crate) async fn start_at(root: &Path, address: &str) -> Self {
        let mut service = S3ServiceBuilder::new(s3s_fs::FileSystem::new(root).expect("a folder"));
        service.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let service = service.build();
        let listener = TcpListener::bind(address).await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("its address"));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let service = service.clone();
                connections.spawn(async move {
                    let http = Builder::new(TokioExecutor::new());
                    let _ = http.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, serving }
    }

    /// Ends the server and all of its connections; its port is free then.
    pub(crate) async fn stop(mut self) {
        self.serving.shutdown().await;
    }
}
