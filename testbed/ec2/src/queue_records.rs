//! SQS: queues with EC2's announcements about an account's instances, in the form in which EventBridge sends them.
//! There are no rules to be made: a queue has every announcement of its account and region since the queue was made.

use std::collections::{BTreeMap, VecDeque};

use dormouse_ec2::{AnnouncedChange, InstanceAnnouncement};
use dormouse_ec2_wire::{ApiError, write_instant};
use md5::{Digest as _, Md5};
use serde_json::{Value, json};

use crate::CloudSession;
use crate::kept_records::{KeptRecord, unwritten};

/// Most queues of all accounts together.
const MAX_QUEUES: usize = 1_000;
/// Default time, in seconds, for which a received message is hidden from other receivers.
const VISIBILITY_S: i64 = 30;

/// The queues of SQS, of all accounts and regions.
#[derive(Debug, Default)]
pub(crate) struct QueueRecords {
    queues: BTreeMap<QueueName, EventQueue>,
    /// Number of messages received so far; handles of messages are numbered by it.
    received: u64,
}

/// The account, the region and the name of a queue of SQS.
type QueueName = (String, String, String);

/// A queue of SQS, with its messages.
#[derive(Debug)]
struct EventQueue {
    created: i64,
    visibility_s: i64,
    /// Index of the first announcement that the queue has not taken yet.
    next: usize,
    /// Messages that can be received, the oldest first.
    waiting: VecDeque<QueuedMessage>,
    /// Messages that a client has received and not deleted, by their handles, each with the time at which it can be
    /// received again.
    received: BTreeMap<String, (i64, QueuedMessage)>,
}

#[derive(Clone, Debug)]
struct QueuedMessage {
    id: String,
    body: String,
    sent: i64,
    receipts: u32,
}

/// The caller of SQS, and the time of the call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueCall<'a> {
    pub(crate) account: &'a str,
    pub(crate) region: &'a str,
    /// Time of the call, in microseconds since 1970.
    pub(crate) date: i64,
}

/// The supported actions, each with its parameters.
const ACTIONS: &[(&str, &[&str])] = &[
    ("CreateQueue", &["QueueName", "Attributes", "tags"]),
    ("DeleteMessage", &["QueueUrl", "ReceiptHandle"]),
    ("GetQueueAttributes", &["QueueUrl", "AttributeNames"]),
    ("GetQueueUrl", &["QueueName", "QueueOwnerAWSAccountId"]),
    (
        "ReceiveMessage",
        &[
            "QueueUrl",
            "AttributeNames",
            "MessageSystemAttributeNames",
            "MessageAttributeNames",
            "MaxNumberOfMessages",
            "VisibilityTimeout",
            "WaitTimeSeconds",
        ],
    ),
];

impl QueueRecords {
    /// Answers a call. A ReceiveMessage that finds no message returns at once, whatever its WaitTimeSeconds.
    ///
    /// # Errors
    ///
    /// The error of SQS; the error for an unsupported part of the call names that part.
    pub(crate) fn call(
        &mut self,
        call: &QueueCall<'_>,
        action: &str,
        input: &Value,
        session: &mut dyn CloudSession,
    ) -> Result<Value, ApiError> {
        let refused = |text: String| ApiError::new("UnsupportedOperation", text);
        let known = ACTIONS.iter().find(|(name, _)| *name == action);
        let (_, known) =
            known.ok_or_else(|| refused(format!("The action sqs:{action} is not played here.")))?;
        let mut given = input.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        if let Some(other) = given.find(|name| !known.contains(name)) {
            let text = format!("The parameter {other} of sqs:{action} is not played here.");
            return Err(refused(text));
        }
        let name = name_of(call, input)?;
        match action {
            "CreateQueue" => self.create(call, name, input, session),
            "GetQueueUrl" => {
                self.queue(&name)?;
                Ok(json!({ "QueueUrl": url_of(&name) }))
            }
            "GetQueueAttributes" => {
                let queue = self.queue(&name)?;
                queue.look(call, session);
                Ok(json!({ "Attributes": queue.attributes(&name) }))
            }
            "DeleteMessage" => {
                let queue = self.queue(&name)?;
                let handle = text_of(input, "ReceiptHandle")?;
                // One that is gone counts as deleted.
                queue.received.remove(handle);
                Ok(json!({}))
            }
            _ => self.receive(call, &name, input, session),
        }
    }

