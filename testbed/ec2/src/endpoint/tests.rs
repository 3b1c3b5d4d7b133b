//! Tests of an endpoint with a simulated cloud, called over TCP.

use std::time::{Duration, Instant};

use dormouse_ec2::{AnnouncedChange, InstanceAnnouncement, RoleKey};
use dormouse_ec2_wire::{ApiRequest, WireValue};
use dormouse_units::{Speedup, Time};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::*;
use crate::AwaitedAnswer;
use crate::caller::CallerScope;
use crate::signature::signature_of;

/// A cloud with an event each hour, which describes one region, named after the caller.
#[derive(Debug)]
struct FakeCloud {
    now: Time,
    calls: usize,
    interrupted: Vec<String>,
    kept: Vec<String>,
}

impl FakeCloud {
    fn answer(
        &mut self,
        account: &str,
        region: &str,
        request: &ApiRequest,
    ) -> Result<WireValue, ApiError> {
        self.calls += 1;
        let known = WireValue::structure().with("RegionName", region).with("Endpoint", account);
        let image = WireValue::structure()
            .with("ImageId", "ami-1")
            .with("Name", "al2023-ami-x")
            .with("Architecture", "x86_64");
        match request.action.as_str() {
            "DescribeRegions" => Ok(WireValue::structure().with("Regions", vec![known])),
            "DescribeImages" => Ok(WireValue::structure().with("Images", vec![image])),
            "DescribeInstances" => {
                let wanted =
                    request.input.list("Filters").iter().flat_map(|one| one.texts("Values"));
                assert_eq!(wanted.collect::<Vec<_>>(), ["running", "spot", "b"]);
                let one = |id: &str| WireValue::structure().with("InstanceId", id);
                let all = WireValue::structure().with("Instances", vec![one("i-1"), one("i-2")]);
                Ok(WireValue::structure().with("Reservations", vec![all]))
            }
            "DescribeVpcs" => Ok(WireValue::structure().with("Odd", "x")),
            _ => Err(ApiError::new("InsufficientInstanceCapacity", "There is <none>.")),
        }
    }
}

impl CloudSession for FakeCloud {
    fn begin_call(&mut self, account: &str, region: &str, request: &ApiRequest) -> AwaitedAnswer {
        let answer = self.answer(account, region, request);
        AwaitedAnswer::new(|| answer)
    }

    fn role_key(&self, access_key: &str) -> Option<RoleKey> {
        let text = |text: &str| text.to_owned();
        (access_key == "ASIA1").then(|| RoleKey {
            account: text("111122223333"),
            access_key: text("ASIA1"),
            secret: text("secret"),
            token: text("token"),
        })
    }

    fn interrupt(&mut self, instance: &str, _why: &str) -> bool {
        self.interrupted.push(instance.to_owned());
        true
    }

    /// Returns one announcement: an instance is warned at 100 s.
    fn announced(&self, from: usize) -> Vec<InstanceAnnouncement> {
        let warning = InstanceAnnouncement {
            at: Time::from_secs(100),
            account: "111122223333".to_owned(),
            region: "eu-west-1".to_owned(),
            zone: "eu-west-1a".to_owned(),
            instance: "i-1".to_owned(),
            change: AnnouncedChange::Interruption("terminate"),
        };
        let told = if self.now >= warning.at { vec![warning] } else { Vec::new() };
        told.into_iter().skip(from).collect()
    }

    fn now(&self) -> Time {
        self.now
    }

    fn keep_record(&mut self, line: &str) -> bool {
        self.kept.push(line.to_owned());
        true
    }

    fn kept_records(&self) -> Vec<String> {
        self.kept.clone()
    }

    fn begins_at(&self) -> i64 {
        1_795_766_400_000_000
    }

    fn next_event_at(&mut self) -> Option<Time> {
        Some(Time::from_secs((self.now.as_micros() / 3_600_000_000 + 1) * 3_600))
    }

    fn advance_to(&mut self, to: Time) {
        self.now = self.now.max(to);
    }
}

