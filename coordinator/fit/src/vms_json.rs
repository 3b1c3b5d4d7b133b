//! Reader of the lifetimes of Google's preemptible VMs in the form in which their authors published them: a JSON object
//! with an object for each VM (Kadupitiya, Jadhao, Sharma, HPDC 2020).

use dormouse_input::{FileFlaw, FlawedRow, ItemsAt, JsonItem, JsonItems, Source};
use dormouse_units::Span;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::read::{MOST_ROWS, is_other_hour, start};
use crate::{LifeQuery, Record, RecordedLife};

/// One VM in the file, with the keys that are used.
#[derive(Deserialize)]
struct VmOfJson {
    instance_data: Option<InstanceOfJson>,
    time_in_sec: f64,
    insert: Option<InsertOperation>,
    stop: Option<IgnoredAny>,
    #[serde(rename = "compute.instances.preempted")]
    preempted: Option<IgnoredAny>,
    hr_of_day: Option<Value>,
    idle_vs_nonidle: Option<String>,
}

/// The operation that launched a VM.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InsertOperation {
    insert_time: Option<String>,
}

/// Zone and machine type of the VM, as paths.
#[derive(Deserialize)]
#[serde(rename_all = "UPPERCASE")]
struct InstanceOfJson {
    #[serde(default)]
    zone: String,
    #[serde(default)]
    machine_type: String,
}

/// The last part of a path such as `projects/p/zones/us-east1-b`.
fn last_part(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// True if a JSON document begins with an object of a VM as Google's record has it.
pub(crate) fn are_vms(source: Source) -> bool {
    let mut items = JsonItems::new(source, ItemsAt::Values);
    let is_one = |item: JsonItem<'_>| serde_json::from_slice::<VmOfJson>(item.bytes).is_ok();
    items.next_item().is_ok_and(|item| item.is_some_and(is_one))
}

/// Reads all VMs from the JSON in which the lifetimes of Google's preemptible VMs are published.
pub(crate) fn read_vms(source: Source, query: &LifeQuery) -> Result<Record, FileFlaw> {
    let mut items = JsonItems::new(source, ItemsAt::Values);
    let (mut record, mut both, mut living) = (Record::default(), 0_usize, 0_usize);
    while let Some(item) = items.next_item()? {
        match read_vm(&item) {
            Ok((life, vm)) => {
                both += usize::from(vm.stop.is_some() && vm.preempted.is_some());
                living += usize::from(vm.stop.is_none() && vm.preempted.is_none());
                let hour = vm.hr_of_day.as_ref().map(Value::to_string).unwrap_or_default();
                record.other_hours += usize::from(is_other_hour(hour.trim_matches('"'), &life));
                record.lives.push(life);
            }
            Err(flaw) if query.skips_malformed => record.unusable.push(flaw),
            Err(flaw) => return Err(flaw.into()),
        }
        if record.lives.len() > MOST_ROWS {
            let what = format!("it has more than {MOST_ROWS} VMs");
            return Err(FileFlaw::whole(what, "give a sample of fewer"));
        }
    }
    if both > 0 {
        let remark = format!("{both} of them were both stopped and preempted: taken as preempted");
        record.remarks.push(remark);
    }
    if living > 0 {
        record.remarks.push(format!("{living} of them have no end: taken as not preempted"));
    }
    Ok(record)
}

fn read_vm(item: &JsonItem<'_>) -> Result<(RecordedLife, VmOfJson), FlawedRow> {
    let flaw = |line: u64, what: String, remedy: &str| {
        let what = format!("{}: {what}", start(item.key));
        FlawedRow { line, row: String::new(), what, remedy: remedy.to_owned() }
    };
    let vm: VmOfJson = serde_json::from_slice(item.bytes).map_err(|error| {
        let line = item.line + error.line().saturating_sub(1) as u64;
        let remedy = "give CSV, or an object of VMs with time_in_sec, and stop or compute.instances.preempted";
        // The line within the item would contradict the line in the file.
        let why = error.to_string();
        let why = why.split(" at line ").next().unwrap_or_default();
        flaw(line, format!("it is not a VM with a lifetime: {why}"), remedy)
    })?;
    let span = Span::from_secs_f64(vm.time_in_sec).filter(|span| *span > Span::ZERO);
    let span = span.ok_or_else(|| {
        let what = format!("'{}' is not a lifetime", vm.time_in_sec);
        flaw(item.line, what, "write seconds above 0 as time_in_sec")
    })?;
    let said = vm.hr_of_day.as_ref().map(Value::to_string).unwrap_or_default();
    let said = said.trim_matches('"');
    let hour = match said.parse::<u8>() {
        _ if said.is_empty() || said == "null" => String::new(),
        Ok(hour) if hour < 24 => hour.to_string(),
        _ => {
            let what = format!("'{}' is not an hour of a day", start(said));
            return Err(flaw(item.line, what, "write 0 to 23 as hr_of_day, or nothing"));
        }
    };
    let of = |part: fn(&InstanceOfJson) -> &String| vm.instance_data.as_ref().map(part);
    let kind = of(|it| &it.machine_type).map(|path| last_part(path)).unwrap_or_default();
    let zone = of(|it| &it.zone).map(|path| last_part(path)).unwrap_or_default();
    let workload = vm.idle_vs_nonidle.clone().unwrap_or_default();
    let was_taken = vm.preempted.is_some();
    let life = RecordedLife { span, was_taken, kind, zone, workload, hour, day: String::new() };
    let launched = vm.insert.as_ref().and_then(|insert| insert.insert_time.as_deref());
    Ok((life.with_launch(launched.unwrap_or_default()), vm))
}
