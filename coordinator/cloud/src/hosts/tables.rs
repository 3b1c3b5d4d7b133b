//! Hosts and their VMs as a table with a request, such as the four tables of the OPIE paper (Lopez
//! Garcia, Fernandez del Castillo, Campos Plasencia, 2019, section 4.4).

use dormouse_units::{Bytes, HostId, RandomStream, Time, VmId};

use dormouse_input::FlawedRow;

use crate::{
    HostFleet, HostScheduler, Market, PlacementRequest, PlacementRule, Placer as _, ResourceVector,
};

/// The OPIE paper's tables by name: the VMs on the hosts before a normal request, and the request. A row is
/// `host,instance,kind,size,minutes,marked` (minutes that the VM has run, and if the paper marks it as selected); the request's row
/// has no host.
pub const TABLES: [(&str, &str); 4] = [
    ("same-sizes-1", include_str!("tables/same-sizes-1.csv")),
    ("same-sizes-2", include_str!("tables/same-sizes-2.csv")),
    ("several-sizes-1", include_str!("tables/several-sizes-1.csv")),
    ("several-sizes-2", include_str!("tables/several-sizes-2.csv")),
];

/// VM sizes of the OPIE paper (Table 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableVmSize {
    /// A VM of 1 vCPU, 2,000 MB of memory and 20 GB of disk.
    Small,
    /// A VM of 2 vCPUs, 4,000 MB of memory and 40 GB of disk.
    Medium,
    /// A VM of 4 vCPUs, 8,000 MB of memory and 80 GB of disk.
    Large,
}

impl TableVmSize {
    /// The letter of a VM size in tables.
    #[must_use]
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Small => "S",
            Self::Medium => "M",
            Self::Large => "L",
        }
    }

    /// Room that a VM of this size takes.
    #[must_use]
    pub fn vm_room(self) -> ResourceVector {
        paper_room(match self {
            Self::Small => 1,
            Self::Medium => 2,
            Self::Large => 4,
        })
    }
}

/// Room of `vcpus` vCPUs, with 2,000 MB of memory and 20 GB of disk for each, like the VMs of the
/// OPIE paper and its hosts of 8 vCPUs.
#[must_use]
pub fn paper_room(vcpus: u32) -> ResourceVector {
    let each = |bytes: u64| Bytes::new(u64::from(vcpus) * bytes);
    ResourceVector {
        memory: each(2_000_000_000),
        disk: each(20_000_000_000),
        ..ResourceVector::of_vcpus(vcpus)
    }
}

/// A VM in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableVm {
    /// The host that the VM is on.
    pub host: String,
    /// The VM's name in the table.
    pub name: String,
    /// Market of the VM: spot if the table has it as preemptible.
    pub market: Market,
    /// Size of the VM.
    pub size: TableVmSize,
    /// Minutes for which the VM has run.
    pub minutes: u64,
    /// True if the OPIE paper marks the VM as selected for termination.
    pub is_marked: bool,
}

impl TableVm {
    /// Cost of ending the VM: minutes into its current charged hour.
    #[must_use]
    pub const fn ending_cost(&self) -> u64 {
        self.minutes % 60
    }
}

/// An example of placement: hosts with VMs on them, and a request for one more, normal VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTable {
    /// The VMs, grouped by host.
    pub instances: Vec<TableVm>,
    /// Size of the requested VM.
    pub request: TableVmSize,
}

/// A row of a table: a VM or the request.
enum PlacementRow {
    Instance(TableVm),
    Request(TableVmSize),
}

fn read_row(text: &str) -> Option<PlacementRow> {
    let cells: Vec<_> = text.split(',').collect();
    let [host, name, kind, size, minutes, marked] = cells[..] else { return None };
    let all = [TableVmSize::Small, TableVmSize::Medium, TableVmSize::Large];
    let size = all.into_iter().find(|known| known.letter() == size)?;
    let market = match kind {
        "normal" => Market::OnDemand,
        "preemptible" => Market::Spot,
        "request" => return Some(PlacementRow::Request(size)),
        _ => return None,
    };
    let (host, name) = (host.to_owned(), name.to_owned());
    let (minutes, is_marked) = (minutes.parse().ok()?, marked == "yes");
    Some(PlacementRow::Instance(TableVm { host, name, market, size, minutes, is_marked }))
}

impl HostTable {
    /// Reads a table.
    ///
    /// # Errors
    ///
    /// The first row that is neither a VM nor a request, or the missing request.
    pub fn read(text: &str) -> Result<Self, FlawedRow> {
        let (mut instances, mut request) = (Vec::new(), None);
        for (line, whole) in (1..).zip(text.lines()) {
            if whole.trim().is_empty() || (line == 1 && whole.starts_with("host,")) {
                continue;
            }
            match read_row(whole.trim()) {
                Some(PlacementRow::Instance(instance)) => instances.push(instance),
                Some(PlacementRow::Request(size)) => request = Some(size),
                None => {
                    let what = format!("'{whole}' is not a row of VMs or requests");
                    let remedy = "write it like: host-A,AP1,preemptible,M,96,yes".to_owned();
                    return Err(FlawedRow { line, row: whole.to_owned(), what, remedy });
                }
            }
        }
        let without = || FlawedRow {
            line: text.lines().count() as u64,
            row: String::new(),
            what: "it has no request".to_owned(),
            remedy: "write it like: ,,request,M,,".to_owned(),
        };
        Ok(Self { instances, request: request.ok_or_else(without)? })
    }

    /// VMs that are ended for the request under this rule, on hosts of 8 vCPUs; none if no host is
    /// found. `chance` decides between equally good hosts.
    #[must_use]
    pub fn select_victims(&self, rule: PlacementRule, chance: &mut RandomStream) -> Vec<&TableVm> {
        /// Time of the request in minutes, later than any VM has run.
        const NOW_MINUTES: u64 = 100_000;
        let (mut fleet, mut hosts) = (HostFleet::default(), Vec::new());
        for (instance, vm) in self.instances.iter().zip((0..).map(VmId::new)) {
            let place = hosts.iter().position(|host| *host == &instance.host);
            let place = place.unwrap_or_else(|| {
                hosts.push(&instance.host);
                hosts.len() - 1
            });
            let host = HostId::new(u32::try_from(place).unwrap_or(u32::MAX));
            if fleet.host_ids().all(|id| id != host) {
                fleet.add_host(host, paper_room(8));
            }
            let since = Time::from_secs(60 * NOW_MINUTES.saturating_sub(instance.minutes));
            fleet.place_vm(host, vm, instance.size.vm_room(), instance.market);
            fleet.set_charged_since(host, vm, Some(since));
        }
        let want = PlacementRequest { room: self.request.vm_room(), market: Market::OnDemand };
        let now = Time::from_secs(60 * NOW_MINUTES);
        let chosen = HostScheduler::new(rule).choose_host(now, &want, &fleet, chance);
        let victims = chosen.map(|(_, victims)| victims).unwrap_or_default();
        victims.iter().filter_map(|vm| self.instances.get(vm.get() as usize)).collect()
    }
}
