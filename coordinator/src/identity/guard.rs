//! Checks the token or certificate that a call carries.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dormouse_identity::{Role, TOKEN_KEY, Token, TokenId, WorkerLife};
use tonic::{Request, Status};

use super::audit::{AuditEntry, AuditLog};
use super::refused::{refused_tokens, take_once};
use super::sources::RefusalSources;
use super::token_file;
use crate::identity::candidates::ConnectionCaller;
use crate::system::world::WallClock;

/// Explanation for a caller whose token, or certificate obtained with it, is no longer accepted.
const NO_LONGER: &str = "its token was renewed, or refused, since: give --secret-file with a copy of the file `secret` in \
                         the run's folder on the coordinator's host, as it is now";

/// Lets in callers with the token of a role, by the current files in the run's folder.
#[derive(Clone, Debug)]
pub(crate) struct TokenGuard {
    folder: PathBuf,
    refused: Arc<AtomicU64>,
    audit: AuditLog,
    pub(super) sources: RefusalSources,
    /// Clock for the validity of certificates.
    wall: WallClock,
    /// Validity of a certificate.
    valid: Duration,
    renewed: Arc<Mutex<Renewals>>,
}

/// End of the newest certificate of each worker's session, in seconds since 1970.
type Renewals = BTreeMap<(String, u64), u64>;

/// An accepted token of a call, which can be checked again later.
#[derive(Clone)]
pub(crate) struct TokenBearer {
    guard: TokenGuard,
    role: Role,
    carried: Vec<u8>,
    /// Public name of the token.
    pub(crate) id: TokenId,
}

impl std::fmt::Debug for TokenBearer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Bearer").field(&self.role).field(&self.id).finish()
    }
}

impl TokenBearer {
    /// Checks that a call with this token would be let in now.
    ///
    /// # Errors
    ///
    /// The token was renewed or revoked, or has expired.
    pub(crate) fn check_token(&self) -> Result<(), Status> {
        let found = self.guard.find_token(&self.carried, self.role);
        found.map(drop).map_err(|(_, why)| Status::unauthenticated(why))
    }
}

/// Remedy for a worker whose certificate has expired.
const REJOIN: &str = "start the worker again, so that it joins anew with its token (--secret-file)";

impl TokenGuard {
    pub(crate) fn new(folder: PathBuf, wall: WallClock, valid: Duration) -> Self {
        let audit = AuditLog::in_folder(&folder);
        let (refused, renewed) = (Arc::default(), Arc::default());
        Self { folder, refused, audit, sources: RefusalSources::default(), wall, valid, renewed }
    }

    /// Returns the validity of a certificate.
    pub(crate) const fn certificates_valid(&self) -> Duration {
        self.valid
    }

    /// Returns the time in seconds since 1970.
    pub(crate) fn now_s(&self) -> u64 {
        self.wall.unix_us() / 1_000_000
    }

    /// Returns the end of a certificate issued to this session now, in seconds since 1970, and records it as the
    /// newest.
    pub(crate) fn end_of_new(&self, life: &WorkerLife) -> u64 {
        let now = self.now_s();
        let until = now.saturating_add(self.valid.as_secs());
        let mut renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        // Of lives that are over nobody asks any more.
        renewed.retain(|_, until| *until > now);
        renewed.insert((life.worker.clone(), life.incarnation), until);
        until
    }

    /// Checks that a connection's certificate hasn't expired, unless its worker has renewed it over any connection.
    ///
    /// # Errors
    ///
    /// The certificate has expired.
    pub(crate) fn check_time(
        &self,
        life: &WorkerLife,
        caller: &ConnectionCaller,
    ) -> Result<(), Status> {
        let key = (life.worker.clone(), life.incarnation);
        let renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        // Who comes with an old one has to show the new one.
        let renewed = renewed.get(&key).copied().filter(|_| caller.came_in_time);
        let until = caller.until.max(renewed.unwrap_or(0));
        match (self.now_s().checked_sub(until), caller.until) {
            (None, _) => Ok(()),
            (_, 0) => Err(Status::unauthenticated(format!(
                "its certificate is of an earlier version and has no time of expiry: {REJOIN}"
            ))),
            (Some(ago), _) => {
                let ago = ago / 60;
                Err(Status::unauthenticated(format!(
                    "its certificate expired {ago} min ago: {REJOIN}"
                )))
            }
        }
    }

    /// Checks that a call may do what this role does; `wanted` describes the call in the audit record.
    ///
    /// # Errors
    ///
    /// The call has no token of the role, or an expired one. The refusal counts against the call's connection and is
    /// logged.
    pub(crate) fn demand_role<T>(
        &self,
        request: &Request<T>,
        role: Role,
        wanted: &str,
    ) -> Result<TokenBearer, Status> {
        let caller = request.extensions().get::<ConnectionCaller>();
        let from = caller.and_then(|caller| caller.address);
        let carried = request.metadata().get(TOKEN_KEY).map(|it| it.as_bytes());
        let found = match carried {
            Some(carried) => self.find_token(carried, role).or_else(|refused| {
                // With one that is for one worker nobody can do anything but join.
                let once = (role == Role::Worker).then(|| take_once(&self.folder, carried));
                once.flatten().map(|token| token.id()).ok_or(refused)
            }),
            None => Err((None, format!("the call has no token of the run's {role}"))),
        };
        match (found, carried) {
            (Ok(id), Some(carried)) => {
                caller.map_or(Ok(()), ConnectionCaller::stay_connected)?;
                // Who asks how a run goes does so all the time; of who joins there is a line with its name.
                if !matches!(wanted, "status" | "join") {
                    self.note_access(wanted, role, (from, Some(id), None), None);
                }
                Ok(TokenBearer { guard: self.clone(), role, carried: carried.to_vec(), id })
            }
            (Ok(_), None) => Err(Status::unauthenticated("the call has no token of the run")),
            (Err((id, why)), _) => {
                self.refuse_caller(caller, &why);
                self.note_access(wanted, role, (from, id, None), Some(&why));
                let file = role.file();
                Err(Status::unauthenticated(format!(
                    "{why}: give --secret-file with a copy of the file `{file}` in the run's folder on \
                     the coordinator's host"
                )))
            }
        }
    }

