//! Connections of browsers, scrapers and programs on VMs, as the bytes that they send.

use std::net::Ipv4Addr;
use std::time::Duration;

use dormouse_identity::Token;
use dormouse_metadata::{
    EndpointSettings, HttpMethod, HttpRequest, InstanceAccess, MetadataService, ServiceAnswer,
    TokenRule, TokenSecret, UnixTime, VmFacts, VmMarket, VmPlace,
};
use dormouse_watch::server::untrusted::{CallerOrigin, ServedPage};
use dormouse_worker::agent::untrusted::metadata_connection;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::scratch::Scratch;

/// Time limit of a connection: one that waits for a change would otherwise wait for ever.
const PATIENCE: Duration = Duration::from_millis(100);
/// The most bytes that are read of an answer.
const LONGEST: u64 = 1 << 20;
/// A token of the page's run that never expires, and the word that stands for it in inputs.
const OBSERVER: (&str, &str) = (
    "TOKEN",
    "dm1.observer.18446744073709551615.0000000000000000000000000000000000000000000000000000000000000000\
     .0707070707070707070707070707070707070707070707070707070707070707",
);
const OPERATOR: (&str, &str) = (
    "ACTOR",
    "dm1.operator.18446744073709551615.0000000000000000000000000000000000000000000000000000000000000000\
     .0808080808080808080808080808080808080808080808080808080808080808",
);
/// Text that only clients with a valid token may read.
const SECRET: &str = "live-bag";
/// The log of the run that the page shows.
const LOG: &[u8] = include_bytes!("../logs/live-bag.jsonl");

thread_local! {
    static RUNTIME: Runtime =
        Builder::new_current_thread().enable_time().build().expect("a runtime");
    static PAGE: ServedPage = {
        let folder = Scratch::with(|scratch| scratch.path().join("page"));
        std::fs::create_dir_all(&folder).expect("room for a folder");
        std::fs::write(folder.join("events.jsonl"), LOG).expect("room for a log");
        let tokens = [OBSERVER, OPERATOR].map(|(_, text)| text.parse::<Token>().expect("a token"));
        RUNTIME.with(|runtime| runtime.block_on(ServedPage::read(folder, tokens.to_vec())))
    };
}

/// Sends a request to a run's page: as the owner if the first byte is `o`, otherwise as a stranger from another host.
/// A client without the right may neither read the run nor act on it.
pub(crate) fn page(bytes: &[u8]) {
    let Some((caller, request)) = bytes.split_first() else { return };
    let caller = if *caller == b'o' { CallerOrigin::Owner } else { CallerOrigin::Stranger };
    let has = |text: &str| request.windows(text.len()).any(|part| part == text.as_bytes());
    let shown = [OBSERVER, OPERATOR].map(|(word, text)| has(word) || has(text));
    let sent = replaced(&replaced(request, OBSERVER), OPERATOR);
    let page = PAGE.with(ServedPage::clone);
    let heard = exchange(&sent, |end| async move { page.answer(caller, end).await });
    let status = status(&heard);
    assert!(status.is_none_or(|it| it < 500 || it == 503), "{}", String::from_utf8_lossy(&heard));
    if caller == CallerOrigin::Stranger {
        let told = heard.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
        assert!(
            !told || shown != [false; 2],
            "a stranger reads {}",
            String::from_utf8_lossy(&heard)
        );
        // There is no coordinator here: so are those answered who may act.
        assert!(status != Some(409) || shown[1], "an observer, or a stranger, may act");
    }
}

/// Sends a request of a program to the metadata service of its VM; the service demands a token if the first byte is
/// `t`.
pub(crate) fn metadata(bytes: &[u8]) {
    let Some((tokens, request)) = bytes.split_first() else { return };
    let tokens = if *tokens == b't' { TokenRule::Required } else { TokenRule::Optional };
    let launched = UnixTime::from_micros(1_781_000_000_000_000);
    let facts = VmFacts {
        instance_id: None,
        image_id: None,
        identity: "run/7".to_owned(),
        kind: "c3.large".to_owned(),
        place: VmPlace::of_zone("us-east-1a"),
        market: VmMarket::Spot,
        launched,
        address: Ipv4Addr::new(10, 0, 0, 11),
        tags: [("Name".to_owned(), "worker".to_owned())].into(),
        user_data: None,
        security_groups: Vec::new(),
        access: InstanceAccess::default(),
    };
    let mut service =
        MetadataService::new(facts, EndpointSettings { tokens }, TokenSecret::new([7; 32]));
    let ask = HttpRequest::new(HttpMethod::Put, "/latest/api/token")
        .with_header("X-aws-ec2-metadata-token-ttl-seconds", "21600");
    let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |it| it.as_micros());
    let now = UnixTime::from_micros(u64::try_from(now).unwrap_or(u64::MAX));
    let ServiceAnswer::Now(token) = service.answer_request(&ask, now) else {
        panic!("a token is not waited for")
    };
    let sent = replaced(request, ("TOKEN", &token.body));
    let heard = exchange(&sent, |end| metadata_connection(end, service));
    let status = status(&heard);
    assert!(status.is_none_or(|it| it < 500 || it == 501), "{}", String::from_utf8_lossy(&heard));
}

/// The server's answer to these bytes, up to the end of the connection or the time limit. The client sends nothing
/// after these bytes.
fn exchange<F: Future<Output = ()>>(
    bytes: &[u8],
    server: impl FnOnce(DuplexStream) -> F,
) -> Vec<u8> {
    let (client, end) = tokio::io::duplex(1 << 16);
    let (reader, mut writer) = tokio::io::split(client);
    let mut heard = Vec::new();
    let asking = async {
        let say = async {
            // A server that has heard enough closes.
            let _ = writer.write_all(bytes).await;
            let _ = writer.shutdown().await;
        };
        let mut reader = reader.take(LONGEST);
        let _ = tokio::join!(say, reader.read_to_end(&mut heard));
    };
    let serving = async {
        server(end).await;
        std::future::pending::<()>().await;
    };
    RUNTIME.with(|runtime| {
        runtime.block_on(async {
            // The time is over, or the connection.
            let _ = timeout(PATIENCE, async {
                tokio::select! { () = asking => {}, () = serving => {} }
            })
            .await;
        });
    });
    // A client that begins by HTTP/2 is answered by nothing.
    let is_http = heard.is_empty() || heard.starts_with(b"HTTP/1.");
    assert!(is_http, "it answers {}", String::from_utf8_lossy(&heard));
    heard
}

/// The HTTP status of the first answer in these bytes.
fn status(heard: &[u8]) -> Option<u16> {
    std::str::from_utf8(heard.get(9..12)?).ok()?.parse().ok()
}

/// The bytes, with each occurrence of a word replaced by another text.
fn replaced(bytes: &[u8], (word, text): (&str, &str)) -> Vec<u8> {
    let (mut all, mut rest) = (Vec::new(), bytes);
    while let Some(at) = rest.windows(word.len()).position(|part| part == word.as_bytes()) {
        all.extend(&rest[..at]);
        all.extend(text.as_bytes());
        rest = &rest[at + word.len()..];
    }
    all.extend(rest);
    all
}
