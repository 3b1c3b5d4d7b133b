//! The server's thread, started before a run and ended after it.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use dormouse_coordinator::CoordinatorVitals;
use rustix::process::setpriority_process;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use super::access::{PageAccess, PageTokens};
use super::connection::answer_all;
use super::routes::SiteState;
use crate::{FollowedRun, source};

/// File in a run's folder with the address of its page.
const ADDRESS_FILE: &str = "http";
/// Time for which open pages still get the last events after the run's end.
const LAST: Duration = Duration::from_secs(1);
/// Niceness of a thread whose result is not urgent.
const LOW: i32 = 10;

/// Configuration of a page: the run and the address.
#[derive(Debug)]
pub struct PageConfig {
    /// Address to listen at.
    pub listen: SocketAddr,
    /// The run's folder.
    pub folder: PathBuf,
    /// Tokens of observers and operators; clients from other hosts have to show one. Without tokens only clients on
    /// this host are accepted.
    pub tokens: PageTokens,
    /// The coordinator's own figures, if the coordinator is in this process; `None` otherwise.
    pub vitals: Option<CoordinatorVitals>,
    /// If set, the page plays the run from its beginning, this many times as fast as its clock.
    pub playback: Option<f64>,
}

/// Reason for which a page can't be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The server can't listen at the address.
    #[error("the page can't be served at {listen}: {source}; give another address with --http")]
    Listen {
        /// Address that was requested.
        listen: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// Clients from other hosts would have no token to show.
    #[error(
        "the page can't be served at {listen}: other hosts could reach it, and the run has no token \
         for them; listen at 127.0.0.1"
    )]
    NoSecret {
        /// Address that was requested.
        listen: SocketAddr,
    },
    /// The system refuses to start the server's thread.
    #[error("the page can't be served: {0}")]
    Thread(io::Error),
}

/// A page that is served until this value is dropped.
#[derive(Debug)]
pub struct ServedRun {
    address: SocketAddr,
    file: Option<PathBuf>,
    end: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl ServedRun {
    /// Address of the page.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// URL of the page for a browser on this host.
    #[must_use]
    pub fn url(&self) -> String {
        let mut at = self.address;
        if at.ip().is_unspecified() {
            at.set_ip(match at {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        format!("http://{at}/")
    }

    /// Writes the page's address into the run's folder, until the page ends.
    pub fn say_in(&mut self, folder: &std::path::Path) {
        let file = folder.join(ADDRESS_FILE);
        match std::fs::write(&file, format!("{}\n", self.address)) {
            Ok(()) => self.file = Some(file),
            Err(error) => {
                let file = file.display();
                tracing::warn!(%error, "the address of the page can't be written to {file}");
            }
        }
    }
}

impl Drop for ServedRun {
    fn drop(&mut self) {
        self.end.cancel();
        if let Some(thread) = self.thread.take() {
            // The thread has reported its error itself.
            let _ = thread.join();
        }
        if let Some(file) = self.file.take() {
            // Another run may have taken the file.
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Serves the page of a run on a thread of its own.
///
/// # Errors
///
/// [`ServeError`].
pub fn serve(watch: PageConfig) -> Result<ServedRun, ServeError> {
    let PageConfig { listen, folder, tokens, vitals, playback } = watch;
    if tokens.now().is_empty() && !listen.ip().is_loopback() {
        return Err(ServeError::NoSecret { listen });
    }
    let refused = |source| ServeError::Listen { listen, source };
    let listener = TcpListener::bind(listen).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let end = CancellationToken::new();
    let until = end.clone();
    let runtime = Builder::new_current_thread().enable_all().build().map_err(ServeError::Thread)?;
    let thread = std::thread::Builder::new()
        .name("page".to_owned())
        .spawn(move || {
            lower_priority();
            let followed = Arc::new(FollowedRun::new(folder.clone(), vitals));
            let site =
                SiteState::new(Arc::clone(&followed), PageAccess::new(tokens, folder), playback);
            runtime.block_on(until_end(listener, site, followed, until));
            runtime.shutdown_timeout(LAST);
        })
        .map_err(ServeError::Thread)?;
    Ok(ServedRun { address, file: None, end, thread: Some(thread) })
}

/// Lowers the priority of this thread and of those that it starts: watching must not delay a run.
fn lower_priority() {
    if let Err(error) = setpriority_process(None, LOW) {
        tracing::warn!(%error, "the page's server runs at ordinary priority: timing may suffer under load");
    }
}

async fn until_end(
    listener: TcpListener,
    site: SiteState,
    followed: Arc<FollowedRun>,
    end: CancellationToken,
) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the page can't be served"),
    };
    let last = async {
        end.cancelled().await;
        // Open pages get the run's last events.
        tokio::time::sleep(LAST).await;
    };
    tokio::select! {
        () = answer_all(listener, site) => {}
        () = source::follow(followed) => {}
        () = last => {}
    }
}
