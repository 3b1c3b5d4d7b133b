//! A live run behind EC2's API: its instances run on workers until a signal ends the run.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use dormouse_analysis::LiveFacts;
use dormouse_coordinator::admission::RunDemand;
use dormouse_coordinator::{
    CoordinatorError, DeskRequest, LiveOutcome, LiveRunPlan, ProcessSignals, RunApi, RunProgress,
};
use dormouse_ec2::{ApiDesk, DeskPolicy, Ec2Session, RunSecret};
use dormouse_ec2_server::{Ec2Endpoint, EndpointSetup};
use dormouse_host::workers::LocalWorkers;
use dormouse_identity::Role;
use dormouse_model::TenantWork;
use dormouse_report::output::LogHeader;
use dormouse_report::run_view::RunResults;
use dormouse_units::{Span, Time};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};

use super::conduct::{Conduct, live_run, results_of};
use super::invitation::{Reached, Shown, invitation};
use super::{LiveError, Rehearsal};
use crate::called::{KeptLines, LiveCloud};
use crate::said;

/// Interval at which the process looks at the run's progress, and for workers that have ended.
const LOOK: Duration = Duration::from_millis(100);
/// Number of vCPUs for which the hosts have room if the experiment gives neither `live.share` nor `cloud.hosts`.
const VCPUS: usize = 8;
/// Time limit of a run that lasts until a signal ends it.
const NO_LIMIT: Time = Time::from_micros(1 << 62);
/// Port of the first address of a block by which a run claims the block; it answers nobody.
const CLAIM_PORT: u16 = 7381;
/// Name of the folder with the consoles of instances, in the run's folder.
const CONSOLES: &str = "instances";

/// The demand of a run whose callers decide what is launched: the provider's hosts as a whole if the experiment has them, else
/// room for [`VCPUS`], or for as many as `live.share` allows.
pub fn rehearse_calls(header: &LogHeader) -> Rehearsal {
    let experiment = &header.experiment;
    let demand = match (experiment.hosts.as_slice(), experiment.live.share) {
        ([], None) => RunDemand { vms: vec![1; VCPUS], ..RunDemand::default() },
        ([], Some(_)) => RunDemand { vms: vec![1], ..RunDemand::default() },
        (hosts, _) => RunDemand::of_hosts(hosts, [].into()),
    };
    let demand = RunDemand { fills_memory: true, ..demand };
    Rehearsal { demand, takes: Span::ZERO, how: "about" }
}

/// Conducts a live run whose instances callers of EC2's API request at an endpoint; calls `tell` with the endpoint's URL once
/// the run has begun. The first signal ends the run and its instances, the next one cancels it.
///
/// # Errors
///
/// The hosts can't hold the run, the endpoint can't be served, or the run failed.
pub fn conduct_calls<'a>(
    conduct: Conduct<'a>,
    endpoint: EndpointSetup,
    tell: impl FnMut(&str),
) -> Result<(RunResults<'a>, LiveFacts), LiveError> {
    let (header, local_workers) = (conduct.header, conduct.local_workers);
    let config = header.experiment.ec2.unwrap_or_default();
    let setup = Ec2Session::setup_of(header.experiment.setup.clone());
    let mut desk = ApiDesk::new(&setup, config);
    desk.set_secret(random_secret().map_err(LiveError::Runtime)?);
    let desk = DeskPolicy::new(desk);
    let (requests, taken) = unbounded_channel();
    let beside = KeptLines::begin(&conduct.out)?;
    let cloud = LiveCloud::new(requests.clone(), config.begins_unix_us, beside);
    let consoles = conduct.out.join(CONSOLES);
    let run = LiveRunPlan {
        setup,
        policies: vec![(TenantWork::All, Box::new(desk.clone()))],
        limit: NO_LIMIT,
        api: Some(RunApi { desk: desk.clone(), requests: Some(taken), consoles }),
        ..live_run(conduct)?
    };
    if nix::unistd::geteuid().is_root() {
        dormouse_worker::agent::raise_priority();
    }
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let outcome = runtime.map_err(LiveError::Runtime)?.block_on(supervised(
        run,
        local_workers,
        (endpoint, cloud, desk),
        requests,
        tell,
    ))?;
    results_of(header, &outcome.log)
}

/// Draws the secret of a run's keys and credentials.
fn random_secret() -> std::io::Result<RunSecret> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::from)?;
    Ok(RunSecret::new(bytes))
}

