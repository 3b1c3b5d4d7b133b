//! Tests of which peers trust each other over TLS.
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio_rustls::TlsAcceptor;

use crate::{
    Authority, AuthorityFingerprint, Credential, WorkerKey, WorkerLife, client_config, dial,
    is_impostor, server_config,
};

fn life() -> WorkerLife {
    WorkerLife { run: "r".into(), worker: "w".into(), incarnation: 7 }
}

fn credential(authority: &Authority) -> Credential {
    let key = WorkerKey::generate().unwrap();
    let certificate = authority.certify(&life(), None, u64::MAX, &key.public()).unwrap();
    key.certified(certificate, authority.fingerprint())
}

/// Connects a client to a server, sends a message if the client trusts the server, and returns both sides' results.
async fn meet(
    server: Arc<ServerConfig>,
    pin: AuthorityFingerprint,
    credential: Option<&Credential>,
) -> (io::Result<()>, io::Result<(Option<WorkerLife>, Vec<u8>)>) {
    let (near, far) = duplex(1 << 16);
    let config = client_config(pin, credential).unwrap();
    let dialling = async move {
        let mut stream = dial(config, near).await?;
        stream.write_all(b"the token").await?;
        stream.shutdown().await?;
        stream.read_to_end(&mut Vec::new()).await?;
        Ok(())
    };
    let listening = async move {
        let mut stream = TlsAcceptor::from(server).accept(far).await?;
        let certificates = stream.get_ref().1.peer_certificates();
        let life = certificates.and_then(|all| WorkerLife::of_certificate(all.first()?));
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).await?;
        stream.shutdown().await?;
        Ok((life, heard))
    };
    tokio::join!(dialling, listening)
}

#[tokio::test]
async fn either_side_proves_itself_by_the_one_authority() {
    let authority = Authority::generate().unwrap();
    let (pin, server) = (authority.fingerprint(), server_config(&authority).unwrap());
    let (said, heard) = meet(Arc::clone(&server), pin, None).await;
    said.unwrap();
    assert_eq!(heard.unwrap(), (None, b"the token".to_vec()));
    let (said, heard) = meet(server, pin, Some(&credential(&authority))).await;
    said.unwrap();
    assert_eq!(heard.unwrap(), (Some(life()), b"the token".to_vec()));
}

#[tokio::test]
async fn an_impostor_is_told_nothing() {
    let (ours, other) = (Authority::generate().unwrap(), Authority::generate().unwrap());
    let (said, heard) = meet(server_config(&other).unwrap(), ours.fingerprint(), None).await;
    let no = said.unwrap_err();
    assert!(is_impostor(&no), "{no}");
    heard.unwrap_err();
    assert!(!is_impostor(&io::Error::other("another")));
}

#[tokio::test]
async fn a_certificate_of_another_authority_opens_nothing() {
    let (ours, other) = (Authority::generate().unwrap(), Authority::generate().unwrap());
    let stranger = credential(&other);
    let (said, heard) =
        meet(server_config(&ours).unwrap(), ours.fingerprint(), Some(&stranger)).await;
    said.unwrap_err();
    heard.unwrap_err();
}

/// The state that an authority keeps is the same after it is read back, and a worker's certificate is for a
/// worker alone.
#[tokio::test]
async fn an_authority_that_is_read_back_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("identity");
    assert!(Authority::load(&kept).unwrap().is_none());
    let made = Authority::generate().unwrap();
    made.save(&kept).unwrap();
    let read = Authority::load(&kept).unwrap().unwrap();
    assert_eq!(read.fingerprint(), made.fingerprint());
    let file = folder.path().join("credential");
    credential(&made).save(&file).unwrap();
    let credential = Credential::load(&file, read.fingerprint()).unwrap();
    assert!(Credential::load(&file, AuthorityFingerprint::from_certificate(b"another")).is_none());
    let (said, heard) =
        meet(server_config(&read).unwrap(), made.fingerprint(), Some(&credential)).await;
    said.unwrap();
    assert_eq!(heard.unwrap().0, Some(life()));
    std::fs::write(kept.join("authority.key"), "nonsense").unwrap();
    let no = Authority::load(&kept).unwrap_err().to_string();
    assert!(no.contains("authority.key"), "{no}");
}
