//! The application-centric policy for spot VMs (ACC paper, section V).

use std::collections::{BTreeMap, BTreeSet};

use dormouse_cloud::Market;
use dormouse_model::{CheckpointScheme, Decision, EndReason, Notice};
use dormouse_units::{Price, Span, TaskId, Time, VmId};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ListedBagScheduler, SchedulerInput};
use crate::in_order::{InOrder, WhoEnds};
use crate::parameters::ParameterSchema;
use crate::{BagSchedulerConfig, Fleet, GivenUp, Plan, PlanError, Policy, feasibility};
use dormouse_spot::{HOUR, before_hour_ends};

/// The scheduler `acc`: runs tasks in the order of the bag on spot VMs. The user, not the provider, ends VMs that cost too much.
pub(super) struct Acc;

/// Parameters that only the scheduler `acc` has.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct AccParameters {
    /// How long before the end of an hour a VM is ended if it costs more than its bid (t_w); if it is not given, `look` of
    /// `[checkpoint]` with policy "acc", else 1m.
    #[schemars(extend("least" = "1us"), example = "1m")]
    look: Option<Span>,
}

/// Default time before the end of an hour at which the price is checked (t_w); the paper gives no value.
const LOOK: Span = Span::from_secs(60);

impl ListedBagScheduler for Acc {
    fn name(&self) -> &'static str {
        "acc"
    }

    fn about(&self) -> &'static str {
        "as fifo, but no provider is told a bid: a spot VM above it is given back as its hour ends"
    }

    fn parameters(&self) -> ParameterSchema {
        ParameterSchema::from_type::<AccParameters>()
    }

    fn build(
        &self,
        given: SchedulerInput<'_>,
        plan: Option<Plan>,
    ) -> Result<Box<dyn Policy>, PlanError> {
        if plan.is_some() {
            return Err(PlanError::TakesNoPlan { scheduler: "acc", why: "decides during the run" });
        }
        feasibility::check_fleet(&given)?;
        let AccParameters { look } = given.config.own.read()?;
        let (kept, bid) = match given.checkpoints.scheme {
            CheckpointScheme::Acc { bid: None, .. } => {
                let want = "[checkpoint] policy \"acc\" has to name a bid: the VMs have none";
                return Err(PlanError::Parameter { key: "name", value: "acc".to_owned(), want });
            }
            CheckpointScheme::Acc { bid, look } => (Some(look), bid),
            _ => (None, None),
        };
        let look = look.or(kept).unwrap_or(LOOK);
        let wrong = |want| PlanError::Parameter { key: "look", value: look.to_string(), want };
        if look == Span::ZERO || look >= HOUR {
            return Err(wrong("it has to be above 0 and below an hour"));
        }
        if kept.is_some_and(|kept| kept != look) {
            return Err(wrong("[checkpoint] policy \"acc\" has to have the same value of look"));
        }
        let order = InOrder::new(given.config, given.problem, WhoEnds::User);
        let (vms, attempts) = (BTreeMap::new(), BTreeMap::new());
        Ok(Box::new(ApplicationCentric { order, look, checkpointed_above: bid, vms, attempts }))
    }

    fn fleet<'a>(&self, config: &'a BagSchedulerConfig) -> Option<&'a [Fleet]> {
        Some(&config.fleet)
    }

    fn markets(&self, config: &BagSchedulerConfig) -> Vec<Market> {
        config.fleet.iter().map(|fleet| fleet.market).collect()
    }
}

/// The policy ACC. The provider gets no bid, so it preempts no VM because of its price. At `look` before the end of each hour for
/// which a VM is charged, the policy checks the VM's price. If the price is above the bid, the VM is given back, and launched again
/// once the price is within the bid. If a checkpoint should have begun before, by the checkpointing scheme, and is not complete
/// yet, the policy first waits for the checkpoint, at most to the end of the hour.
#[derive(Debug)]
struct ApplicationCentric {
    order: InOrder,
    look: Span,
    /// Price above which the scheme checkpoints tasks before the end of an hour; `None`: the scheme takes
    /// no such checkpoints.
    checkpointed_above: Option<Price>,
    vms: BTreeMap<VmId, ChargedInstance>,
    attempts: BTreeMap<TaskId, RunningAttempt>,
}

/// A VM that is charged for.
#[derive(Debug)]
struct ChargedInstance {
    /// Time since when the VM is charged for: its hours count from then.
    begins: Time,
    ending: Option<PendingEnd>,
}

/// A VM whose price was above its bid when it was checked, and which will be given back.
#[derive(Debug)]
struct PendingEnd {
    looked: Time,
    price: Price,
    bid: Price,
    /// Tasks whose checkpoints are waited for before the VM is given back.
    awaited: BTreeSet<TaskId>,
}

/// The running attempt at a task.
#[derive(Debug)]
struct RunningAttempt {
    vm: VmId,
    begun: Time,
    /// When the attempt's last checkpoint was complete; `None`: it has none.
    kept: Option<Time>,
}

impl RunningAttempt {
    /// True if a checkpoint of the attempt was complete at the time `at` or later.
    fn is_kept_since(&self, at: Time) -> bool {
        self.kept.is_some_and(|kept| kept >= at)
    }
}

/// Purpose of a wake-up: to check a VM's price, or to end a VM at the end of its hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LookPurpose {
    Look(VmId),
    HourEnds(VmId),
}

impl LookPurpose {
    /// Token of the wake-up for this purpose; never 0, which is the token of [`InOrder`].
    fn to_token(self) -> u64 {
        match self {
            Self::Look(vm) => 1 << 32 | u64::from(vm.get()),
            Self::HourEnds(vm) => 2 << 32 | u64::from(vm.get()),
        }
    }

