//! For what has no network in front of it, such as a file: a process that writes on behalf of others, as an application's
//! server does, so that a write can be held on its way there.

use std::net::SocketAddr;

use async_trait::async_trait;
use leasehold_fence::Grant;
use leasehold_types::{FencingToken, ResourceName};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::protected::{self, Place, Protected, Written, unusable};
use super::worker::{Told, tell};
use crate::failure::Failure;

/// One write, as it travels.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    resource: String,
    token: u64,
    text: String,
}

/// Serves until the process ends. One request at a time: it is one writer.
pub(super) async fn serve(place: &Place) -> Result<(), Failure> {
    let mut protected = protected::open(place).await?;
    let io = |error| Failure::Io { what: "cannot serve writes".into(), error };
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(io)?;
    tell(&Told::Serves { address: listener.local_addr().map_err(io)? })?;
    loop {
        let (mut stream, _) = listener.accept().await.map_err(io)?;
        // Whoever breaks off or talks nonsense is nobody's trouble.
        drop(answer(&mut stream, protected.as_mut()).await);
    }
}

async fn answer(stream: &mut TcpStream, protected: &mut dyn Protected) -> Result<(), Failure> {
    let (from, mut to) = stream.split();
    let line = BufReader::new(from).lines().next_line().await.map_err(unusable("the writer"))?;
    let request: Request = serde_json::from_str(&line.unwrap_or_default()).map_err(unusable("the writer"))?;
    let resource = ResourceName::new(&request.resource).map_err(unusable("the writer"))?;
    let token = FencingToken::new(request.token).map_err(unusable("the writer"))?;
    let written = protected.write(&Grant::exclusive(resource, token), &request.text).await;
    let written = written.map_err(|failure| failure.to_string());
    let mut line = serde_json::to_vec(&written).expect("words and numbers");
    line.push(b'\n');
    to.write_all(&line).await.map_err(unusable("the writer"))
}

/// The same thing, reached through a relay. Workers write; nobody makes, reads or removes through it.
pub(super) struct Remote {
    address: SocketAddr,
}

impl Remote {
    pub(super) fn at(address: SocketAddr) -> Self {
        Self { address }
    }
}

#[async_trait]
impl Protected for Remote {
    async fn make(&mut self) -> Result<(), Failure> {
        unreachable!("the drill makes it where it is")
    }

    async fn write(&mut self, grant: &Grant, text: &str) -> Result<Written, Failure> {
        let broken = || unusable::<std::io::Error>("the writer");
        let mut stream = TcpStream::connect(self.address).await.map_err(broken())?;
        let request = Request {
            resource: grant.resource().to_string(),
            token: grant.token().get(),
            text: text.to_owned(),
        };
        let mut line = serde_json::to_vec(&request).expect("words and numbers");
        line.push(b'\n');
        stream.write_all(&line).await.map_err(broken())?;
        let answer = BufReader::new(stream).lines().next_line().await.map_err(broken())?;
        let written: Result<Written, String> =
            serde_json::from_str(&answer.unwrap_or_default()).map_err(unusable("the writer"))?;
        written.map_err(Failure::Fence)
    }

    async fn read(&mut self) -> Result<Option<String>, Failure> {
        unreachable!("the drill reads it where it is")
    }

    async fn remove(&mut self) -> Result<(), Failure> {
        unreachable!("the drill removes it where it is")
    }
}
