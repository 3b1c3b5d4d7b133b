//! Connections to a run's page, answered by the same server, on any stream.
//!
//! Here so that fuzz targets reach what the server reads of a request.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use dormouse_identity::Token;
use tokio::io::{AsyncRead, AsyncWrite};

use super::access::Access;
use super::peer::Peer;
use super::routes::{Site, router};
use crate::{Followed, source};

/// The place from which a connection comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// This host, and the user whose run it is.
    Owner,
    /// Anybody on another host.
    Stranger,
}

/// The page of a run that grows no more.
#[derive(Clone, Debug)]
pub struct Page {
    site: Site,
}

impl Page {
    /// Reads the run in this folder, whose page lets in who shows one of the tokens.
    pub async fn read(folder: PathBuf, tokens: Vec<Token>) -> Self {
        let followed = Arc::new(Followed::new(folder, None));
        if let Err(error) = source::look(&followed).await {
            followed.trouble(error.to_string());
        }
        Self { site: Site::new(followed, Access::new(tokens), None) }
    }

    /// Answers the requests of one connection; never ends.
    pub async fn answer<S>(&self, caller: Caller, stream: S)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (ip, user) = match caller {
            Caller::Owner => (Ipv4Addr::LOCALHOST, Some(nix::unistd::geteuid().as_raw())),
            // An address of the documentation's.
            Caller::Stranger => (Ipv4Addr::new(192, 0, 2, 7), None),
        };
        let peer = Peer { address: SocketAddr::from((ip, 50_000)), user };
        let service = router(self.site.clone()).into_make_service_with_connect_info::<Peer>();
        let only = OnlyOne { stream: Some(stream), peer };
        // It does not fail: its listener has nothing to fail of.
        let _ = axum::serve(only, service).await;
    }
}

/// A listener to which one connection comes, and no other.
struct OnlyOne<S> {
    stream: Option<S>,
    peer: Peer,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Listener for OnlyOne<S> {
    type Io = S;
    type Addr = Peer;

    async fn accept(&mut self) -> (S, Peer) {
        match self.stream.take() {
            Some(stream) => (stream, self.peer),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Ok(self.peer)
    }
}

impl<S> Connected<IncomingStream<'_, OnlyOne<S>>> for Peer
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    fn connect_info(stream: IncomingStream<'_, OnlyOne<S>>) -> Self {
        *stream.remote_addr()
    }
}
