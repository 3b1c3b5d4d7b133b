//! Three calls of AWS's Fault Injection Service (FIS, rest-json): templates whose actions interrupt spot instances, and
//! experiments, which have the provider carry out those actions.

use std::collections::BTreeMap;

use dormouse_ec2_wire::{ApiError, ApiRequest, WireValue};
use hyper::Method;
use serde_json::{Map, Value, json};

use crate::CloudSession;
use crate::kept_records::{KeptRecord, unwritten};

/// Greatest number of templates and experiments of FIS, counted together over all accounts.
const MAX_RECORDS: usize = 1_000;
/// Names of the two kinds of FIS's records in the run's log: templates (`TEMPLATE`) and experiments (`EXPERIMENT`).
const TEMPLATE: &str = "template";
const EXPERIMENT: &str = "experiment";
/// Name of the only supported action of FIS's experiments.
const INTERRUPT: &str = "aws:ec2:send-spot-instance-interruptions";

/// The templates and experiments of FIS, of all accounts and regions.
#[derive(Debug, Default)]
pub(crate) struct FaultRecords {
    records: BTreeMap<FaultScope, FaultsOfRegion>,
    made: usize,
}

/// The account and the region that templates and experiments of FIS belong to.
type FaultScope = (String, String);

#[derive(Debug, Default)]
struct FaultsOfRegion {
    templates: BTreeMap<String, Value>,
    experiments: BTreeMap<String, Value>,
    /// Ids of templates and experiments, by the name of the kind of record and the client's token.
    tokens: BTreeMap<(&'static str, String), String>,
}

/// The caller of FIS, and the time of the call.
#[derive(Clone, Debug)]
pub(crate) struct FaultCall {
    pub(crate) account: String,
    pub(crate) region: String,
    /// Time of the call, in microseconds since 1970.
    pub(crate) date: i64,
}

fn invalid(text: impl Into<String>) -> ApiError {
    ApiError::new("ValidationException", text)
}

fn missing(what: &str, id: &str) -> ApiError {
    ApiError::new("ResourceNotFoundException", format!("The {what} {id} does not exist."))
}

/// Reads a member of an object that has to be a text.
fn text_of<'a>(of: &'a Value, name: &str) -> Result<&'a str, ApiError> {
    let text = of.get(name).and_then(Value::as_str);
    text.ok_or_else(|| invalid(format!("{name} is missing, or is not a text.")))
}

/// Reads a member of an object that has to be an object.
fn object_of<'a>(of: &'a Value, name: &str) -> Result<&'a Map<String, Value>, ApiError> {
    let object = of.get(name).and_then(Value::as_object);
    object.ok_or_else(|| invalid(format!("{name} is missing, or is not an object.")))
}

/// Fails if an object has members other than these.
fn refuse_others(of: &Map<String, Value>, known: &[&str]) -> Result<(), ApiError> {
    match of.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(invalid(format!("{key} is not played here."))),
    }
}

impl FaultRecords {
    /// Answers a call; `None`: the API has no such path.
    ///
    /// # Errors
    ///
    /// The error of FIS; the error for an unsupported part of the call names that part.
    pub(crate) fn call(
        &mut self,
        call: &FaultCall,
        (method, path): (&Method, &str),
        body: &[u8],
        session: &mut dyn CloudSession,
    ) -> Option<Result<Value, ApiError>> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let scope = (call.account.clone(), call.region.clone());
        let of = self.records.entry(scope).or_default();
        Some(match (method, &parts[..]) {
            (&Method::GET, ["experiments", id]) => match of.experiments.get(*id) {
                Some(experiment) => Ok(json!({ "experiment": experiment })),
                None => Err(missing("experiment", id)),
            },
            (&Method::POST, ["experimentTemplates" | "experiments"])
                if self.made >= MAX_RECORDS =>
            {
                Err(ApiError::new("ServiceQuotaExceededException", "There are too many records."))
            }
            (&Method::POST, ["experimentTemplates"]) => {
                self.made += 1;
                let id = format!("EXT{:015}", self.made);
                read_body(body).and_then(|body| of.create_template(call, id, &body, session))
            }
            (&Method::POST, ["experiments"]) => {
                self.made += 1;
                let id = format!("EXP{:015}", self.made);
                read_body(body).and_then(|body| of.start_experiment(call, id, &body, session))
            }
            _ => return None,
        })
    }
}

