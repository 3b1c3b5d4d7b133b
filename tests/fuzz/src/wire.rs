//! Messages between a coordinator, its workers and its clients.

use dormouse_coordinator::untrusted as coordinator;
use dormouse_model::Report;
use dormouse_proto::{Carrier, unpack, v1};
use dormouse_worker::agent::untrusted as worker;
use prost::Message;

/// Decodes a message of a worker's session. A message that decodes is the same after it is encoded again, and what is
/// logged of it reads back unchanged.
pub(crate) fn worker_message(bytes: &[u8]) {
    let Some(message) = decoded::<v1::FromWorker>(bytes) else { return };
    for report in coordinator::worker_message(message).unwrap_or_default() {
        let line = serde_json::to_string(&report).expect("a report is a value of JSON");
        assert_eq!(serde_json::from_str::<Report>(&line).ok(), Some(report), "{line}");
    }
}

/// Decodes a message of a coordinator's session.
pub(crate) fn coordinator_message(bytes: &[u8]) {
    let Some(message) = decoded::<v1::ToWorker>(bytes) else { return };
    let _ = worker::coordinator_message(message);
}

/// Decodes a request of an observer or a submitter, or a message of a transfer: the first byte chooses the type.
pub(crate) fn client_request(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind {
        b's' => {
            let Some(request) = decoded::<v1::SubmitRequest>(bytes) else { return };
            let processes = request.processes;
            if let Ok(job) = coordinator::read_submission(request) {
                assert!(job.processes == processes && processes > 0);
            }
        }
        b'i' => {
            let Some(request) = decoded::<v1::InterruptRequest>(bytes) else { return };
            let _ = coordinator::check_interruption(request);
        }
        b'c' => {
            let Some(contents) = decoded::<v1::Contents>(bytes) else { return };
            let _ = coordinator::content_digests(&contents);
        }
        b'e' => drop(decoded::<v1::EventsRequest>(bytes)),
        b'j' => drop(decoded::<v1::JoinRequest>(bytes)),
        b'p' => unpacked(decoded::<v1::CheckpointChunk>(bytes)),
        b'q' => unpacked(decoded::<v1::ContentChunk>(bytes)),
        _ => {}
    }
}

/// A chunk unpacks to the number of bytes that it announces, or is refused.
fn unpacked(chunk: Option<impl Carrier>) {
    let Some(mut chunk) = chunk else { return };
    let said = *chunk.carried().1 as usize;
    if let Ok(data) = unpack(&mut chunk) {
        assert!(said == 0 || said == data.len());
    }
}

fn decoded<M: Message + Default + PartialEq>(bytes: &[u8]) -> Option<M> {
    let message = M::decode(bytes).ok()?;
    let again = M::decode(&*message.encode_to_vec());
    assert!(again.is_ok_and(|again| again == message), "it is encoded as it was decoded");
    Some(message)
}
