//! A bucket on a real server of S3's protocol, s3s-fs, on loopback.

use std::time::{Duration, Instant};

use bytes::Bytes;
use dormouse_coordinator::{ObjectError, ObjectStorage};
use dormouse_model::{BucketUrl, CheckpointStore, ServerAddress};
use dormouse_units::Span;

use super::s3::{KEY, SECRET, Server};
use crate::Bucket;

fn store(url: &str, endpoint: &str) -> CheckpointStore {
    CheckpointStore {
        url: BucketUrl::try_from(url.to_owned()).expect("a bucket"),
        endpoint: Some(ServerAddress::try_from(endpoint.to_owned()).expect("an address")),
        region: None,
        // A server that is built without optimisation, beside other tests, answers late.
        timeout: Span::from_secs(10),
    }
}

fn bucket(url: &str, endpoint: &str, secret: &str) -> Result<Bucket, ObjectError> {
    Bucket::open_in(&store(url, endpoint), &|name| match name {
        "AWS_ACCESS_KEY_ID" => Some(KEY.to_owned()),
        "AWS_SECRET_ACCESS_KEY" => Some(secret.to_owned()),
        _ => None,
    })
}

async fn put(bucket: &Bucket, key: &str, parts: &[Bytes]) -> Result<(), ObjectError> {
    let mut upload = bucket.begin_upload(key.to_owned());
    for part in parts {
        upload.write(part.clone()).await?;
    }
    upload.finish_upload().await
}

async fn get(bucket: &Bucket, key: &str) -> Result<Vec<u8>, ObjectError> {
    let (mut download, mut all) = (bucket.begin_download(key.to_owned()).await?, Vec::new());
    while let Some(data) = download.next().await? {
        all.extend_from_slice(&data);
    }
    Ok(all)
}

/// Bytes that no two parts have in common.
fn bytes(count: u32) -> Vec<Bytes> {
    let words: Vec<u8> = (0..count / 4).flat_map(u32::to_le_bytes).collect();
    Bytes::from(words).chunks(256 << 10).map(Bytes::copy_from_slice).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_of_one_request_and_of_many_are_read_back_listed_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("runs")).expect("room");
    let server = Server::start(folder.path()).await;
    let bucket = bucket("s3://runs/of/mine", &server.address, SECRET).expect("credentials");
    let (small, large) = (bytes(1000), bytes(20 << 20));
    put(&bucket, "run/a/1.1", &small).await.expect("it is stored");
    put(&bucket, "run/a/2.1", &large).await.expect("it is stored");
    put(&bucket, "run-2/a", &[]).await.expect("it is stored");
    let mut found = bucket.list_objects("run".to_owned()).await.expect("a list");
    found.sort();
    assert_eq!(found, [("run/a/1.1".to_owned(), 1000), ("run/a/2.1".to_owned(), 20 << 20)]);
    assert_eq!(get(&bucket, "run/a/1.1").await.expect("it is there"), small.concat());
    assert!(get(&bucket, "run/a/2.1").await.expect("it is there") == large.concat());
    assert!(folder.path().join("runs/of/mine/run/a/2.1").is_file());
    // The newer takes the place of the older.
    put(&bucket, "run/a/1.1", &bytes(8)).await.expect("it is stored");
    assert_eq!(get(&bucket, "run/a/1.1").await.expect("it is there").len(), 8);
    bucket.remove("run/a/1.1".to_owned()).await.expect("it goes");
    bucket.remove("run/a/1.1".to_owned()).await.expect("it has gone");
    let absent = get(&bucket, "run/a/1.1").await.expect_err("it has gone");
    assert!(matches!(absent, ObjectError::Absent(_)), "{absent:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_is_given_up_is_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("runs")).expect("room");
    let server = Server::start(folder.path()).await;
    let bucket = bucket("s3://runs", &server.address, SECRET).expect("credentials");
    for count in [1000, 20 << 20] {
        let mut upload = bucket.begin_upload("run/a".to_owned());
        for part in bytes(count) {
            upload.write(part).await.expect("it is taken");
        }
        drop(upload);
    }
    assert_eq!(bucket.list_objects("run".to_owned()).await.expect("a list"), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_said_in_one_line_with_the_place_and_the_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("runs")).expect("room");
    let server = Server::start(folder.path()).await;
    let at = &*server.address;
    let said = |error: ObjectError| {
        let said = error.to_string();
        assert!(
            said.starts_with("s3://runs at http://127.0.0.1:") && !said.contains('\n'),
            "{said}"
        );
        assert!(!said.contains(SECRET), "{said}");
        (error, said)
    };
    let wrong = bucket("s3://runs", at, "another").expect("credentials");
    let (error, why) = said(wrong.list_objects("run".to_owned()).await.expect_err("it is refused"));
    assert!(matches!(error, ObjectError::Refused(_)), "{why}");
    assert!(
        why.contains("SignatureDoesNotMatch") && why.contains("AWS_SECRET_ACCESS_KEY"),
        "{why}"
    );
    let (error, why) = said(put(&wrong, "run/a", &bytes(8)).await.expect_err("it is refused"));
    assert!(matches!(error, ObjectError::Refused(_)), "{why}");

    // A list tells so by the protocol; this server makes a bucket for an object that is stored in none.
    let none = bucket("s3://runs-2", at, SECRET).expect("credentials");
    let error = none.list_objects("run".to_owned()).await.expect_err("it is not there");
    let why = error.to_string();
    assert!(matches!(error, ObjectError::Refused(_)), "{why}");
    assert!(why.starts_with("s3://runs-2 at") && why.contains("NoSuchBucket"), "{why}");
    assert!(why.contains("make the bucket") && !why.contains('\n'), "{why}");

    let store = store("s3://runs", at);
    let missing = Bucket::open_in(&store, &|_| None).expect_err("nobody has said who").to_string();
    assert!(missing.starts_with("s3://runs: AWS_ACCESS_KEY_ID is not set"), "{missing}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_goes_away_in_the_middle_is_given_up_after_its_time() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("runs")).expect("room");
    let server = Server::start(folder.path()).await;
    let bucket = bucket("s3://runs", &server.address, SECRET).expect("credentials");
    put(&bucket, "run/whole", &bytes(1000)).await.expect("it is stored");
    let mut upload = bucket.begin_upload("run/half".to_owned());
    let parts = bytes(20 << 20);
    for part in &parts[..parts.len() / 2] {
        upload.write(part.clone()).await.expect("it is taken");
    }
    server.stop().await;
    let began = Instant::now();
    let rest = async {
        for part in &parts[parts.len() / 2..] {
            upload.write(part.clone()).await?;
        }
        upload.finish_upload().await
    };
    let error = rest.await.expect_err("nobody is there");
    assert!(matches!(error, ObjectError::Unreachable(_)), "{error:?}");
    assert!(error.to_string().contains("check that the server is running"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    drop(upload);
    // It comes back, elsewhere: what was whole is there, what was not is not.
    let server = Server::start(folder.path()).await;
    let bucket = self::bucket("s3://runs", &server.address, SECRET).expect("credentials");
    let found = bucket.list_objects("run".to_owned()).await.expect("a list");
    assert_eq!(found, [("run/whole".to_owned(), 1000)]);
}
