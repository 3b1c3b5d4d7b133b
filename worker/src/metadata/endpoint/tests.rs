use std::{collections::BTreeMap, process::Command};

use dormouse_metadata::{
    EndpointSettings, InstanceAccess, InterruptionNotice, TakingAction, TokenRule, UnixTime,
    VmFacts, VmMarket, VmPlace,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

const TAKEN: UnixTime = UnixTime::from_micros(1_781_043_200_000_000);

fn endpoint(tokens: TokenRule) -> Endpoint {
    let address = Ipv4Addr::new(10, 0, 0, 7);
    let facts = VmFacts {
        instance_id: None,
        image_id: None,
        identity: "run/3".to_owned(),
        kind: "c5.large".to_owned(),
        place: VmPlace::of_zone("eu-west-1b"),
        market: VmMarket::Spot,
        launched: UnixTime::from_micros(1_780_000_000_000_000),
        address,
        tags: BTreeMap::new(),
        user_data: None,
        security_groups: Vec::new(),
        access: InstanceAccess::default(),
    };
    let service =
        MetadataService::new(facts, EndpointSettings { tokens }, TokenSecret::new([5; 32]));
    Endpoint::open(None, service, address, Some(1)).expect("a port")
}

async fn ask(endpoint: &Endpoint, request: &str) -> String {
    let mut stream = TcpStream::connect(endpoint.address).await.expect("it listens");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut said = String::new();
    stream.read_to_string(&mut said).await.expect("it answers");
    said
}

async fn get(endpoint: &Endpoint, path: &str, headers: &str) -> String {
    ask(endpoint, &format!("GET {path} HTTP/1.1\r\nHost: metadata\r\n{headers}\r\n")).await
}

fn body(said: &str) -> &str {
    said.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

fn terminate() -> VmAnnouncement {
    VmAnnouncement::Interruption(InterruptionNotice { taking: TakingAction::Terminate, at: TAKEN })
}

/// Makes the requests of aws-node-termination-handler, in its order and with its headers.
#[tokio::test]
async fn a_termination_handler_finds_its_notice() {
    let endpoint = endpoint(TokenRule::Required);
    let put = "PUT /latest/api/token HTTP/1.1\r\nHost: metadata\r\n\
               X-Aws-Ec2-Metadata-Token-Ttl-Seconds: 3600\r\nContent-Length: 0\r\n\r\n";
    let said = ask(&endpoint, put).await;
    assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
    let ttl = "x-aws-ec2-metadata-token-ttl-seconds: 3600\r\n";
    assert!(said.contains(ttl) && said.contains("connection: close\r\n"), "{said}");
    let token = format!("X-Aws-Ec2-Metadata-Token: {}\r\n", body(&said));
    let action = "/latest/meta-data/spot/instance-action";
    assert!(get(&endpoint, action, &token).await.starts_with("HTTP/1.1 404 "));
    assert!(get(&endpoint, action, "").await.starts_with("HTTP/1.1 401 "));
    endpoint.announce_event(terminate());
    let said = get(&endpoint, action, &token).await;
    let notice = r#"{"action":"terminate","time":"2026-06-09T22:13:20Z"}"#;
    assert_eq!((body(&said), endpoint.announced_notice(None).as_deref()), (notice, Some(notice)));
    let events = get(&endpoint, "/latest/meta-data/events/maintenance/scheduled", &token).await;
    assert_eq!(body(&events), "[]");
    let document = get(&endpoint, "/latest/dynamic/instance-identity/document", &token).await;
    let document: serde_json::Value = serde_json::from_str(body(&document)).expect("JSON");
    assert_eq!(document["privateIp"], "10.0.0.7");
}

#[tokio::test]
async fn whoever_waits_hears_at_once() {
    let endpoint = endpoint(TokenRule::Optional);
    let flavor = "Metadata-Flavor: Google\r\n";
    let waiting = "/computeMetadata/v1/instance/preempted?wait_for_change=true";
    let heard = get(&endpoint, waiting, flavor);
    tokio::pin!(heard);
    // It is asked and not answered; whichever is first, the change is heard.
    tokio::select! {
        biased;
        said = &mut heard => panic!("nothing has changed: {said}"),
        () = tokio::task::yield_now() => {}
    }
    let (said, ()) = tokio::join!(heard, async {
        while endpoint.state.changed.receiver_count() == 0 {
            tokio::task::yield_now().await;
        }
        endpoint.announce_event(terminate());
    });
    assert_eq!(body(&said), "TRUE");
    let over = get(&endpoint, &format!("{waiting}&timeout_sec=0"), flavor).await;
    assert_eq!(body(&over), "TRUE");
}

#[tokio::test]
async fn who_waits_as_it_is_dumped_finds_the_connection_closed() {
    let endpoint = endpoint(TokenRule::Optional);
    let waiting = "/computeMetadata/v1/instance/preempted?wait_for_change=true";
    let heard = get(&endpoint, waiting, "Metadata-Flavor: Google\r\n");
    let (said, ()) = tokio::join!(heard, async {
        while endpoint.state.changed.receiver_count() == 0 {
            tokio::task::yield_now().await;
        }
        endpoint.hang_up();
    });
    assert_eq!(said, "");
    let after = get(&endpoint, "/latest/meta-data/instance-type", "").await;
    assert_eq!(body(&after), "c5.large");
}

#[tokio::test]
async fn what_is_too_much_is_refused() {
    let endpoint = endpoint(TokenRule::Optional);
    let long = "x".repeat(1 << 20);
    let post = format!(
        "POST /metadata/scheduledevents HTTP/1.1\r\nHost: m\r\nContent-Length: {}\r\n\r\n",
        1 << 20
    );
    let mut stream = TcpStream::connect(endpoint.address).await.expect("it listens");
    stream.write_all(post.as_bytes()).await.expect("it reads");
    let mut said = [0; 12];
    let (mut from, mut to) = stream.split();
    // It need not take all of it.
    let (read, _) = tokio::join!(from.read_exact(&mut said), to.write_all(long.as_bytes()));
    read.expect("it answers");
    assert_eq!(&said, b"HTTP/1.1 413");
    let path = format!("/{}", "x".repeat(HEAD));
    let said = get(&endpoint, &path, "").await;
    assert!(said.starts_with("HTTP/1.1 4"), "{said}");
    let odd = ask(&endpoint, "nonsense\r\n\r\n").await;
    assert!(odd.starts_with("HTTP/1.1 400"), "{odd}");
}

/// Bytes of a request line that is longer than allowed.
const HEAD: usize = 32 << 10;

#[tokio::test]
async fn nobody_listens_once_the_vm_is_gone() {
    let endpoint = endpoint(TokenRule::Optional);
    let address = endpoint.address;
    drop(endpoint);
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

/// In a VM's own network the endpoint is at the address that clouds use, and the VM has its own address.
#[test]
fn a_vm_finds_it_where_clouds_have_it() {
    let inside = std::thread::spawn(|| {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)?;
        crate::jail::switch_on()?;
        let own = Ipv4Addr::new(10, 0, 0, 7);
        let listeners = listen_in_vm(own)?;
        std::net::TcpStream::connect((ADDRESS, PORT))?;
        listeners[0].accept()?;
        let at_own = StdListener::bind((own, 0))?.local_addr()?;
        Ok::<_, io::Error>((listeners[0].local_addr()?, at_own.ip()))
    });
    match inside.join().expect("no panic") {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            skipped("there is no network of its own to be had here");
        }
        found => {
            let (at, at_own) = found.expect("a network");
            assert_eq!(at, SocketAddr::from((ADDRESS, 80)));
            assert_eq!(at_own, Ipv4Addr::new(10, 0, 0, 7));
        }
    }
}

/// Reports what a test lacks here; in CI nothing may be skipped.
fn skipped(why: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}");
    eprintln!("skipped: {why}");
}