    fn queue(&mut self, name: &QueueName) -> Result<&mut EventQueue, ApiError> {
        let none = || ApiError::new("QueueDoesNotExist", "The specified queue does not exist.");
        self.queues.get_mut(name).ok_or_else(none)
    }

    fn create(
        &mut self,
        call: &QueueCall<'_>,
        name: QueueName,
        input: &Value,
        session: &mut dyn CloudSession,
    ) -> Result<Value, ApiError> {
        let invalid = |text: &str| ApiError::new("InvalidAttributeValue", text);
        let mut visibility_s = VISIBILITY_S;
        let attributes = input.get("Attributes").and_then(Value::as_object);
        for (attribute, value) in attributes.into_iter().flatten() {
            match attribute.as_str() {
                "VisibilityTimeout" => {
                    let seconds = value.as_str().and_then(|text| text.parse().ok());
                    let seconds = seconds.filter(|seconds| (0..=43_200).contains(seconds));
                    visibility_s = seconds
                        .ok_or_else(|| invalid("VisibilityTimeout has to be from 0 to 43200."))?;
                }
                // Who may send is not asked, and nothing is so old that it is dropped.
                "Policy"
                | "MessageRetentionPeriod"
                | "ReceiveMessageWaitTimeSeconds"
                | "SqsManagedSseEnabled" => {}
                other => {
                    let text = format!("The attribute {other} of a queue is not played here.");
                    return Err(ApiError::new("UnsupportedOperation", text));
                }
            }
        }
        if self.queues.len() >= MAX_QUEUES && !self.queues.contains_key(&name) {
            return Err(ApiError::new("OverLimit", "There are too many queues."));
        }
        let url = url_of(&name);
        if !self.queues.contains_key(&name) {
            let next = session.announced(0).len();
            let (account, region, own) = name.clone();
            let created = call.date;
            let kept = KeptRecord::Sqs { account, region, name: own, created, visibility_s, next };
            if !kept.keep(session) {
                return Err(unwritten());
            }
            self.restore(name, (created, visibility_s), next);
        }
        Ok(json!({ "QueueUrl": url }))
    }

    /// Restores a queue, which gets the announcements from the one with index `next` on.
    pub(crate) fn restore(
        &mut self,
        name: QueueName,
        (created, visibility_s): (i64, i64),
        next: usize,
    ) {
        let (waiting, received) = (VecDeque::new(), BTreeMap::new());
        self.queues.insert(name, EventQueue { created, visibility_s, next, waiting, received });
    }

    fn receive(
        &mut self,
        call: &QueueCall<'_>,
        name: &QueueName,
        input: &Value,
        session: &dyn CloudSession,
    ) -> Result<Value, ApiError> {
        let integer = |name: &str| input.get(name).and_then(Value::as_i64);
        let most = integer("MaxNumberOfMessages").unwrap_or(1);
        if !(1..=10).contains(&most) {
            let text = format!(
                "Value {most} for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided."
            );
            return Err(ApiError::new("InvalidParameterValue", text));
        }
        let mut count = self.received;
        let queue = self.queue(name)?;
        queue.look(call, session);
        let hidden_s = integer("VisibilityTimeout").unwrap_or(queue.visibility_s);
        let mut messages = Vec::new();
        while messages.len() < usize::try_from(most).unwrap_or(1) {
            let Some(mut message) = queue.waiting.pop_front() else { break };
            message.receipts += 1;
            count += 1;
            let handle = format!("receipt-{count:012x}");
            messages.push(json!({
                "MessageId": message.id,
                "ReceiptHandle": handle,
                "MD5OfBody": md5_of(&message.body),
                "Body": message.body,
                "Attributes": {
                    "SentTimestamp": (message.sent / 1_000).to_string(),
                    "ApproximateReceiveCount": message.receipts.to_string(),
                },
            }));
            let again = call.date.saturating_add(hidden_s.saturating_mul(1_000_000));
            queue.received.insert(handle, (again, message));
        }
        self.received = count;
        Ok(match messages.is_empty() {
            true => json!({}),
            false => json!({ "Messages": messages }),
        })
    }
}