/// Claims a block of addresses 127.80.x.y for the instances of a run, among the runs of this host, until the listener is dropped;
/// `None`: all blocks are in use, so that instances can't be reached.
pub fn claim_addresses() -> Option<(u8, TcpListener)> {
    (0..=u8::MAX).find_map(|block| {
        let claim = TcpListener::bind((Ipv4Addr::new(127, 80, block, 1), CLAIM_PORT)).ok()?;
        Some((block, claim))
    })
}

/// The address by which workers reach a port for instances, which the coordinator's host has opened: their own host's if that is
/// one of loopback; else one with an unspecified IP, for that of the host that they have dialled.
fn as_workers_reach(inner: SocketAddr) -> SocketAddr {
    match inner.ip().is_loopback() {
        true => inner,
        false => (Ipv4Addr::UNSPECIFIED, inner.port()).into(),
    }
}

async fn supervised(
    mut run: LiveRunPlan,
    local_workers: u32,
    (endpoint, cloud, desk): (EndpointSetup, LiveCloud, DeskPolicy),
    requests: UnboundedSender<DeskRequest>,
    mut tell: impl FnMut(&str),
) -> Result<LiveOutcome, LiveError> {
    let mut signals = ProcessSignals::of_this_process().map_err(LiveError::Runtime)?;
    let (progress, seen) = watch::channel(RunProgress::default());
    run.observer.progress = Some(progress);
    let (pause, cancel, out) = (run.pause.clone(), run.cancel.clone(), run.out.clone());
    let awaited = run.workers;
    let bound = run.bind_run().await?;
    let (address, secret) = (bound.address(), bound.token_file(Role::Worker));
    let mut endpoint = Ec2Endpoint::bind(endpoint, cloud).await?;
    let inner = endpoint.open_inner(address.ip()).await?;
    desk.with_desk(|desk| desk.set_inner_api(as_workers_reach(inner)));
    let mut waiting = Some(endpoint);
    let (stop, stopped) = oneshot::channel::<()>();
    let (mut stop, mut stopped, mut serving) = (Some(stop), Some(stopped), None);
    let mut workers = match local_workers {
        0 => {
            said::line(&invitation(
                address,
                awaited,
                &Shown::new(&secret),
                &Reached::here("--listen-workers"),
            ));
            None
        }
        n => Some(LocalWorkers::start(n, address, &secret, &out).map_err(LiveError::Start)?),
    };
    let running = bound.conduct_run();
    tokio::pin!(running);
    let (mut look, mut deserted) = (tokio::time::interval(LOOK), None);
    let done = loop {
        tokio::select! {
            done = &mut running => break done,
            () = signals.next() => match stop.take() {
                // Its instances end, and then the run is over.
                Some(stop) if serving.is_some() => {
                    drop(stop);
                    let _ = requests.send(DeskRequest::End);
                }
                Some(_) => pause.cancel(),
                None => cancel.cancel(),
            },
            _ = look.tick() => {
                let now = *seen.borrow();
                let goes_on = !now.over && !pause.is_cancelled();
                if now.begun && goes_on {
                    workers.iter_mut().for_each(LocalWorkers::revive);
                    if let (Some(endpoint), Some(stopped)) = (waiting.take(), stopped.take()) {
                        tell(&endpoint.url());
                        let until = async move { drop(stopped.await) };
                        serving = Some(tokio::spawn(endpoint.serve_until(until)));
                    }
                }
                if goes_on
                    && deserted.is_none()
                    && let Some(why) = workers.as_mut().and_then(LocalWorkers::all_gone)
                {
                    deserted = Some(why);
                    pause.cancel();
                }
            }
        }
    };
    drop(stop);
    if let Some(workers) = workers {
        // Those that had come were told that it is over; joining them blocks.
        let _ = tokio::task::spawn_blocking(move || workers.leave()).await;
    }
    if let Some(serving) = serving {
        // Calls under way are answered that the run is over.
        let _ = serving.await;
    }
    match (done, deserted) {
        (Ok(_) | Err(CoordinatorError::Paused { .. }), Some(why)) => Err(LiveError::NoWorkers(why)),
        (done, _) => Ok(done?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_of_other_hosts_find_the_api_on_the_host_that_they_dial() {
        let reached = |inner: [u8; 4]| as_workers_reach((inner, 7000).into()).to_string();
        assert_eq!(reached([127, 0, 0, 1]), "127.0.0.1:7000");
        for elsewhere in [[0, 0, 0, 0], [10, 0, 0, 5]] {
            assert_eq!(reached(elsewhere), "0.0.0.0:7000");
        }
    }
}