/// Runs `act` against an endpoint with a fake cloud; `act` gets the endpoint's address.
async fn called<T, F: Future<Output = T>>(
    clock: ClockMode,
    secrets: Option<AccessSecrets>,
    act: impl FnOnce(SocketAddr) -> F,
) -> (T, FakeCloud) {
    let listen = "127.0.0.1:0".parse().expect("an address");
    let setup = EndpointSetup { listen, clock, secrets };
    let cloud = FakeCloud { now: Time::ZERO, calls: 0, interrupted: Vec::new(), kept: Vec::new() };
    serve_cloud(setup, cloud, act).await
}

/// Runs `act` against an endpoint with this cloud.
async fn serve_cloud<T, F: Future<Output = T>>(
    setup: EndpointSetup,
    cloud: FakeCloud,
    act: impl FnOnce(SocketAddr) -> F,
) -> (T, FakeCloud) {
    let endpoint = Ec2Endpoint::bind(setup, cloud).await.expect("a free port");
    let (address, (end, ended)) = (endpoint.address, oneshot::channel::<()>());
    let serving = tokio::spawn(endpoint.serve_until(async { drop(ended.await) }));
    let done = act(address).await;
    drop(end);
    (done, serving.await.expect("no panic").expect("it was not taken before"))
}

/// The answer to the bytes of a request on a connection of its own.
async fn sent(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    String::from_utf8(answer).expect("a text")
}

const SCOPE: &str = "Authorization: AWS4-HMAC-SHA256 Credential=111122223333/20261127/eu-west-1/ec2/aws4_request, \
    SignedHeaders=host;x-amz-date, Signature=00\r\n";

async fn posted(address: SocketAddr, path: &str, headers: &str, body: &str) -> String {
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\
         Content-Type: application/x-www-form-urlencoded; charset=utf-8\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    sent(address, &request).await
}

