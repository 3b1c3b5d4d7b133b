//! The page of a live run, served beside it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use dormouse_coordinator::BoundRun;
use dormouse_identity::Role;
use dormouse_watch::server::{PageConfig, PageTokens, ServedRun, serve};

use super::LiveError;
use crate::said;

/// The page of a live run.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The address at which the page is served.
    pub listen: SocketAddr,
    /// Whether the page is opened in a browser.
    pub opens: bool,
}

impl Page {
    /// Serves the page of a run that is about to be conducted, and prints its address.
    ///
    /// # Errors
    ///
    /// The page can't be served at this address.
    pub(super) fn serve(self, run: &BoundRun, folder: &Path) -> Result<ServedRun, LiveError> {
        let watch = PageConfig {
            listen: self.listen,
            folder: folder.to_owned(),
            tokens: page_tokens(folder),
            vitals: Some(run.vitals()),
            playback: None,
        };
        let mut serving = serve(watch)?;
        serving.say_in(folder);
        let (url, folder) = (serving.url(), folder.display());
        said::line(&format!(
            "look on at {url}; once it is over, `dormouse watch {folder}` shows it again"
        ));
        if self.opens {
            open_in_browser(&url);
        }
        Ok(serving)
    }
}

/// The tokens in a run's folder for observers and operators.
pub fn page_tokens(folder: &Path) -> PageTokens {
    PageTokens::Files([Role::Observer, Role::Operator].map(|role| folder.join(role.file())).into())
}

/// Opens a page in the user's browser; without a browser its address is printed.
pub fn open_in_browser(url: &str) {
    let browser = std::env::var("BROWSER").ok().filter(|it| !it.is_empty());
    let programs = browser.into_iter().chain(["xdg-open".to_owned(), "open".to_owned()]);
    for program in programs {
        let mut opening = Command::new(&program);
        opening.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if opening.spawn().is_ok() {
            return;
        }
    }
    said::line(&format!("no browser was found here: open {url}"));
}