/// The library botocore, which boto3 and the AWS CLI use, finds the region and the metadata by itself.
#[tokio::test(flavor = "multi_thread")]
async fn botocore_reads_it() {
    const PROGRAM: &str = r#"
import botocore.session, botocore.utils as utils
session = botocore.session.Session()
fetcher = utils.InstanceMetadataRegionFetcher(config={
    'ec2_metadata_service_endpoint': session.get_config_variable('ec2_metadata_service_endpoint')})
print(fetcher.retrieve_region())
token = fetcher._fetch_metadata_token()
print(fetcher._get_request('latest/meta-data/spot/instance-action', None, token=token).text)
print(utils.InstanceMetadataFetcher(config={'ec2_metadata_service_endpoint': fetcher.get_base_url()})
    .retrieve_iam_role_credentials())
"#;
    let endpoint = endpoint(TokenRule::Required);
    endpoint.announce_event(terminate());
    let env = endpoint.own_env();
    let ran = tokio::task::spawn_blocking(move || {
        Command::new("/usr/bin/python3").args(["-c", PROGRAM]).envs(env).output()
    });
    let Ok(Ok(ran)) = ran.await else { return skipped("there is no python3") };
    let errors = String::from_utf8_lossy(&ran.stderr);
    if errors.contains("No module named 'botocore'") {
        return skipped("python3 has no botocore: apt-get install python3-botocore");
    }
    let said = String::from_utf8_lossy(&ran.stdout);
    let notice = r#"{"action":"terminate","time":"2026-06-09T22:13:20Z"}"#;
    assert_eq!(said.lines().collect::<Vec<_>>(), ["eu-west-1", notice, "{}"], "{errors}");
}
