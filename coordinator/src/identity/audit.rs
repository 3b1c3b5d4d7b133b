//! Audit record of a run, in its folder: a line of JSON for each request to the coordinator, accepted or refused.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use dormouse_identity::{Role, TokenId};
use serde_json::json;

/// Name of the audit record in a run's folder.
const AUDIT: &str = "audit.jsonl";
/// Number of refusals that have a line each; after them only the 2,048th, the 4,096th and so on have one.
const REFUSALS: u64 = 1_024;

/// A line of the audit record: a request to a run's coordinator to join or to do something, and whether it was
/// refused.
#[derive(Clone, Debug)]
pub(crate) struct AuditEntry<'a> {
    pub(crate) wanted: &'a str,
    pub(crate) role: Role,
    pub(crate) from: Option<SocketAddr>,
    /// The token that was shown, or with which the caller's certificate was obtained; `None`: unknown.
    pub(crate) token: Option<TokenId>,
    pub(crate) worker: Option<&'a str>,
    /// Why the call was refused; `None`: it was accepted.
    pub(crate) refused: Option<&'a str>,
    /// Number of refusals so far.
    pub(crate) refusals: u64,
}

/// Writer of a run's audit record.
#[derive(Clone, Debug)]
pub(crate) struct AuditLog {
    path: PathBuf,
    file: Arc<Mutex<Option<File>>>,
}

impl AuditLog {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self { path: folder.join(AUDIT), file: Arc::default() }
    }

    /// Appends a line. A failure is logged, and the request is treated as if it had succeeded.
    pub(crate) fn note_entry(&self, entry: &AuditEntry<'_>) {
        let AuditEntry { wanted, role, from, token, worker, refused, refusals } = entry;
        if refused.is_some() && *refusals > REFUSALS && !refusals.is_power_of_two() {
            return;
        }
        let unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let mut line = json!({
            "unix_ms": u64::try_from(unix_ms).unwrap_or(u64::MAX),
            "wanted": wanted,
            "role": role.name(),
            "from": from.map(|it| it.ip().to_canonical().to_string()),
            "token": token.map(|it| it.to_string()),
            "let_in": refused.is_none(),
        });
        if let Some(worker) = worker {
            line["worker"] = json!(worker);
        }
        if let Some(why) = refused {
            line["why"] = json!(why);
            line["refusals"] = json!(refusals);
        }
        if let Err(error) = self.append_line(&format!("{line}\n")) {
            let path = self.path.display();
            tracing::warn!(%error, "a request could not be recorded in {path}");
        }
    }

    fn append_line(&self, line: &str) -> std::io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.is_none() {
            let options = OpenOptions::new().append(true).create(true).mode(0o600).to_owned();
            *file = Some(options.open(&self.path)?);
        }
        file.as_mut().map_or(Ok(()), |file| file.write_all(line.as_bytes()))
    }
}