impl EventQueue {
    /// Adds the announcements since the last call to the queues, and makes messages available again that no client has
    /// deleted in time.
    fn look(&mut self, call: &QueueCall<'_>, session: &dyn CloudSession) {
        let begins = session.begins_at();
        for told in session.announced(self.next) {
            self.next += 1;
            if told.account == call.account && told.region == call.region {
                let micros = i64::try_from(told.at.as_micros()).unwrap_or(i64::MAX);
                let sent = begins.saturating_add(micros);
                let id = format!("00000000-0000-4000-9000-{:012x}", self.next);
                let body = event_of(&told, &id, sent).to_string();
                self.waiting.push_back(QueuedMessage { id, body, sent, receipts: 0 });
            }
        }
        let due: Vec<String> = self
            .received
            .iter()
            .filter(|(_, (again, _))| *again <= call.date)
            .map(|(handle, _)| handle.clone())
            .collect();
        for handle in due {
            if let Some((_, message)) = self.received.remove(&handle) {
                self.waiting.push_back(message);
            }
        }
    }

    fn attributes(&self, (account, region, name): &QueueName) -> Value {
        json!({
            "QueueArn": format!("arn:aws:sqs:{region}:{account}:{name}"),
            "ApproximateNumberOfMessages": self.waiting.len().to_string(),
            "ApproximateNumberOfMessagesNotVisible": self.received.len().to_string(),
            "VisibilityTimeout": self.visibility_s.to_string(),
            "CreatedTimestamp": self.created.div_euclid(1_000_000).to_string(),
        })
    }
}

fn text_of<'a>(input: &'a Value, name: &str) -> Result<&'a str, ApiError> {
    let text = input.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    text.ok_or_else(|| {
        let text = format!("The request must contain the parameter {name}.");
        ApiError::new("MissingParameter", text)
    })
}

/// The account, region and name of the queue that a call names, by its name or by its URL, which ends with the name.
fn name_of(call: &QueueCall<'_>, input: &Value) -> Result<QueueName, ApiError> {
    let name = match input.get("QueueUrl") {
        Some(_) => text_of(input, "QueueUrl")?.rsplit('/').next().unwrap_or_default(),
        None => text_of(input, "QueueName")?,
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if !(1..=80).contains(&name.len()) || !name.bytes().all(plain) {
        let text =
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length";
        return Err(ApiError::new("InvalidParameterValue", text));
    }
    Ok((call.account.to_owned(), call.region.to_owned(), name.to_owned()))
}

fn url_of((account, region, name): &QueueName) -> String {
    format!("https://sqs.{region}.amazonaws.com/{account}/{name}")
}

fn md5_of(text: &str) -> String {
    Md5::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An announcement in the form of EventBridge's events.
fn event_of(told: &InstanceAnnouncement, id: &str, date: i64) -> Value {
    let InstanceAnnouncement { account, region, zone, instance, .. } = told;
    let place = |of: &str| format!("arn:aws:ec2:{of}:instance/{instance}");
    let own = place(&format!("{region}:{account}"));
    let (kind, resource, detail) = match told.change {
        AnnouncedChange::State(state) => (
            "EC2 Instance State-change Notification",
            own,
            json!({ "instance-id": instance, "state": state }),
        ),
        AnnouncedChange::Interruption(action) => (
            "EC2 Spot Instance Interruption Warning",
            place(zone),
            json!({ "instance-id": instance, "instance-action": action }),
        ),
        AnnouncedChange::Rebalance => {
            ("EC2 Instance Rebalance Recommendation", own, json!({ "instance-id": instance }))
        }
    };
    json!({
        "version": "0",
        "id": id,
        "detail-type": kind,
        "source": "aws.ec2",
        "account": account,
        "time": write_instant(date),
        "region": region,
        "resources": [resource],
        "detail": detail,
    })
}