#[tokio::test]
async fn a_call_is_of_the_account_and_region_of_its_credential() {
    let (answers, cloud) = called(ClockMode::Manual, None, |at| async move {
        let body = "Action=DescribeRegions&Version=2016-11-15";
        let get = format!("GET /?{body} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        [posted(at, "/", SCOPE, body).await, sent(at, &get).await]
    })
    .await;
    let [posted, got] = answers;
    assert!(posted.starts_with("HTTP/1.1 200 OK\r\n"), "{posted}");
    assert!(posted.contains("content-type: text/xml;charset=UTF-8"), "{posted}");
    assert!(posted.contains("<regionName>eu-west-1</regionName>"), "{posted}");
    assert!(posted.contains("<regionEndpoint>111122223333</regionEndpoint>"), "{posted}");
    assert!(posted.contains("<requestId>00000000-0000-4000-8000-000000000000</requestId>"));
    assert!(got.contains("<regionName>us-east-1</regionName>"), "{got}");
    assert!(got.contains("<requestId>00000000-0000-4000-8000-000000000001</requestId>"));
    assert_eq!(cloud.calls, 2);
}

/// Headers that sign a request of DescribeRegions with this access key, secret and token.
fn signed(address: SocketAddr, key: &str, secret: &str, token: &str) -> String {
    let headers = format!(
        "Authorization: AWS4-HMAC-SHA256 Credential={key}/20261127/eu-west-1/ec2/aws4_request, \
         SignedHeaders=host;x-amz-date;x-amz-security-token, Signature="
    );
    let request = Request::post("/")
        .header("host", address.to_string())
        .header("x-amz-date", "20261127T080000Z")
        .header("x-amz-security-token", token)
        .header("authorization", format!("{}00", &headers["Authorization: ".len()..]))
        .body(())
        .expect("a request");
    let (parts, ()) = request.into_parts();
    let caller = CallerScope::of_headers(&parts.headers).expect("it is right");
    let dates = [1_795_766_400; 2];
    let signature = signature_of(secret, &caller, &parts, REGIONS.as_bytes(), dates);
    let signature = signature.expect("all that has to be signed is there");
    format!(
        "{headers}{signature}\r\nX-Amz-Date: 20261127T080000Z\r\nX-Amz-Security-Token: {token}\r\n"
    )
}

const REGIONS: &str = "Action=DescribeRegions&Version=2016-11-15";

#[tokio::test]
async fn an_instance_is_answered_only_with_the_credentials_of_its_role() {
    let listen = "127.0.0.1:0".parse().expect("an address");
    let setup = EndpointSetup { listen, clock: ClockMode::Manual, secrets: None };
    let cloud = FakeCloud { now: Time::ZERO, calls: 0, interrupted: Vec::new(), kept: Vec::new() };
    let mut endpoint = Ec2Endpoint::bind(setup, cloud).await.expect("a free port");
    let inner = endpoint.open_inner(Ipv4Addr::LOCALHOST.into()).await.expect("a free port");
    let (outer, (end, ended)) = (endpoint.address, oneshot::channel::<()>());
    let serving = tokio::spawn(endpoint.serve_until(async { drop(ended.await) }));
    let own = signed(inner, "ASIA1", "secret", "token");
    let answer = posted(inner, "/", &own, REGIONS).await;
    // The account is that of the instance.
    assert!(answer.contains("<regionEndpoint>111122223333</regionEndpoint>"), "{answer}");
    let token = own.replace("Security-Token: token", "Security-Token: other");
    for headers in [
        String::new(),
        SCOPE.to_owned(),
        signed(inner, "111122223333", "secret", "token"),
        signed(inner, "ASIA1", "guessed", "token"),
        signed(inner, "ASIA1", "secret", "guessed"),
        token,
    ] {
        let answer = posted(inner, "/", &headers, REGIONS).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{headers}: {answer}");
        let answer = posted(inner, "/_dormouse/advance", &headers, r#"{"by": 9}"#).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{headers}: {answer}");
    }
    // At the port for clients nobody has to sign, but whoever names an instance's key does.
    assert!(posted(outer, "/", SCOPE, REGIONS).await.starts_with("HTTP/1.1 200"));
    let forged = signed(outer, "ASIA1", "guessed", "token");
    assert!(posted(outer, "/", &forged, REGIONS).await.starts_with("HTTP/1.1 401"));
    drop(end);
    let cloud = serving.await.expect("no panic").expect("it was not taken before");
    assert_eq!((cloud.calls, cloud.now), (2, Time::ZERO));
}

#[tokio::test]
async fn nonsense_gets_an_error_of_ec2_and_reaches_no_cloud() {
    let (answers, cloud) = called(ClockMode::Manual, None, |at| async move {
        let mut answers = Vec::new();
        for (headers, body, wanted) in [
            (SCOPE, "", "<Code>MissingAction</Code>"),
            (SCOPE, "Action=Fly&Version=2016-11-15", "The action Fly is not played here."),
            (SCOPE, "Action=DescribeRegions&Colour=red", "<Code>UnknownParameter</Code>"),
            (SCOPE, "%zz", "<Code>MalformedQueryString</Code>"),
            ("Authorization: Basic YTpi\r\n", "Action=DescribeRegions", "<Code>AuthFailure</Code>"),
            (
                "Origin: https://evil.example\r\n",
                "Action=DescribeRegions",
                "<Code>AuthFailure</Code>",
            ),
            ("X-Amz-Target: AmazonSSM.Fly\r\n", "{}", "AmazonSSM.Fly is not played here."),
        ] {
            answers.push((posted(at, "/", headers, body).await, wanted));
        }
        let long = "x".repeat(BODY_BYTES + 1);
        answers.push((posted(at, "/", SCOPE, &long).await, "longer than 1048576 bytes"));
        answers.push((posted(at, "/x", SCOPE, "").await, "ec2: POST /x is not played here."));
        let host = "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
        answers.push((sent(at, host).await, "<Code>AuthFailure</Code>"));
        answers
    })
    .await;
    for (answer, wanted) in answers {
        assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
        assert!(answer.contains(wanted), "{wanted}: {answer}");
    }
    assert_eq!(cloud.calls, 0);
}

#[tokio::test]
async fn errors_of_the_cloud_have_the_status_by_which_clients_try_again() {
    let (answers, _) = called(ClockMode::Manual, None, |at| async move {
        let run = "Action=RunInstances&MinCount=1&MaxCount=1";
        [posted(at, "/", SCOPE, run).await, posted(at, "/", SCOPE, "Action=DescribeVpcs").await]
    })
    .await;
    let [none, odd] = answers;
    assert!(none.starts_with("HTTP/1.1 500"), "{none}");
    assert!(none.contains("<Message>There is &lt;none&gt;.</Message>"), "{none}");
    assert!(odd.starts_with("HTTP/1.1 500"), "{odd}");
    assert!(odd.contains("<Code>InternalError</Code>"), "{odd}");
}

#[tokio::test]
async fn a_manual_clock_stands_until_it_is_told() {
    let (answers, cloud) = called(ClockMode::Manual, None, |at| async move {
        let advance = "/_dormouse/advance";
        [
            posted(at, advance, "", r#"{"by": 90.5}"#).await,
            posted(at, advance, "", r#"{"until": "next-event"}"#).await,
            posted(at, advance, "", r#"{"by": -1}"#).await,
            posted(at, advance, "", r#"{"by": 1, "until": "next-event"}"#).await,
            posted(at, advance, "", r#"{"to": 1}"#).await,
            sent(at, "GET /_dormouse/now HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                .await,
        ]
    })
    .await;
    assert!(
        answers[0].contains(r#""clock":"manual","now_s":90.5,"date":"2026-11-27T08:01:30.500Z""#)
    );
    assert!(answers[1].contains(r#""now_s":3600.0"#), "{}", answers[1]);
    for wrong in &answers[2..5] {
        assert!(wrong.starts_with("HTTP/1.1 400"), "{wrong}");
    }
    assert!(answers[5].contains(r#""unix_us":1795770000000000"#), "{}", answers[5]);
    assert!(answers[5].contains(r#""next_event_s":7200.0"#), "{}", answers[5]);
    assert_eq!(cloud.now, Time::from_secs(3_600));
}

#[tokio::test]
async fn a_paced_clock_follows_the_hosts_and_is_not_advanced() {
    let speedup = Speedup::from_f64(100_000.0).expect("a factor");
    let began = Instant::now();
    let (refused, cloud) = called(ClockMode::Paced(speedup), None, |at| async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        posted(at, "/_dormouse/advance", "", r#"{"by": 90.5}"#).await
    })
    .await;
    assert!(refused.contains("start with --clock manual"), "{refused}");
    assert!(cloud.now >= Time::from_secs(2_000), "20 ms are 2,000 s: {}", cloud.now);
    assert!(cloud.now <= Time::ZERO + speedup.to_emulated(began.elapsed()), "{}", cloud.now);
}

#[tokio::test]
async fn other_services_are_told_by_what_is_signed_for() {
    let (answers, _) = called(ClockMode::Manual, None, |at| async move {
        let of = |service: &str| SCOPE.replace("/ec2/", &format!("/{service}/"));
        let ssm = format!("{}X-Amz-Target: AmazonSSM.GetParameter\r\n", of("ssm"));
        let name = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default";
        [
            posted(at, "/", &of("sts"), "Action=GetCallerIdentity&Version=2011-06-15").await,
            posted(at, "/", &of("iam"), "Action=GetRole&RoleName=r&Version=2010-05-08").await,
            posted(at, "/", &of("elasticmapreduce"), "Action=RunJobFlow").await,
            posted(at, "/", &ssm, &format!("{{\"Name\": \"{name}-x86_64\"}}")).await,
            posted(at, "/", &ssm, &format!("{{\"Name\": \"{name}-arm64\"}}")).await,
        ]
    })
    .await;
    assert!(answers[0].contains("<Account>111122223333</Account>"), "{}", answers[0]);
    assert!(answers[1].starts_with("HTTP/1.1 404") && answers[1].contains("NoSuchEntity"));
    assert!(answers[2].contains("The action elasticmapreduce:RunJobFlow is not played here."));
    assert!(answers[3].contains(r#""Value":"ami-1""#), "{}", answers[3]);
    assert!(answers[4].contains("ParameterNotFound"), "{}", answers[4]);
}

#[tokio::test]
async fn an_experiment_of_fis_interrupts_its_targets() {
    let template = r#"{"clientToken": "x", "description": "d", "roleArn": "r", "stopConditions": [{"source": "none"}],
        "targets": {"t": {"resourceType": "aws:ec2:spot-instance", "selectionMode": "COUNT(1)", "resourceTags": {"a": "b"}}},
        "actions": {"a": {"actionId": "aws:ec2:send-spot-instance-interruptions",
            "parameters": {"durationBeforeInterruption": "PT2M"}, "targets": {"SpotInstances": "t"}}}}"#;
    let (answers, cloud) = called(ClockMode::Manual, None, |at| async move {
        let fis = SCOPE.replace("/ec2/", "/fis/");
        let start = r#"{"clientToken": "y", "experimentTemplateId": "EXT000000000000001"}"#;
        let get = format!("GET /experiments/EXP000000000000004 HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n{fis}\r\n");
        [
            posted(at, "/experimentTemplates", &fis, template).await,
            posted(at, "/experimentTemplates", &fis, template).await,
            posted(at, "/experimentTemplates", &fis, &template.replace("PT2M", "PT5M").replace('x', "z")).await,
            posted(at, "/experiments", &fis, start).await,
            posted(at, "/experiments", &fis, start).await,
            sent(at, &get).await,
            posted(at, "/experiments", &fis, r#"{"clientToken": "w", "experimentTemplateId": "EXT0"}"#).await,
        ]
    })
    .await;
    assert!(answers[0].contains(r#""id":"EXT000000000000001""#), "{}", answers[0]);
    assert!(answers[1].contains(r#""id":"EXT000000000000001""#), "the same token: {}", answers[1]);
    assert!(answers[2].starts_with("HTTP/1.1 400") && answers[2].contains("has to be PT2M"));
    for answer in &answers[3..6] {
        assert!(answer.contains(r#""status":"completed""#), "{answer}");
    }
    assert!(answers[6].starts_with("HTTP/1.1 404"), "{}", answers[6]);
    assert_eq!(cloud.interrupted, ["i-1"]);
}

#[tokio::test]
async fn elsewhere_than_on_loopback_signatures_are_checked() {
    let listen = "0.0.0.0:0".parse().expect("an address");
    let setup = EndpointSetup { listen, clock: ClockMode::Manual, secrets: None };
    let cloud = FakeCloud { now: Time::ZERO, calls: 0, interrupted: Vec::new(), kept: Vec::new() };
    let refused = Ec2Endpoint::bind(setup, cloud).await.expect_err("there are no secrets");
    assert!(refused.to_string().contains("give --secret-file"), "{refused}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("secrets");
    std::fs::write(&file, "# of the test\n111122223333 secret\n").expect("room");
    let secrets = AccessSecrets::read(&file).expect("it is right");
    let (answer, cloud) = called(ClockMode::Manual, Some(secrets), |at| async move {
        posted(at, "/_dormouse/advance", SCOPE, r#"{"by": 1}"#).await
    })
    .await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert_eq!(cloud.now, Time::ZERO);
    std::fs::write(&file, "a b c\n").expect("room");
    let error = AccessSecrets::read(&file).expect_err("three words");
    assert!(
        error
            .to_string()
            .ends_with("line 1: write an access key and its secret, with a space between them")
    );
}

/// Connections that each send half a request use more than half of the connections that a port allows; other clients
/// are still answered.
#[tokio::test]
async fn half_requests_keep_nobody_out() {
    let (answer, _) = called(ClockMode::Manual, None, |at| async move {
        let mut attack = Vec::new();
        for _ in 0..300 {
            let mut stream = TcpStream::connect(at).await.expect("it listens");
            let _ = stream.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nX-").await;
            attack.push(stream);
        }
        posted(at, "/", SCOPE, "Action=DescribeRegions").await
    })
    .await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_queue_has_what_is_told_of_its_accounts_instances() {
    const QUEUE: &str = "Authorization: AWS4-HMAC-SHA256 Credential=111122223333/20261127/eu-west-1/sqs/aws4_request, \
        SignedHeaders=host, Signature=00\r\nX-Amz-Target: AmazonSQS.";
    let (answers, _) = called(ClockMode::Manual, None, |at| async move {
        let mut answers = Vec::new();
        let receive = r#"{"QueueUrl": "http://x/111122223333/q", "MaxNumberOfMessages": 10}"#;
        for (action, body) in [
            ("GetQueueUrl", r#"{"QueueName": "q"}"#),
            ("CreateQueue", r#"{"QueueName": "q", "Attributes": {"VisibilityTimeout": "60"}}"#),
            ("ReceiveMessage", receive),
            ("", r#"{"by": 200}"#),
            ("ReceiveMessage", receive),
            ("ReceiveMessage", receive),
            ("", r#"{"by": 61}"#),
            ("ReceiveMessage", receive),
            ("SendMessage", receive),
        ] {
            let headers = format!("{QUEUE}{action}\r\n");
            let answer = match action {
                "" => posted(at, "/_dormouse/advance", "", body).await,
                _ => posted(at, "/", &headers, body).await,
            };
            answers.push(answer);
        }
        let handle = answers[7].split("\"ReceiptHandle\":\"").nth(1).expect("a handle");
        let handle = handle.split('"').next().unwrap_or_default();
        let body =
            format!(r#"{{"QueueUrl": "http://x/111122223333/q", "ReceiptHandle": "{handle}"}}"#);
        answers.push(posted(at, "/", &format!("{QUEUE}DeleteMessage\r\n"), &body).await);
        let body = r#"{"QueueUrl": "http://x/111122223333/q", "AttributeNames": ["All"]}"#;
        answers.push(posted(at, "/", &format!("{QUEUE}GetQueueAttributes\r\n"), body).await);
        answers
    })
    .await;
    assert!(answers[0].contains("AWS.SimpleQueueService.NonExistentQueue"), "{}", answers[0]);
    assert!(answers[1].contains("/111122223333/q\""), "{}", answers[1]);
    assert!(!answers[2].contains("Body"), "{}", answers[2]);
    let warning = r#"\"instance-action\":\"terminate\""#;
    assert!(answers[4].contains(warning), "{}", answers[4]);
    assert!(answers[4].contains("EC2 Spot Instance Interruption Warning"), "{}", answers[4]);
    // Whoever has it keeps it from others for a minute.
    assert!(!answers[5].contains("Body"), "{}", answers[5]);
    assert!(answers[7].contains(warning), "{}", answers[7]);
    assert!(answers[8].contains("UnsupportedOperation"), "{}", answers[8]);
    assert!(answers[9].starts_with("HTTP/1.1 200"), "{}", answers[9]);
    assert!(answers[10].contains(r#""ApproximateNumberOfMessages":"0""#), "{}", answers[10]);
    assert!(answers[10].contains(r#""ApproximateNumberOfMessagesNotVisible":"0""#));
}

#[tokio::test]
async fn an_endpoint_that_goes_on_knows_what_other_services_had() {
    let of = |service: &str| SCOPE.replace("/ec2/", &format!("/{service}/"));
    let role = "Action=CreateRole&Version=2010-05-08&RoleName=r&AssumeRolePolicyDocument=x";
    let queue = format!("{}X-Amz-Target: AmazonSQS.CreateQueue\r\n", of("sqs"));
    let url = format!("{}X-Amz-Target: AmazonSQS.GetQueueUrl\r\n", of("sqs"));
    let name = r#"{"QueueName": "q"}"#;
    let template = r#"{"clientToken": "t", "roleArn": "r", "description": "d", "stopConditions": [],
        "targets": {}, "actions": {}}"#;
    let (made, cloud) = called(ClockMode::Manual, None, |at| {
        let (iam, fis, queue) = (of("iam"), of("fis"), queue.clone());
        async move {
            [
                posted(at, "/", &iam, role).await,
                posted(at, "/", &queue, name).await,
                posted(at, "/experimentTemplates", &fis, template).await,
            ]
        }
    })
    .await;
    for answer in &made {
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(cloud.kept.len(), 3);
    let listen = "127.0.0.1:0".parse().expect("an address");
    let setup = EndpointSetup { listen, clock: ClockMode::Manual, secrets: None };
    // Its last line was torn when it was killed.
    let mut kept = cloud.kept;
    kept.push("{\"service\":\"iam\",\"acc".to_owned());
    let (again, _) = serve_cloud(setup, FakeCloud { kept, ..cloud }, |at| async move {
        [
            posted(at, "/", &of("iam"), role).await,
            posted(at, "/", &url, name).await,
            posted(at, "/experimentTemplates", &of("fis"), template).await,
        ]
    })
    .await;
    assert!(again[0].contains("EntityAlreadyExists"), "{}", again[0]);
    assert!(again[1].contains("/111122223333/q"), "{}", again[1]);
    // The same token is the same template.
    let body = |answer: &str| answer.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned();
    assert_eq!(body(&again[2]), body(&made[2]));
}
