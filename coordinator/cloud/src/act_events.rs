//! Reader of interruptions in clouds' own formats: events of Amazon EventBridge, and operations of
//! Google's Compute Engine, in JSON.

use dormouse_input::{FileFlaw, FlawedRow, ItemsAt, JsonItems, Moment, Source};
use dormouse_units::{Span, Time, ZoneName};
use serde::Deserialize;

use crate::acts::{MOST_ROWS, WrittenAct};
use crate::{Interruption, InterruptionAction, InterruptionTarget};

/// Key of the list of operations in responses of Google's API.
const LIST: &str = "items";
/// Time from Amazon's warning to the interruption.
const NOTICE: Span = Span::from_secs(120);

/// An event of EventBridge, or an operation of Compute Engine.
#[derive(Deserialize)]
struct CloudEvent {
    #[serde(rename = "detail-type")]
    detail_type: Option<String>,
    time: Option<String>,
    #[serde(default)]
    resources: Vec<String>,
    detail: Option<EventDetail>,
    #[serde(rename = "operationType")]
    operation: Option<String>,
    #[serde(rename = "insertTime")]
    inserted: Option<String>,
    zone: Option<String>,
}

/// The fields of an EventBridge event that depend on its kind.
#[derive(Deserialize)]
struct EventDetail {
    #[serde(rename = "instance-action")]
    action: Option<String>,
}

/// True if a file that begins with these bytes holds events of EventBridge or operations of Compute Engine.
#[must_use]
pub fn are_cloud_events(begins: &[u8]) -> bool {
    let text = String::from_utf8_lossy(begins);
    let is_amazon = text.contains("\"detail-type\"") && text.contains("\"EC2 ");
    let begins = text.trim_start();
    begins.starts_with(['{', '[']) && (is_amazon || text.contains("\"operationType\""))
}

/// Reads events, one after the other or in a list: interruption warnings (two minutes before the
/// interruption) and rebalance recommendations of Amazon, and preemptions of Google. Each applies
/// to all spot VMs of the zone that it names, or to all VMs if it names none; other events are left
/// out.
///
/// # Errors
///
/// The file can't be read, or the first event that can't be used.
pub(crate) fn read_events(
    source: Source,
    begins: Option<i64>,
) -> Result<Vec<WrittenAct>, FileFlaw> {
    let mut items = JsonItems::new(source, ItemsAt::ListOrDocuments(LIST));
    let mut acts = Vec::new();
    while let Some(item) = items.next_item()? {
        let row: String = String::from_utf8_lossy(item.bytes).chars().take(120).collect();
        let flaw = |what: String, remedy: &str| FlawedRow {
            line: item.line,
            row: row.clone(),
            what,
            remedy: remedy.to_owned(),
        };
        let event: CloudEvent = serde_json::from_slice(item.bytes)
            .map_err(|error| flaw(format!("it is not an event: {error}"), "correct the file"))?;
        let Some(reported) = read_event(event) else { continue };
        if acts.len() == MOST_ROWS {
            let what = format!("it has more than {MOST_ROWS} interruptions");
            return Err(flaw(what, "give a shorter part of it").into());
        }
        let (action, time, target, after) = reported;
        let right = "write a date such as 2024-01-31T12:00:00Z";
        let moment =
            Moment::read(&time).ok_or_else(|| flaw(format!("'{time}' is not a time"), right))?;
        let begins = begins.ok_or_else(|| {
            let what = format!("'{time}' is a date, but the run has no date of its own");
            flaw(what, "say when it begins: begins = \"2024-01-31 12:00:00\"")
        })?;
        let since = u64::try_from(moment.second - begins).map_err(|_| {
            let remedy = "leave the event out, or set an earlier `begins`";
            flaw(format!("'{time}' is before the run begins"), remedy)
        })?;
        let at = Time::from_secs(since) + after;
        let act = Interruption { at, target, action };
        acts.push(WrittenAct { act, line: item.line, row });
    }
    if acts.is_empty() {
        let what = "it has no event of an interruption";
        return Err(FileFlaw::whole(what, "give a record that has some, or leave the record out"));
    }
    acts.sort_by_key(|written| written.act.at);
    Ok(acts)
}

