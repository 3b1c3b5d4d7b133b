//! The check of what a call carries.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use dormouse_identity::{Role, TOKEN_KEY, Token, WorkerLife};
use tonic::{Request, Status};

use super::sources::Sources;
use super::token_file;
use crate::identity::candidates::Caller;

/// Lets those in that have the token of a role, as the files in the run's folder have it now.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    folder: PathBuf,
    refused: Arc<AtomicU64>,
    pub(super) sources: Sources,
}

impl Guard {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, refused: Arc::default(), sources: Sources::default() }
    }

    /// Whether a call may do what this role does.
    ///
    /// # Errors
    ///
    /// No token of the role came with it, or one whose time is over. That is counted against its
    /// connection, and said in the log.
    pub(crate) fn demand<T>(&self, request: &Request<T>, wanted: Role) -> Result<(), Status> {
        let caller = request.extensions().get::<Caller>();
        match self.check(request, wanted) {
            Ok(()) => {
                if let Some(caller) = caller {
                    caller.candidate.admit();
                }
                Ok(())
            }
            Err(what) => {
                self.refuse(caller, &what);
                let file = wanted.file();
                Err(Status::unauthenticated(format!(
                    "{what}: give --secret-file with a copy of the file `{file}` in the run's folder on \
                     the coordinator's host"
                )))
            }
        }
    }

    fn check<T>(&self, request: &Request<T>, wanted: Role) -> Result<(), String> {
        let Some(carried) = request.metadata().get(TOKEN_KEY) else {
            return Err(format!("the {wanted}'s token of the run is missing"));
        };
        for role in Role::ALL.into_iter().filter(|role| role.includes(wanted)) {
            // A file of some 200 bytes: what is read is always what was renewed last.
            let text = std::fs::read_to_string(token_file(&self.folder, role));
            let token = text.ok().and_then(|text| text.parse::<Token>().ok());
            let Some(token) = token.filter(|token| token.is(carried.as_bytes())) else { continue };
            if !token.has_expired() {
                return Ok(());
            }
            let ago = dormouse_identity::now_s().saturating_sub(token.expires) / 60;
            return Err(format!(
                "the token's time was over {ago} min ago (on the coordinator's host `dormouse token \
                 DIR --role {role} --renew` makes a new one)"
            ));
        }
        Err(format!("the token is not that of this run's {wanted}"))
    }

    /// The worker whose certificate the connection of a call has shown. It is admitted once its run
    /// has taken it.
    ///
    /// # Errors
    ///
    /// It has shown none, which is counted against it as a wrong token is.
    pub(crate) fn certified<T>(
        &self,
        request: &Request<T>,
    ) -> Result<(Arc<WorkerLife>, Caller), Status> {
        let caller = request.extensions().get::<Caller>();
        let life = caller.and_then(|caller| Some((caller.life.clone()?, caller.clone())));
        life.ok_or_else(|| {
            self.refuse(caller, "its connection has shown no worker's certificate");
            Status::unauthenticated(
                "a worker shows the certificate that it was given when it joined",
            )
        })
    }

    fn refuse(&self, caller: Option<&Caller>, what: &str) {
        let times = self.refused.fetch_add(1, Ordering::Relaxed) + 1;
        let address = caller.and_then(|caller| caller.address);
        if let Some(caller) = caller {
            caller.candidate.refuse();
        }
        if let Some(address) = address {
            self.sources.refuse(address.ip(), Instant::now());
        }
        // Whoever calls all the time does not fill the log.
        if times.is_power_of_two() {
            let from = address.map(|it| it.to_string());
            tracing::warn!(from, times, "a call was refused: {what}");
        }
    }
}
