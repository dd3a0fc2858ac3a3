//! A record that was changed behind our back (J12), and etcd's history.

use leasehold_journal::{Claim, Journal, OpenError, Outcome, ReadError};
use leasehold_testbed::{Server, etcd};
use leasehold_types::Slot;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::kit::{Node, claim, journal, journal_of, read_all, url};

/// Asks etcd by its JSON gateway, as an operator could.
pub(crate) async fn ask(server: &Server, path: &str, body: &str) -> String {
    let host = server.url().trim_start_matches("http://");
    let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
    let length = body.len();
    let request = format!("POST {path} HTTP/1.0\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("200 OK"), "{answer}");
    answer
}

pub(crate) fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |bytes: &[u8]| {
        let bits =
            bytes.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - bytes.len()));
        let digit = |place: usize| {
            let value = bits >> (18 - 6 * place) & 63;
            if place > bytes.len() { '=' } else { char::from(DIGITS[value as usize]) }
        };
        (0..4).map(digit).collect::<String>()
    };
    text.as_bytes().chunks(3).map(group).collect()
}

async fn put(server: &Server, key: &str, value: &str) {
    ask(server, "/v3/kv/put", &format!(r#"{{"key":"{}","value":"{}"}}"#, base64(key), base64(value))).await;
}

#[tokio::test]
async fn a_damaged_slot_is_named_and_cut_only_by_recover() {
    let server = etcd();
    let journal = journal(&server);
    let mut node = Node::open(&journal).await;
    for body in ["one", "two", "three"] {
        node.commit(body).await;
    }
    put(&server, "/leasehold/main/slots/0000000000000002", &"forged".repeat(20)).await;
    assert_eq!(read_all(node.opened.reader.as_mut()).await.len(), 1);
    let read = node.opened.reader.slots(Slot(2)).await;
    assert!(matches!(&read, Err(ReadError::Corrupt { place, .. }) if place == "slot 2"), "{read:?}");

    let recovered = journal.open(Claim { accept_loss: true, ..claim() }).await.unwrap();
    assert_eq!(recovered.tail.slot, Slot(1));
    assert!(recovered.loss.as_deref().is_some_and(|loss| loss.starts_with("slots 2 to 3")), "{recovered:?}");
    let early = journal.open(claim()).await;
    assert!(matches!(early, Err(OpenError::Regressed(_))), "{early:?}");
    let mut node = Node { tail: recovered.tail, opened: recovered };
    node.commit("recovered").await;
    Node::open(&journal).await.commit("goes on").await;
}

#[tokio::test]
async fn a_missing_last_slot_is_refused() {
    let server = etcd();
    let journal = journal(&server);
    let mut node = Node::open(&journal).await;
    node.commit("one").await;
    node.commit("two").await;
    let key = base64("/leasehold/main/slots/0000000000000002");
    ask(&server, "/v3/kv/deleterange", &format!(r#"{{"key":"{key}"}}"#)).await;
    let opened = journal.open(claim()).await;
    assert!(matches!(&opened, Err(OpenError::Corrupt { place, .. }) if place == "slot 2"), "{opened:?}");
}

#[tokio::test]
async fn history_is_compacted_when_asked_for() {
    let server = etcd();
    for (query, compacted) in [("", false), ("?compact=on", true)] {
        let mut node = Node::open(&journal_of(&format!("{}{query}", url(&server)), "main")).await;
        node.commit("one").await;
        node.opened.snapshots.begin(node.tail).await.unwrap();
        assert_eq!(node.opened.snapshots.install(Slot(9)).await, Outcome::Committed);
        let host = server.url().trim_start_matches("http://");
        let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
        let body = format!(r#"{{"key":"{}","revision":"2"}}"#, base64("/leasehold/main/epoch"));
        let request = format!(
            "POST /v3/kv/range HTTP/1.0\r\nHost: {host}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer.contains("has been compacted"), compacted, "{answer}");
    }
}

#[tokio::test]
async fn a_newer_format_is_left_alone() {
    let server = etcd();
    let journal = journal(&server);
    Node::open(&journal).await;
    put(&server, "/leasehold/main/identity", "\0\0\0\u{2}\u{2}0123456789abcdef").await;
    let opened = journal.open(claim()).await;
    assert!(matches!(opened, Err(OpenError::TooNew(_))), "{opened:?}");
}