/// The interruption that an event reports: action, time of the event, target, and delay from that
/// time to the interruption; `None`: the event reports no interruption.
fn read_event(event: CloudEvent) -> Option<(InterruptionAction, String, InterruptionTarget, Span)> {
    if let Some(operation) = event.operation {
        let zone = event.zone.unwrap_or_default();
        let zone = zone.rsplit('/').next().unwrap_or_default();
        let preempted = operation == "compute.instances.preempted";
        return preempted.then(|| {
            (
                InterruptionAction::Preempt,
                event.inserted.unwrap_or_default(),
                of_zone(zone),
                Span::ZERO,
            )
        });
    }
    let action = event.detail.and_then(|detail| detail.action);
    let (action, after) = match event.detail_type?.as_str() {
        "EC2 Spot Instance Interruption Warning" => match action.as_deref() {
            // Hibernation begins with the warning, as the provider says.
            Some("hibernate") => (InterruptionAction::Hibernate, Span::ZERO),
            Some("stop") => (InterruptionAction::Hibernate, NOTICE),
            _ => (InterruptionAction::Preempt, NOTICE),
        },
        "EC2 Instance Rebalance Recommendation" => (InterruptionAction::Rebalance, Span::ZERO),
        _ => return None,
    };
    // arn:aws:ec2:us-east-2a:instance/i-1234567890abcdef0; some name the region alone.
    let place = event.resources.iter().find_map(|arn| arn.split(':').nth(3)).unwrap_or_default();
    let is_zone = place.ends_with(|c: char| c.is_ascii_lowercase());
    let target = of_zone(if is_zone { place } else { "" });
    Some((action, event.time.unwrap_or_default(), target, after))
}

fn of_zone(zone: &str) -> InterruptionTarget {
    match zone {
        "" => InterruptionTarget::All,
        zone => InterruptionTarget::Zone(ZoneName::from(zone)),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::read_acts;

    fn read(text: &str, begins: Option<&str>) -> Result<Vec<Interruption>, String> {
        let source = Source::new(Cursor::new(text.as_bytes().to_vec())).unwrap();
        let begins = begins.map(|text| Moment::read(text).unwrap().second);
        let acts = read_acts(source, &dormouse_input::Chosen::default(), begins);
        let acts = acts.map_err(|error| error.to_string())?;
        Ok(acts.into_iter().map(|written| written.act).collect())
    }

    fn warning(action: &str) -> String {
        format!(
            r#"{{"detail-type":"EC2 Spot Instance Interruption Warning","time":"2024-05-01T10:00:00Z",
            "resources":["arn:aws:ec2:us-east-2a:instance/i-1"],"detail":{{"instance-id":"i-1","instance-action":"{action}"}}}}"#
        )
        .replace('\n', " ")
    }

    /// Reads events of Amazon EventBridge in the form in which people collect them (cases/interruptions-eventbridge).
    #[test]
    fn warnings_come_two_minutes_before_what_they_warn_of() {
        let rebalance = r#"{"detail-type":"EC2 Instance Rebalance Recommendation","time":"2024-05-01T09:30:00Z","resources":["arn:aws:ec2:us-east-2a:instance/i-1"],"detail":{"instance-id":"i-1"}}"#;
        let other = r#"{"detail-type":"EC2 Instance State-change Notification","time":"2024-05-01T09:30:00Z","detail":{}}"#;
        let text = format!("{}\n{rebalance}\n{other}\n", warning("terminate"));
        assert!(are_cloud_events(text.as_bytes()));
        let zone = || InterruptionTarget::Zone("us-east-2a".into());
        let act = |at, action| Interruption { at: Time::from_secs(at), target: zone(), action };
        let right =
            [act(1_800, InterruptionAction::Rebalance), act(3_720, InterruptionAction::Preempt)];
        assert_eq!(read(&text, Some("2024-05-01T09:00:00Z")).unwrap(), right);
        let hibernated = read(&warning("hibernate"), Some("2024-05-01T09:00:00Z")).unwrap();
        assert_eq!(hibernated, [act(3_600, InterruptionAction::Hibernate)]);
        let error = read(&text, None).unwrap_err();
        assert!(error.contains("the run has no date of its own"), "{error}");
        let error = read(&text, Some("2024-05-01T09:45:00Z")).unwrap_err();
        assert!(
            error.contains("line 2: '2024-05-01T09:30:00Z' is before the run begins"),
            "{error}"
        );
        let error = read(other, Some("2024-05-01T09:00:00Z")).unwrap_err();
        assert!(error.contains("no event of an interruption"), "{error}");
    }

    #[test]
    fn preemptions_of_google_are_operations() {
        let one = r#"{"operationType":"compute.instances.preempted","insertTime":"2024-05-01T10:00:00.000-07:00",
            "targetLink":"https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a/instances/i1",
            "zone":"https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a"}"#;
        let other = r#"{"operationType":"insert","insertTime":"2024-05-01T10:00:00.000-07:00"}"#;
        let right = [Interruption {
            at: Time::from_secs(3_600),
            target: InterruptionTarget::Zone("us-central1-a".into()),
            action: InterruptionAction::Preempt,
        }];
        for text in [format!("[{other},{one}]"), format!("{{\"items\": [{one}]}}"), one.to_owned()]
        {
            assert_eq!(read(&text, Some("2024-05-01T16:00:00Z")).unwrap(), right, "{text}");
        }
    }
}