impl FaultRecords {
    /// Restores a template or an experiment of FIS that the run has kept in its log.
    pub(crate) fn restore(&mut self, scope: FaultScope, kind: &str, token: String, value: Value) {
        self.made += 1;
        let of = self.records.entry(scope).or_default();
        let Some(id) = value.get("id").and_then(Value::as_str).map(str::to_owned) else { return };
        if kind == EXPERIMENT {
            of.tokens.insert((EXPERIMENT, token), id.clone());
            of.experiments.insert(id, value);
        } else {
            of.tokens.insert((TEMPLATE, token), id.clone());
            of.templates.insert(id, value);
        }
    }
}

/// Writes a template or an experiment of FIS into the run's log; if that fails, the call is not answered.
fn keep(
    call: &FaultCall,
    (kind, token): &(&'static str, String),
    value: &Value,
    session: &mut dyn CloudSession,
) -> Result<(), ApiError> {
    let (account, region) = (call.account.clone(), call.region.clone());
    let (kind, token, value) = ((*kind).to_owned(), token.clone(), value.clone());
    let kept = KeptRecord::Fis { account, region, kind, token, value };
    if kept.keep(session) { Ok(()) } else { Err(unwritten()) }
}

fn read_body(body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body).map_err(|error| invalid(error.to_string()))
}

/// Time of a call in seconds since 1970, the form of FIS's dates.
fn date(call: &FaultCall) -> i64 {
    call.date.div_euclid(1_000_000)
}

impl FaultsOfRegion {
    fn create_template(
        &mut self,
        call: &FaultCall,
        id: String,
        body: &Value,
        session: &mut dyn CloudSession,
    ) -> Result<Value, ApiError> {
        let token = (TEMPLATE, text_of(body, "clientToken")?.to_owned());
        if let Some(template) = self.tokens.get(&token).and_then(|id| self.templates.get(id)) {
            return Ok(json!({ "experimentTemplate": template }));
        }
        let known = [
            "clientToken",
            "description",
            "stopConditions",
            "targets",
            "actions",
            "roleArn",
            "tags",
        ];
        refuse_others(body.as_object().unwrap_or(&Map::new()), &known)?;
        let stops = body.get("stopConditions").and_then(Value::as_array);
        for stop in stops.into_iter().flatten() {
            if text_of(stop, "source")? != "none" {
                return Err(invalid("Of stop conditions only the source none is played here."));
            }
        }
        let targets = object_of(body, "targets")?;
        targets.values().try_for_each(check_target)?;
        for action in object_of(body, "actions")?.values() {
            check_action(action, targets)?;
        }
        let mut template = json!({
            "id": id,
            "arn": format!("arn:aws:fis:{}:{}:experiment-template/{id}", call.region, call.account),
            "creationTime": date(call),
            "lastUpdateTime": date(call),
        });
        for name in known.iter().skip(1) {
            if let (Some(value), Some(of)) = (body.get(*name), template.as_object_mut()) {
                of.insert((*name).to_owned(), value.clone());
            }
        }
        keep(call, &token, &template, session)?;
        self.tokens.insert(token, id.clone());
        self.templates.insert(id, template.clone());
        Ok(json!({ "experimentTemplate": template }))
    }

    fn start_experiment(
        &mut self,
        call: &FaultCall,
        id: String,
        body: &Value,
        session: &mut dyn CloudSession,
    ) -> Result<Value, ApiError> {
        let token = (EXPERIMENT, text_of(body, "clientToken")?.to_owned());
        if let Some(experiment) = self.tokens.get(&token).and_then(|id| self.experiments.get(id)) {
            return Ok(json!({ "experiment": experiment }));
        }
        refuse_others(
            body.as_object().unwrap_or(&Map::new()),
            &["clientToken", "experimentTemplateId", "tags"],
        )?;
        let of = text_of(body, "experimentTemplateId")?;
        let template = self.templates.get(of).ok_or_else(|| missing("experiment template", of))?;
        let (targets, actions) = (object_of(template, "targets")?, object_of(template, "actions")?);
        let mut done = 0;
        for action in actions.values() {
            let name = action.pointer("/targets/SpotInstances").and_then(Value::as_str);
            let target = name.and_then(|name| targets.get(name)).unwrap_or(&Value::Null);
            for instance in instances_of(call, target, session)? {
                done += usize::from(session.interrupt(&instance, &format!("FIS experiment {id}")));
            }
        }
        let (status, reason) = match done {
            0 => ("failed", "No running spot instance is a target.".to_owned()),
            n => ("completed", format!("{n} spot instances have their notice.")),
        };
        let mut experiment = template.clone();
        if let Some(of_it) = experiment.as_object_mut() {
            of_it.remove("lastUpdateTime");
            of_it.insert("id".to_owned(), json!(id));
            let arn = format!("arn:aws:fis:{}:{}:experiment/{id}", call.region, call.account);
            of_it.insert("arn".to_owned(), json!(arn));
            of_it.insert("experimentTemplateId".to_owned(), json!(of));
            of_it.insert("state".to_owned(), json!({ "status": status, "reason": reason }));
            for name in ["creationTime", "startTime", "endTime"] {
                of_it.insert(name.to_owned(), json!(date(call)));
            }
        }
        keep(call, &token, &experiment, session)?;
        self.tokens.insert(token, id.clone());
        self.experiments.insert(id, experiment.clone());
        Ok(json!({ "experiment": experiment }))
    }
}

