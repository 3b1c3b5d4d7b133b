//! EC2's dialect: the instance metadata service, versions 1 and 2.

mod items;

use crate::{
    HttpMethod, HttpRequest, HttpResponse, MetadataService, TokenRule, UnixTime, token,
    tree::TreeNode,
};

const TOKEN: &str = "x-aws-ec2-metadata-token";
const TTL: &str = "x-aws-ec2-metadata-token-ttl-seconds";
/// Name of the header with a token's lifetime, as responses spell it.
const TTL_OUT: &str = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds";
/// Versions of the metadata by date; all give the same answers.
const VERSIONS: [&str; 27] = [
    "1.0",
    "2007-01-19",
    "2007-03-01",
    "2007-08-29",
    "2007-10-10",
    "2007-12-15",
    "2008-02-01",
    "2008-09-01",
    "2009-04-04",
    "2011-01-01",
    "2011-05-01",
    "2012-01-12",
    "2014-02-25",
    "2014-11-05",
    "2015-10-20",
    "2016-04-19",
    "2016-06-30",
    "2016-09-02",
    "2018-03-28",
    "2018-08-17",
    "2018-09-24",
    "2019-10-01",
    "2020-10-27",
    "2021-01-03",
    "2021-03-23",
    "2021-07-15",
    "2022-09-24",
];
const LATEST: &str = "latest";

/// Answers a request in EC2's dialect.
pub(crate) fn answer_ec2(
    service: &MetadataService,
    request: &HttpRequest,
    now: UnixTime,
) -> HttpResponse {
    let answer = match request.path_parts()[..] {
        [LATEST, "api", "token"] => issue_token(service, request, now),
        ref parts => read(service, request, parts, now),
    };
    answer.with_header("Server", "EC2ws")
}

/// Answers a request for a token, with the lifetime that the request's header gives.
fn issue_token(service: &MetadataService, request: &HttpRequest, now: UnixTime) -> HttpResponse {
    if request.method != HttpMethod::Put {
        return error_page(405, "Method Not Allowed").with_header("Allow", "OPTIONS, PUT");
    }
    if request.is_forwarded() {
        return error_page(403, "Forbidden");
    }
    let ttl = request.find_header(TTL).and_then(|ttl| ttl.trim().parse().ok());
    match ttl.filter(|ttl| (1..=token::LONGEST).contains(ttl)) {
        None => error_page(400, "Bad Request"),
        Some(ttl) => {
            let until = now.as_micros().saturating_add(ttl * 1_000_000);
            let token = service.key.issue_token(UnixTime::from_micros(until));
            HttpResponse::plain_text(token).with_header(TTL_OUT, ttl.to_string())
        }
    }
}

fn read(
    service: &MetadataService,
    request: &HttpRequest,
    parts: &[&str],
    now: UnixTime,
) -> HttpResponse {
    if !request.is_reading() {
        return error_page(405, "Method Not Allowed").with_header("Allow", "GET, HEAD");
    }
    let left = match request.find_header(TOKEN) {
        None if service.settings.tokens == TokenRule::Required => {
            return error_page(401, "Unauthorized");
        }
        None => None,
        Some(token) => match service.key.seconds_left(token, now) {
            None => return error_page(401, "Unauthorized"),
            left => left,
        },
    };
    let found = respond_with(service, parts, now);
    match left {
        Some(left) => found.with_header(TTL_OUT, left.to_string()),
        None => found,
    }
}

fn respond_with(service: &MetadataService, parts: &[&str], now: UnixTime) -> HttpResponse {
    let Some((version, path)) = parts.split_first() else {
        let versions = VERSIONS.iter().chain([&LATEST]);
        return HttpResponse::plain_text(versions.copied().collect::<Vec<_>>().join("\n"));
    };
    if *version != LATEST && !VERSIONS.contains(version) {
        return error_page(404, "Not Found");
    }
    let tree = items::metadata_tree(&service.facts, &service.notices, now);
    match (tree.node_at(path), path) {
        (None, _) => error_page(404, "Not Found"),
        // Keys are listed with their names, and found by their numbers.
        (Some(_), ["meta-data", "public-keys"]) => {
            let name = service.facts.access.public_key.as_ref().map(|(name, _)| name.as_str());
            HttpResponse::plain_text(format!("0={}", name.unwrap_or_default()))
        }
        // The root alone is listed without slashes.
        (Some(TreeNode::Directory(all)), []) => {
            let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
            HttpResponse::plain_text(names.join("\n"))
        }
        (Some(TreeNode::Value(text)), ["user-data"]) => HttpResponse {
            content_type: "application/octet-stream",
            ..HttpResponse::plain_text(text)
        },
        // EC2 sends credentials as text, too.
        (Some(TreeNode::Value(text)), ["meta-data", "tags" | "iam", ..]) => {
            HttpResponse::plain_text(text)
        }
        (Some(TreeNode::Value(text)), _) if text.starts_with(['{', '[']) => {
            HttpResponse::json_text(text.as_str())
        }
        (Some(node), _) => HttpResponse::plain_text(node.listing_lines().join("\n")),
    }
}

/// An error page in the layout of EC2's.
fn error_page(status: u16, what: &str) -> HttpResponse {
    let title = format!("{status} - {what}");
    let page = format!(
        "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>\n<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Transitional//EN\"\n\t\
         \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd\">\n<html xmlns=\"http://www.w3.org/1999/xhtml\" \
         xml:lang=\"en\" lang=\"en\">\n <head>\n  <title>{title}</title>\n </head>\n <body>\n  <h1>{title}</h1>\n </body>\n\
         </html>\n"
    );
    HttpResponse { content_type: "text/html", ..HttpResponse::plain_text(page) }.with_status(status)
}

#[cfg(test)]
mod tests;
