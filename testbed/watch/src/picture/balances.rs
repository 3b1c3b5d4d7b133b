//! CPU credits of the burstable VMs of a picture, also between and after their reports.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_cloud::{BurstableTerms, Catalogue};
use dormouse_units::{Credits, Mode, Span, TaskId, Time, TypeName, VmId};

/// Microseconds in an hour.
const HOUR: i128 = 3_600_000_000;

/// Balances of all living burstable VMs. Each balance is extrapolated by the rules of the VM's type from the last
/// report, or from the initial credits.
#[derive(Debug, Default)]
pub(super) struct CreditBalances {
    types: BTreeMap<TypeName, BurstableTerms>,
    accounts: BTreeMap<VmId, CreditAccount>,
    /// Times at which balances become full or empty if nothing changes before, with the VMs.
    bends: BTreeSet<(Time, VmId)>,
}

#[derive(Debug)]
struct CreditAccount {
    burstable: BurstableTerms,
    at: Time,
    balance: Credits,
    is_frozen: bool,
    /// CPU modes of the tasks sent to the VM, and whether they compute.
    tasks: BTreeMap<TaskId, (Mode, bool)>,
    /// Time of the last point of the VM's balance that was drawn.
    drawn: Time,
}

impl CreditAccount {
    /// Slope of the balance in vCPU-microseconds per hour.
    fn slope(&self) -> i128 {
        let full = |(mode, computes): &(Mode, bool)| match (computes, mode) {
            (false, _) => 0,
            (true, Mode::Burst) => 1_000_000,
            (true, Mode::Baseline) => i128::from(self.burstable.baseline.get()),
        };
        let spent: i128 = self.tasks.values().map(full).sum();
        // Spending of surplus credits follows another law, and such a balance is reported.
        if self.is_frozen || (self.burstable.surplus.is_some() && spent > 0) {
            return 0;
        }
        i128::from(self.burstable.earned_per_hour.as_vcpu_micros()) - spent * 3_600
    }

    /// Cap of the balance in vCPU-microseconds.
    fn cap(&self) -> i128 {
        i128::from(self.burstable.cap.max(self.balance).as_vcpu_micros())
    }

    /// Extrapolates the balance to `now`.
    fn extrapolate(&mut self, now: Time) {
        let passed = i128::from(now.since(self.at).as_micros());
        let is = i128::from(self.balance.as_vcpu_micros()) + self.slope() * passed / HOUR;
        let is = u64::try_from(is.clamp(0, self.cap())).unwrap_or(0);
        (self.at, self.balance) = (now, Credits::from_vcpu_micros(is));
    }

    /// Time at which the balance becomes full or empty; `None` if it never does at the present
    /// slope.
    fn bend_time(&self) -> Option<Time> {
        let slope = self.slope();
        let bound = if slope > 0 { self.cap() } else { 0 };
        let left = bound - i128::from(self.balance.as_vcpu_micros());
        let micros = (left * HOUR).checked_div(slope)?;
        (left != 0).then_some(self.at + Span::from_micros(u64::try_from(micros).ok()?))
    }
}

impl CreditBalances {
    /// Makes an empty set of balances, for VMs of these types.
    pub(super) fn new(catalogue: &Catalogue) -> Self {
        let types = catalogue.types.iter();
        let types = types.filter_map(|(name, kind)| Some((name.clone(), kind.burstable?)));
        Self { types: types.collect(), ..Self::default() }
    }

    /// Adds a launched VM; returns its initial balance if it is burstable.
    pub(super) fn launched(&mut self, now: Time, vm: VmId, kind: &TypeName) -> Option<Credits> {
        let burstable = *self.types.get(kind)?;
        let balance = burstable.initial.min(burstable.cap);
        let (tasks, is_frozen) = (BTreeMap::new(), false);
        let account = CreditAccount { burstable, at: now, balance, is_frozen, tasks, drawn: now };
        self.bends.extend(account.bend_time().map(|at| (at, vm)));
        self.accounts.insert(vm, account);
        Some(balance)
    }

    /// Sets the credit balance of a VM to the reported one.
    pub(super) fn told(&mut self, now: Time, vm: VmId, balance: Credits) {
        self.change_account(now, vm, |it| (it.balance, it.drawn) = (balance, now));
    }

    /// Adds a task that was sent to the VM in this CPU mode and does not compute yet.
    pub(super) fn sent(&mut self, now: Time, vm: VmId, task: TaskId, mode: Mode) {
        self.change_account(now, vm, |it| {
            it.tasks.insert(task, (mode, false));
        });
    }

    /// Notes that a task computes from now on.
    pub(super) fn computes(&mut self, now: Time, vm: VmId, task: TaskId) {
        self.change_account(now, vm, |it| {
            it.tasks.entry(task).or_default().1 = true;
        });
    }

    /// Changes the mode of a task.
    pub(super) fn has_mode(&mut self, now: Time, vm: VmId, task: TaskId, mode: Mode) {
        self.change_account(now, vm, |it| {
            it.tasks.entry(task).and_modify(|(is, _)| *is = mode);
        });
    }

    /// Removes a task from the VM.
    pub(super) fn left(&mut self, now: Time, vm: VmId, task: TaskId) {
        self.change_account(now, vm, |it| {
            it.tasks.remove(&task);
        });
    }

    /// Hibernates the VM, which then neither earns nor spends, or resumes it; returns its balance
    /// if it is burstable.
    pub(super) fn freezes(&mut self, now: Time, vm: VmId, is_frozen: bool) -> Option<Credits> {
        self.change_account(now, vm, |it| (it.is_frozen, it.drawn) = (is_frozen, now));
        self.accounts.get(&vm).map(|it| it.balance)
    }

    /// Removes a VM that is gone; returns its last balance unless that balance has been drawn.
    pub(super) fn ended(&mut self, now: Time, vm: VmId) -> Option<Credits> {
        self.change_account(now, vm, |_| {});
        let account = self.accounts.remove(&vm)?;
        self.bends.extract_if(.., |(_, it)| *it == vm).for_each(drop);
        (account.drawn < now).then_some(account.balance)
    }

    /// The next balance that became full or empty before `now`, with its time.
    pub(super) fn next_before(&mut self, now: Time) -> Option<(Time, VmId, Credits)> {
        let &(at, vm) = self.bends.first().filter(|(at, _)| *at < now)?;
        self.bends.pop_first();
        let account = self.accounts.get_mut(&vm)?;
        account.extrapolate(at);
        account.drawn = at;
        Some((at, vm, account.balance))
    }

    fn change_account(&mut self, now: Time, vm: VmId, change: impl FnOnce(&mut CreditAccount)) {
        let Some(account) = self.accounts.get_mut(&vm) else { return };
        let was = account.bend_time();
        account.extrapolate(now);
        change(account);
        if let Some(at) = was {
            self.bends.remove(&(at, vm));
        }
        self.bends.extend(account.bend_time().map(|at| (at, vm)));
    }
}