    fn from_token(token: u64) -> Option<Self> {
        let vm = VmId::new(u32::try_from(token & 0xffff_ffff).ok()?);
        match token >> 32 {
            1 => Some(Self::Look(vm)),
            2 => Some(Self::HourEnds(vm)),
            _ => None,
        }
    }
}

impl Policy for ApplicationCentric {
    fn given_up(&self) -> Option<GivenUp> {
        self.order.given_up()
    }

    fn waits_for_price(&self) -> bool {
        self.order.waits_for_price()
    }

    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        for notice in heard {
            self.handle_notice(now, notice, out);
        }
    }
}

impl ApplicationCentric {
    fn handle_notice(&mut self, now: Time, notice: &Notice, out: &mut Vec<Decision>) {
        if let Notice::Wake { token } = *notice
            && let Some(purpose) = LookPurpose::from_token(token)
        {
            return match purpose {
                LookPurpose::Look(vm) => self.look_at(now, vm, out),
                LookPurpose::HourEnds(vm) => self.end_instance(vm, out),
            };
        }
        self.order.handle_notice(now, notice, out);
        match *notice {
            Notice::VmReady { vm } if self.order.has_vm(vm) => {
                self.vms.insert(vm, ChargedInstance { begins: now, ending: None });
                self.look_later(now, vm, out);
            }
            Notice::TaskStarted { task, vm, since: begun, .. } => {
                self.attempts.insert(task, RunningAttempt { vm, begun, kept: None });
            }
            Notice::Checkpointed { task, vm, .. } => {
                if let Some(attempt) = self.attempts.get_mut(&task) {
                    attempt.kept = Some(now);
                }
                self.await_no_longer(vm, task, out);
            }
            Notice::TaskFinished { task, vm } | Notice::TaskFailed { task, vm, .. } => {
                self.attempts.remove(&task);
                self.await_no_longer(vm, task, out);
            }
            _ => {}
        }
    }

    /// Asks to be woken for the next check of a VM's price after `now`.
    fn look_later(&self, now: Time, vm: VmId, out: &mut Vec<Decision>) {
        if let Some(ChargedInstance { begins, .. }) = self.vms.get(&vm) {
            let at = before_hour_ends(*begins, self.look, now + Span::from_micros(1));
            out.push(Decision::Wake { at, token: LookPurpose::Look(vm).to_token() });
        }
    }

    /// Checks the price of a VM, `look` before an hour of the VM ends, and gives the VM back if its price
    /// is above its bid.
    fn look_at(&mut self, now: Time, vm: VmId, out: &mut Vec<Decision>) {
        if !self.order.has_vm(vm) {
            self.vms.remove(&vm);
            return;
        }
        let Some((price, bid)) = self.order.above_bid(vm) else {
            return self.look_later(now, vm, out);
        };
        let awaited = self.under_way(now, vm);
        let is_awaited = !awaited.is_empty();
        if let Some(instance) = self.vms.get_mut(&vm) {
            instance.ending = Some(PendingEnd { looked: now, price, bid, awaited });
        }
        if !is_awaited {
            return self.end_instance(vm, out);
        }
        self.order.close_vm(vm);
        out.push(Decision::Wake {
            at: now + self.look,
            token: LookPurpose::HourEnds(vm).to_token(),
        });
    }

    /// The tasks on a VM whose checkpoint should have begun before the price check at `looked` and is not
    /// complete yet.
    fn under_way(&self, looked: Time, vm: VmId) -> BTreeSet<TaskId> {
        let is_under_way = |&(task, takes): &(TaskId, Span)| {
            let due = looked - takes;
            let price = self.order.price_at(vm, due).zip(self.checkpointed_above);
            price.is_some_and(|(price, bid)| price > bid)
                && self
                    .attempt_on(vm, task)
                    .is_some_and(|attempt| attempt.begun < due && !attempt.is_kept_since(due))
        };
        self.order.tasks_on(vm).filter(is_under_way).map(|(task, _)| task).collect()
    }

    fn attempt_on(&self, vm: VmId, task: TaskId) -> Option<&RunningAttempt> {
        self.attempts.get(&task).filter(|attempt| attempt.vm == vm)
    }

    /// Handles a task that was checkpointed or stopped running, on a VM that waits for its tasks
    /// before it is terminated.
    fn await_no_longer(&mut self, vm: VmId, task: TaskId, out: &mut Vec<Decision>) {
        let ending = self.vms.get_mut(&vm).and_then(|instance| instance.ending.as_mut());
        if ending.is_some_and(|it| it.awaited.remove(&task) && it.awaited.is_empty()) {
            self.end_instance(vm, out);
        }
    }

    /// Gives back a VM whose price was above its bid when it was checked, with the tasks that run there.
    fn end_instance(&mut self, vm: VmId, out: &mut Vec<Decision>) {
        let ending = self.vms.remove(&vm).and_then(|instance| instance.ending);
        let Some(PendingEnd { looked, price, bid, .. }) = ending.filter(|_| self.order.has_vm(vm))
        else {
            return;
        };
        let loses = |&(task, takes): &(TaskId, Span)| {
            self.attempt_on(vm, task).is_some_and(|attempt| {
                attempt.begun < looked && !attempt.is_kept_since(looked - takes)
            })
        };
        let unkept = u32::try_from(self.order.tasks_on(vm).filter(loses).count());
        let unkept = unkept.unwrap_or(u32::MAX);
        self.order.give_back(vm, EndReason::AboveBid { price, bid, unkept }, out);
    }
}