/// Fails unless a target selects spot instances: all of them, or a number of them.
fn check_target(target: &Value) -> Result<(), ApiError> {
    let of = target.as_object().ok_or_else(|| invalid("A target has to be an object."))?;
    refuse_others(of, &["resourceType", "selectionMode", "resourceTags", "resourceArns"])?;
    if text_of(target, "resourceType")? != "aws:ec2:spot-instance" {
        return Err(invalid("Of targets only aws:ec2:spot-instance is played here."));
    }
    most_of(target).map(drop)
}

/// Greatest number of instances that a target selects.
fn most_of(target: &Value) -> Result<usize, ApiError> {
    let mode = text_of(target, "selectionMode")?;
    let count = mode.strip_prefix("COUNT(").and_then(|rest| rest.strip_suffix(')'));
    match (mode, count.and_then(|count| count.parse().ok())) {
        ("ALL", _) => Ok(usize::MAX),
        (_, Some(count)) => Ok(count),
        _ => Err(invalid("selectionMode has to be ALL or COUNT(n): PERCENT is not played here.")),
    }
}

/// Fails for an action other than an interruption of spot instances after two minutes.
fn check_action(action: &Value, targets: &Map<String, Value>) -> Result<(), ApiError> {
    let of = action.as_object().ok_or_else(|| invalid("An action has to be an object."))?;
    refuse_others(of, &["actionId", "description", "parameters", "targets"])?;
    if text_of(action, "actionId")? != INTERRUPT {
        return Err(invalid(format!("Of actions only {INTERRUPT} is played here.")));
    }
    let after = action.pointer("/parameters/durationBeforeInterruption").and_then(Value::as_str);
    if after != Some("PT2M") {
        return Err(invalid("durationBeforeInterruption has to be PT2M: no other is played here."));
    }
    let target = action.pointer("/targets/SpotInstances").and_then(Value::as_str);
    match target.filter(|name| targets.contains_key(*name)) {
        Some(_) => Ok(()),
        None => Err(invalid("The action's target SpotInstances has to name one of targets.")),
    }
}

/// The running spot instances that a target selects, the first ones in the order of DescribeInstances.
fn instances_of(
    call: &FaultCall,
    target: &Value,
    session: &mut dyn CloudSession,
) -> Result<Vec<String>, ApiError> {
    let filter = |name: String, value: &str| {
        WireValue::structure().with("Name", name).with("Values", vec![value])
    };
    let mut filters = vec![
        filter("instance-state-name".to_owned(), "running"),
        filter("instance-lifecycle".to_owned(), "spot"),
    ];
    for (key, value) in target.get("resourceTags").and_then(Value::as_object).into_iter().flatten()
    {
        filters.push(filter(format!("tag:{key}"), value.as_str().unwrap_or_default()));
    }
    let request = ApiRequest {
        action: "DescribeInstances".to_owned(),
        version: "2016-11-15".to_owned(),
        input: WireValue::structure().with("Filters", filters),
    };
    let answer = session.call(&call.account, &call.region, &request)?;
    let arns = target.get("resourceArns").and_then(Value::as_array);
    let is_named = |id: &str| {
        arns.is_none_or(|arns| {
            let of = |arn: &Value| arn.as_str().and_then(|arn| arn.rsplit('/').next()) == Some(id);
            arns.iter().any(of)
        })
    };
    let instances = answer.list("Reservations").iter().flat_map(|one| one.list("Instances"));
    let ids = instances.filter_map(|one| one.text("InstanceId")).filter(|id| is_named(id));
    Ok(ids.map(str::to_owned).take(most_of(target)?).collect())
}
