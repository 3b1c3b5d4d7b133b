//! Answers connections on any stream as the server does.
//!
//! Public so that fuzz targets reach the server's parsing of requests.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use dormouse_identity::Token;
use tokio::io::{AsyncRead, AsyncWrite};

use super::access::{PageAccess, PageTokens};
use super::connection::answer;
use super::peer::PagePeer;
use super::routes::SiteState;
use crate::{FollowedRun, source};

/// Origin of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerOrigin {
    /// The call comes from this host, from the user of the run.
    Owner,
    /// The call comes from another host.
    Stranger,
}

/// The page of a run that does not grow any more.
#[derive(Clone, Debug)]
pub struct ServedPage {
    site: SiteState,
}

impl ServedPage {
    /// Reads the run in this folder; its page accepts these tokens.
    pub async fn read(folder: PathBuf, tokens: Vec<Token>) -> Self {
        let followed = Arc::new(FollowedRun::new(folder.clone(), None));
        if let Err(error) = source::look(&followed).await {
            followed.trouble(error.to_string());
        }
        Self {
            site: SiteState::new(
                followed,
                PageAccess::new(PageTokens::Given(tokens), folder),
                None,
            ),
        }
    }

    /// Answers the requests of one connection until it ends.
    pub async fn answer<S>(&self, caller: CallerOrigin, stream: S)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (ip, user) = match caller {
            CallerOrigin::Owner => (Ipv4Addr::LOCALHOST, Some(nix::unistd::geteuid().as_raw())),
            // An address reserved for documentation.
            CallerOrigin::Stranger => (Ipv4Addr::new(192, 0, 2, 7), None),
        };
        let peer = PagePeer::of_user(SocketAddr::from((ip, 50_000)), user);
        answer(stream, peer, self.site.clone()).await;
    }
}
