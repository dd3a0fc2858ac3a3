//! One keep-alive connection with the least work for each request.

use std::fmt::Write as _;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::client::{Server, Stream, connect};
use crate::failure::Failure;

const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// A connection and its two buffers.
pub(crate) struct Connection {
    server: String,
    authority: String,
    /// With its line end, where there is one.
    authorization: String,
    stream: Stream,
    request: String,
    answer: Vec<u8>,
}

impl Connection {
    /// Connects.
    pub(crate) async fn open(server: &Server) -> Result<Self, Failure> {
        let stream = connect(server).await?;
        let authorization = match server.authorization()? {
            Some(value) => format!("authorization: {}\r\n", value.to_str().unwrap_or_default()),
            None => String::new(),
        };
        let (request, answer) = (String::with_capacity(512), Vec::with_capacity(4096));
        let (server, authority) = (server.to_string(), server.authority());
        Ok(Self { server, authority, authorization, stream, request, answer })
    }

    /// Sends one request and gives the body of its answer.
    ///
    /// # Errors
    /// The connection broke, or the status is not 200: then with the start of the body.
    pub(crate) async fn call(&mut self, method: &str, path: &str, body: &str) -> Result<&[u8], Failure> {
        self.request.clear();
        write!(self.request, "{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.authority)
            .expect("text takes text");
        self.request.push_str(&self.authorization);
        if !body.is_empty() {
            let length = body.len();
            write!(self.request, "content-type: application/json\r\ncontent-length: {length}\r\n")
                .expect("as above");
        }
        self.request.push_str("\r\n");
        self.request.push_str(body);
        let sent = self.stream.write_all(self.request.as_bytes()).await;
        sent.map_err(|error| self.lost(&error.to_string()))?;
        let (head, length) = self.read_answer().await?;
        let status = &self.answer[..head];
        if !status.starts_with(b"HTTP/1.1 200") {
            let text = String::from_utf8_lossy(&self.answer[head..head + length]).into_owned();
            return Err(Failure::Failed(format!("{method} {path}: {text}")));
        }
        Ok(&self.answer[head..head + length])
    }

    /// Lengths of the head and of the body.
    async fn read_answer(&mut self) -> Result<(usize, usize), Failure> {
        self.answer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.answer).await;
            match read {
                Ok(0) => return Err(self.lost("closed by the server")),
                Ok(_) => {}
                Err(error) => return Err(self.lost(&error.to_string())),
            }
            if let Some((head, length)) = lengths(&self.answer)
                && self.answer.len() >= head + length
            {
                return Ok((head, length));
            }
        }
    }

    fn lost(&self, error: &str) -> Failure {
        Failure::Lost {
            server: self.server.clone(),
            error: error.to_owned(),
            hint: "look at the server's log",
        }
    }
}

/// Lengths of head and body, once the whole head is there.
fn lengths(answer: &[u8]) -> Option<(usize, usize)> {
    let head = answer.windows(4).position(|four| four == END_OF_HEAD)? + END_OF_HEAD.len();
    let lines = answer[..head].split(|&byte| byte == b'\n');
    let length = lines.filter_map(content_length).next().unwrap_or(0);
    Some((head, length))
}

fn content_length(line: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    let (name, value) = line.split_at_checked(NAME.len())?;
    if !name.eq_ignore_ascii_case(NAME) {
        return None;
    }
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_once_its_length_is_there() {
        let answer = b"HTTP/1.1 200 OK\r\ndate: x\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(lengths(answer), Some((answer.len() - 2, 2)));
        assert_eq!(lengths(&answer[..20]), None);
        assert_eq!(lengths(b"HTTP/1.1 204 No Content\r\n\r\n"), Some((27, 0)));
    }
}