    /// Returns the public name of a call's token, whose role must include `wanted`. The error has the reason, and the name of the
    /// token that was shown, if it is a token at all.
    fn find_token(
        &self,
        carried: &[u8],
        wanted: Role,
    ) -> Result<TokenId, (Option<TokenId>, String)> {
        for role in Role::ALL.into_iter().filter(|role| role.includes(wanted)) {
            // A file of some 200 bytes: what is read is always what was renewed last.
            let text = std::fs::read_to_string(token_file(&self.folder, role));
            let token = text.ok().and_then(|text| text.parse::<Token>().ok());
            let Some(token) = token.filter(|token| token.is(carried)) else { continue };
            let id = token.id();
            if self.is_refused(Some(id)) {
                return Err((Some(id), "the token is refused".to_owned()));
            }
            if !token.has_expired() {
                return Ok(id);
            }
            let ago = dormouse_identity::now_s().saturating_sub(token.expires) / 60;
            let why = format!(
                "the token's time was over {ago} min ago (on the coordinator's host `dormouse token \
                 DIR --role {role} --renew` makes a new one)"
            );
            return Err((Some(id), why));
        }
        // The name of what was shown, if it is a token at all, tells one that was renewed.
        let shown = std::str::from_utf8(carried).ok().and_then(|text| text.parse::<Token>().ok());
        let why = format!("the token is not that of this run's {wanted}");
        Err((shown.map(|token| token.id()), why))
    }

    /// Returns whether a token is revoked, and with it all certificates obtained with it. A certificate that doesn't
    /// name its token is refused once any token is revoked.
    fn is_refused(&self, token: Option<TokenId>) -> bool {
        match (refused_tokens(&self.folder), token) {
            (Ok(refused), Some(token)) => refused.contains(&token),
            (Ok(refused), None) => !refused.is_empty(),
            (Err(error), _) => {
                tracing::warn!(%error, "the list of refused tokens can't be read: calls with a \
                         token are refused until it can");
                true
            }
        }
    }

    /// Checks that certificates obtained with this token are accepted.
    ///
    /// # Errors
    ///
    /// The token was renewed or revoked.
    pub(crate) fn check_joined_with(&self, token: Option<TokenId>) -> Result<(), Status> {
        match self.is_refused(token) {
            true => Err(Status::unauthenticated(NO_LONGER)),
            false => Ok(()),
        }
    }

    /// Returns the worker whose certificate a call's connection has shown. The connection is accepted once the run has
    /// accepted the worker.
    ///
    /// # Errors
    ///
    /// The connection has shown no certificate, an expired one, or one obtained with a revoked token, which counts
    /// against the connection like a wrong token.
    pub(crate) fn find_certified<T>(
        &self,
        request: &Request<T>,
    ) -> Result<(Arc<WorkerLife>, ConnectionCaller), Status> {
        let caller = request.extensions().get::<ConnectionCaller>();
        let life = caller.and_then(|caller| Some((caller.life.clone()?, caller.clone())));
        let Some((life, caller)) = life else {
            self.refuse_caller(caller, "its connection has no worker's certificate");
            return Err(Status::unauthenticated(
                "a worker has to use the certificate that it was given when it joined",
            ));
        };
        let checked = self.check_joined_with(caller.token);
        let checked = checked.and_then(|()| self.check_time(&life, &caller));
        checked.inspect_err(|status| {
            self.refuse_caller(Some(&caller), status.message());
            let who = (caller.address, caller.token, Some(&*life.worker));
            let why = Some(status.message());
            self.note_access("be the worker of its certificate", Role::Worker, who, why);
        })?;
        Ok((life, caller))
    }

    /// Appends a request to the audit record.
    pub(crate) fn note_access(
        &self,
        wanted: &str,
        role: Role,
        (from, token, worker): (Option<std::net::SocketAddr>, Option<TokenId>, Option<&str>),
        refused: Option<&str>,
    ) {
        let refusals = self.refused.load(Ordering::Relaxed);
        self.audit.note_entry(&AuditEntry { wanted, role, from, token, worker, refused, refusals });
    }

    fn refuse_caller(&self, caller: Option<&ConnectionCaller>, what: &str) {
        let times = self.refused.fetch_add(1, Ordering::Relaxed) + 1;
        let address = caller.and_then(|caller| caller.address);
        if let Some(caller) = caller {
            caller.candidate.count_refused();
        }
        if let Some(address) = address {
            self.sources.count_refusal(address.ip(), Instant::now());
        }
        // Whoever calls all the time does not fill the log.
        if times.is_power_of_two() {
            let from = address.map(|it| it.to_string());
            tracing::warn!(from, times, "a call was refused: {what}");
        }
    }
}
