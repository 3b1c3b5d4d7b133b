//! `dormouse watch` and `dormouse interrupt`: the page of a run, and interruptions of its VMs on a user's request.

use std::net::{Ipv4Addr, SocketAddr};

use dormouse_identity::Role;
use dormouse_watch::server::{PageConfig, PageTokens, ServeError, serve};
use dormouse_watch::{InterruptionRequest, WantedAction, WantedTarget};
use tokio::runtime::Builder;

use super::args::{PageArgs, WatchArgs};
use super::failure::Failure;
use super::interrupt_args::InterruptArgs;
use super::observe::ask;
use super::print::print;
use crate::live::{Page, open_in_browser};
use dormouse_report::output::read_header;

/// Any free port, on an address that only this host reaches.
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

impl PageArgs {
    /// The page that the options ask for; `None`: no page is requested.
    pub(super) fn page(&self) -> Option<Page> {
        let listen = self.http.or(self.open_page.then_some(ANY_PORT))?;
        Some(Page { listen, opens: self.open_page })
    }
}

/// Serves the page of a run in a folder until Ctrl-C.
pub(crate) fn watch(args: &WatchArgs) -> Result<(), Failure> {
    let WatchArgs { dir, http, speed, open_page, secret_file } = args;
    // A run that is yet to begin has no log: whoever looks on waits for it.
    if !dir.is_dir() {
        let meant = super::run_folders::meant(dir);
        let why = match (super::run_folders::is_an_address(dir), dir.exists()) {
            (true, _) => "it is the address of a coordinator, not a run's folder",
            (false, true) => "it is not a folder",
            (false, false) => "there is no such folder",
        };
        return Err(Failure::BadInput(format!("{}: {why}; {meant}", dir.display())));
    }
    if dir.join(dormouse_log::FILE).exists() {
        read_header(dir)?;
    }
    let tokens = match secret_file.as_deref() {
        Some(file) => {
            let token = super::worker::read_token(file, Role::Observer)?;
            // What comes over standard input comes once.
            match file.is_file() {
                true => PageTokens::Files(vec![file.to_owned()]),
                false => PageTokens::Given(vec![token]),
            }
        }
        None => crate::live::page_tokens(dir),
    };
    let (listen, folder, playback) = (http.unwrap_or(ANY_PORT), dir.clone(), *speed);
    let mut serving = serve(PageConfig { listen, folder, tokens, vitals: None, playback })?;
    serving.say_in(dir);
    let url = serving.url();
    print(&format!("{url} shows the run until Ctrl-C"))?;
    if *open_page {
        open_in_browser(&url);
    }
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Failure::Broken(format!("the runtime can't be started: {error}")))?;
    let ends = runtime.block_on(async {
        let mut signals = dormouse_coordinator::ProcessSignals::of_this_process()?;
        signals.next().await;
        Ok::<_, std::io::Error>(())
    });
    ends.map_err(|error| Failure::Broken(format!("signals can't be received: {error}")))
}

/// Makes the provider of a live run act on spot VMs now.
pub(crate) fn interrupt(args: &InterruptArgs) -> Result<(), Failure> {
    let InterruptArgs { at, action, vm, kind, zone, all: _, why } = args;
    let target = match (vm, kind, zone) {
        (Some(vm), ..) => WantedTarget::Vm(*vm),
        (_, Some(kind), _) => WantedTarget::Type(kind.clone()),
        (.., Some(zone)) => WantedTarget::Zone(zone.clone()),
        // It is demanded that one of them is said.
        (None, None, None) => WantedTarget::All,
    };
    let action: WantedAction = (*action).into();
    let wanted = InterruptionRequest { action, target, why: why.clone().unwrap_or_default() };
    let reply =
        ask(at, Role::Operator, async |remote| remote.interrupt_vms(wanted.request()).await)?;
    let at_s = reply.emulated_at_us as f64 / 1e6;
    let hit: Vec<String> = reply.vms.iter().map(|vm| format!("vm{vm}")).collect();
    match hit.as_slice() {
        [] => print(&format!("it is in the log at {at_s:.1} s, and hit no VM")),
        hit => print(&format!("it hit {} at {at_s:.1} s", hit.join(", "))),
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Listen { .. } | ServeError::NoSecret { .. } => {
                Self::BadInput(error.to_string())
            }
            ServeError::Thread(_) => Self::Broken(error.to_string()),
        }
    }
}
