//! Google's dialect: the metadata server of Compute Engine, version 1.

mod items;

use std::time::Duration;

use serde_json::Value;

use crate::{HttpRequest, HttpResponse, MetadataService, ServiceAnswer, tree::TreeNode};

/// Header that every request must have, and every response has.
pub(crate) const FLAVOR: &str = "metadata-flavor";
const FLAVOR_OUT: &str = "Metadata-Flavor";
const GOOGLE: &str = "Google";
const ETAG: &str = "ETag";

/// Answers a request in Google's dialect.
pub(crate) fn answer_google(service: &MetadataService, request: &HttpRequest) -> ServiceAnswer {
    let said = match refuse_request(request) {
        Some(no) => ServiceAnswer::Now(no),
        None => read(service, request),
    };
    match said {
        ServiceAnswer::Now(said) => {
            let said = said
                .with_header(FLAVOR_OUT, GOOGLE)
                .with_header("Server", "Metadata Server for VM");
            ServiceAnswer::Now(
                said.with_header("X-XSS-Protection", "0")
                    .with_header("X-Frame-Options", "SAMEORIGIN"),
            )
        }
        later @ ServiceAnswer::Later { .. } => later,
    }
}

fn refuse_request(request: &HttpRequest) -> Option<HttpResponse> {
    let is_meant =
        request.find_header(FLAVOR).is_some_and(|said| said.eq_ignore_ascii_case(GOOGLE))
            || request.find_header("x-google-metadata-request").is_some();
    match () {
        () if request.is_forwarded() => {
            Some(error_page(403, "Forbidden", "X-Forwarded-For is not allowed here."))
        }
        () if !is_meant => {
            Some(error_page(403, "Forbidden", "Missing required header: Metadata-Flavor: Google"))
        }
        () if !request.is_reading() => {
            Some(error_page(405, "Method Not Allowed", "Metadata is only read here."))
        }
        () => None,
    }
}

fn read(service: &MetadataService, request: &HttpRequest) -> ServiceAnswer {
    let tree = items::metadata_tree(&service.facts, &service.notices);
    let Some(node) = tree.node_at(&request.path_parts()) else {
        return ServiceAnswer::Now(error_page(404, "Not Found", "There is no such metadata here."));
    };
    let is_directory = matches!(node, TreeNode::Directory(_));
    if is_directory && !request.path.ends_with('/') {
        let to = format!("{}/", request.path);
        let moved = error_page(301, "Moved Permanently", "It is a directory.");
        return ServiceAnswer::Now(moved.with_header("Location", to));
    }
    let is_recursive = is_directory && request.is_set("recursive");
    let content = write_node(node, is_recursive, request.find_query("alt"));
    let etag = blake3::hash(content.body.as_bytes()).to_hex()[..16].to_owned();
    if request.is_set("wait_for_change")
        && request.find_query("last_etag").is_none_or(|it| it == etag)
    {
        let within = request.find_query("timeout_sec").and_then(|text| text.parse().ok());
        return ServiceAnswer::Later { etag, within: within.map(Duration::from_secs) };
    }
    ServiceAnswer::Now(content.with_header(ETAG, etag))
}

/// A node as a response: a value or directory listing as text, a subtree as JSON, unless
/// `alternative` asks for the other format.
fn write_node(node: &TreeNode, is_recursive: bool, alternative: Option<&str>) -> HttpResponse {
    let text = |body: String| HttpResponse {
        content_type: "application/text",
        ..HttpResponse::plain_text(body)
    };
    let json = |value: &Value| HttpResponse::json_text(value.to_string());
    match (node, alternative) {
        (TreeNode::Value(value), Some("json")) => json(&items::text_json(value)),
        (TreeNode::Value(value), _) => text(value.clone()),
        (_, Some("text")) if is_recursive => {
            let mut lines = String::new();
            in_lines(node, "", &mut lines);
            text(lines)
        }
        _ if is_recursive => json(&items::node_json(node)),
        _ => text(node.listing_lines().into_iter().map(|line| line + "\n").collect()),
    }
}

/// Appends all values under a node as lines of path and value.
fn in_lines(node: &TreeNode, path: &str, lines: &mut String) {
    match node {
        TreeNode::Value(value) => {
            lines.push_str(path);
            lines.push(' ');
            lines.push_str(value);
            lines.push('\n');
        }
        TreeNode::Directory(children) => {
            for (name, child) in children {
                let slash = if path.is_empty() { "" } else { "/" };
                in_lines(child, &format!("{path}{slash}{name}"), lines);
            }
        }
    }
}

fn error_page(status: u16, what: &str, why: &str) -> HttpResponse {
    let page = format!(
        "<!DOCTYPE html>\n<html lang=en>\n  <title>Error {status} ({what})</title>\n  <p><b>{status}.</b> {why}\n"
    );
    HttpResponse { content_type: "text/html; charset=UTF-8", ..HttpResponse::plain_text(page) }
        .with_status(status)
}

#[cfg(test)]
mod tests;
