//! The services of an endpoint: which one a request is for, and its answer.

use std::sync::PoisonError;

use dormouse_ec2_wire::{ApiError, QueryPairs, read_query, request_of, write_response};
use hyper::Method;
use hyper::header::CONTENT_TYPE;
use hyper::http::request::Parts;
use serde_json::{Value, json};

use crate::CloudSession;
use crate::caller::CallerScope;
use crate::identity_records::NAMESPACE as IAM;
use crate::image_names::{parameter_of_image, parameters_of_images};
use crate::kept_records::{KeptRecord, unwritten};
use crate::queue_records::QueueCall;
use crate::reply::HttpReply;
use crate::site::Ec2Site;
use crate::xml::{element, query_answer, query_error};

/// The namespace of STS's answers.
const STS: &str = "https://sts.amazonaws.com/doc/2011-06-15/";

impl<S: CloudSession> Ec2Site<S> {
    /// Answers a call to the root path of the endpoint, where all services but FIS are served: EC2, IAM, STS, SSM and
    /// SQS.
    pub(crate) fn answer_api(
        &self,
        caller: &CallerScope,
        parts: &Parts,
        body: &[u8],
        request_id: &str,
    ) -> HttpReply {
        let target = parts.headers.get("x-amz-target").and_then(|target| target.to_str().ok());
        if let Some(target) = target {
            return self
                .answer_json(caller, target, body)
                .unwrap_or_else(|error| HttpReply::aws_json_error(&error));
        }
        let pairs = match pairs_of(parts, body) {
            Ok(pairs) => pairs,
            Err(error) => return HttpReply::ec2_error(&error, request_id),
        };
        let value = |wanted: &str| {
            pairs.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value.as_str())
        };
        let service = match (caller.service.as_str(), value("Version")) {
            ("", "2011-06-15") => "sts",
            ("", "2010-05-08") => "iam",
            ("", _) => "ec2",
            (service, _) => service,
        };
        match service {
            "ec2" => self.answer_ec2(caller, &pairs, request_id),
            "sts" => answer_sts(caller, value("Action"), &pairs, request_id),
            "iam" => self.answer_iam(caller, value("Action"), &pairs, request_id),
            other => {
                let text = format!("The action {other}:{} is not played here.", value("Action"));
                HttpReply::xml(400, query_error("UnsupportedOperation", &text, "", request_id))
            }
        }
    }

    fn answer_ec2(&self, caller: &CallerScope, pairs: &QueryPairs, request_id: &str) -> HttpReply {
        let answered = request_of(&self.model, pairs).and_then(|request| {
            let account = caller.account();
            let region = &caller.region;
            let answer =
                self.with_cloud(|cloud| cloud.session().begin_call(&account, region, &request))?;
            let value = answer.wait()?;
            write_response(&self.model, &request.action, &value, request_id).map_err(|error| {
                tracing::error!(action = request.action, %error, "an answer to an API call can't be \
                         written");
                ApiError::new("InternalError", format!("{}: {error}", request.action))
            })
        });
        match answered {
            Ok(xml) => HttpReply::xml(200, xml),
            Err(error) => HttpReply::ec2_error(&error, request_id),
        }
    }

    fn answer_iam(
        &self,
        caller: &CallerScope,
        action: &str,
        pairs: &QueryPairs,
        request_id: &str,
    ) -> HttpReply {
        let answered = self.with_cloud(|cloud| {
            let (date, account) = (cloud.date(), caller.account());
            let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
            let answer = records.call(&account, action, pairs, date)?;
            let (action, pairs) = (action.to_owned(), pairs.clone());
            let is_kept = !is_kept_call(&action)
                || KeptRecord::Iam { account, action, pairs, date }.keep(cloud.session());
            if is_kept { Ok(answer) } else { Err(unwritten()) }
        });
        match answered.and_then(|answer| answer) {
            Ok(inner) => {
                HttpReply::xml(200, query_answer(action, IAM, inner.as_deref(), request_id))
            }
            Err(ApiError { code, message }) => {
                let status = match code.as_str() {
                    "NoSuchEntity" => 404,
                    "EntityAlreadyExists" | "LimitExceeded" => 409,
                    "Unavailable" => 503,
                    _ => 400,
                };
                HttpReply::xml(status, query_error(&code, &message, IAM, request_id))
            }
        }
    }

    /// Answers a call in awsJson, whose header names SSM's parameters or SQS's queues.
    fn answer_json(
        &self,
        caller: &CallerScope,
        target: &str,
        body: &[u8],
    ) -> Result<HttpReply, ApiError> {
        let malformed =
            |error: serde_json::Error| ApiError::new("SerializationException", error.to_string());
        let input: Value = serde_json::from_slice(body).map_err(malformed)?;
        let (account, region) = (caller.account(), caller.region.as_str());
        let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
        let found = match target.split_once('.') {
            Some(("AmazonSSM", "GetParameter")) => self.with_cloud(|cloud| {
                let found = parameter_of_image(cloud.session(), &account, region, text("Name"))?;
                Ok(json!({ "Parameter": found }))
            })?,
            Some(("AmazonSSM", "GetParameters")) => {
                let names = input.get("Names").and_then(Value::as_array);
                self.with_cloud(|cloud| {
                    parameters_of_images(cloud.session(), &account, region, names)
                })?
            }
            Some(("AmazonSQS", action)) => self.with_cloud(|cloud| {
                let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
                let date = cloud.date();
                let call = QueueCall { account: &account, region, date };
                queues.call(&call, action, &input, cloud.session())
            })?,
            _ => {
                let text = format!("The action {target} is not played here.");
                Err(ApiError::new("UnsupportedOperation", text))
            }
        };
        Ok(HttpReply::aws_json(200, &found?))
    }
}

/// Whether a call of IAM creates or changes a role or an instance profile, so that the call must be kept in the run's
/// log.
fn is_kept_call(action: &str) -> bool {
    ["CreateRole", "CreateInstanceProfile", "AddRoleToInstanceProfile"].contains(&action)
}

/// The parameters of a call: from its body if it was posted with one, else from its URL.
fn pairs_of(parts: &Parts, body: &[u8]) -> Result<QueryPairs, ApiError> {
    if parts.method == Method::GET || body.is_empty() {
        return read_query(parts.uri.query().unwrap_or_default());
    }
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if kind != "application/x-www-form-urlencoded" {
        let text = "The request has to be posted as application/x-www-form-urlencoded.";
        return Err(ApiError::new("MalformedQueryString", text));
    }
    let text = std::str::from_utf8(body)
        .map_err(|_| ApiError::new("MalformedQueryString", "The query string is not UTF-8."))?;
    read_query(text)
}

/// Answers calls of STS, which say whose access key the caller uses.
fn answer_sts(
    caller: &CallerScope,
    action: &str,
    pairs: &QueryPairs,
    request_id: &str,
) -> HttpReply {
    let refused = |text: String| {
        HttpReply::xml(400, query_error("UnsupportedOperation", &text, STS, request_id))
    };
    if action != "GetCallerIdentity" {
        return refused(format!("The action sts:{action} is not played here."));
    }
    if let Some((name, _)) = pairs.iter().find(|(name, _)| name != "Action" && name != "Version") {
        return refused(format!("The parameter {name} of sts:{action} is not played here."));
    }
    let account = caller.account();
    let inner = element("Arn", &format!("arn:aws:iam::{account}:root"))
        + &element("UserId", &account)
        + &element("Account", &account);
    HttpReply::xml(200, query_answer(action, STS, Some(&inner), request_id))
}
