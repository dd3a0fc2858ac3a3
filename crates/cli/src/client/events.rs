//! Server-sent events, as far as this service uses them.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::failure::Failure;

/// The server sends a comment at least every few seconds; after this long without a byte it is taken for gone.
const SILENCE: Duration = Duration::from_secs(60);

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ServerEvent {
    /// Where to resume; only journaled events have it.
    pub(crate) id: Option<String>,
    /// Its kind.
    pub(crate) event: String,
    /// Its JSON.
    pub(crate) data: String,
}

/// An open stream of events.
pub(crate) struct Events {
    server: String,
    body: Incoming,
    parser: Parser,
}

impl Events {
    /// Reads the body of a good answer.
    pub(crate) fn new(server: String, body: Incoming) -> Self {
        Self { server, body, parser: Parser::default() }
    }

    /// The next event.
    ///
    /// # Errors
    /// [`Failure::Lost`] when the stream ended: open another one after the last id.
    pub(crate) async fn next(&mut self) -> Result<ServerEvent, Failure> {
        loop {
            if let Some(event) = self.parser.next() {
                return Ok(event);
            }
            let frame = match timeout(SILENCE, self.body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => return Err(self.lost(&error.to_string())),
                Ok(None) => return Err(self.lost("the server closed the stream")),
                Err(_) => return Err(self.lost("nothing came for a minute")),
            };
            if let Some(data) = frame.data_ref() {
                self.parser.push(data);
            }
        }
    }

    fn lost(&self, error: &str) -> Failure {
        let (server, error) = (self.server.clone(), error.to_owned());
        Failure::Lost { server, error, hint: "go on with `leasehold watch --after EVENT_ID`" }
    }
}

/// Turns bytes into events. Bytes may be cut anywhere.
#[derive(Default)]
struct Parser {
    bytes: Vec<u8>,
}

impl Parser {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole event; comments and empty blocks are passed over.
    fn next(&mut self) -> Option<ServerEvent> {
        loop {
            let end = self.bytes.windows(2).position(|pair| pair == b"\n\n")?;
            let block: Vec<u8> = self.bytes.drain(..end + 2).collect();
            let event = read_block(&String::from_utf8_lossy(&block));
            if event != ServerEvent::default() {
                return Some(event);
            }
        }
    }
}

fn read_block(block: &str) -> ServerEvent {
    let mut event = ServerEvent::default();
    for line in block.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => event.id = Some(value.to_owned()),
            "event" => event.event = value.to_owned(),
            "data" => event.data.push_str(value),
            _ => {}
        }
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_wherever_the_bytes_are_cut() {
        let text = ": hello\n\nid: 7.0\nevent: granted\ndata: {\"a\":1}\n\nevent: renewed\ndata: {}\n\n";
        for cut in 0..text.len() {
            let mut parser = Parser::default();
            let mut events = Vec::new();
            for part in [&text[..cut], &text[cut..]] {
                parser.push(part.as_bytes());
                events.extend(std::iter::from_fn(|| parser.next()));
            }
            assert_eq!(events.len(), 2, "cut at {cut}");
            assert_eq!(events[0].id.as_deref(), Some("7.0"));
            assert_eq!((events[1].event.as_str(), events[1].data.as_str()), ("renewed", "{}"));
        }
    }
}
