//! A server with one of the classic mistakes in it, so that drills can be seen to fail (they would prove nothing
//! otherwise). It takes the name of the mistake and then the arguments of `leasehold serve` that drills use.
//!
//! The mistakes sit in a journal around the real one: the node is the real node.
#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod mistake;

use leasehold_server::logs::LogSink;
use leasehold_server::{Components, RawConfig, RawJournal, Server};

use mistake::{Mistake, NaiveJournal};

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let mistake = Mistake::named(&args.next().expect("the first argument is the mistake"));
    let mut raw = RawConfig::from_env(|name| std::env::var(name).ok()).unwrap();
    while let (Some(name), Some(value)) = (args.next(), args.next()) {
        match name.as_str() {
            "--listen" => raw.listen = Some(value),
            "--data" => raw.data = Some(value.into()),
            "--journal" => raw.journal = Some(RawJournal::from_url(&value).unwrap()),
            other => panic!("{other} is not for this program"),
        }
    }
    let config = raw.resolve().unwrap();
    let mut components = Components::new(&config, LogSink::none());
    components.journal = NaiveJournal::around(components.journal, mistake);
    let mut server = Server::start(config, components).await.unwrap();
    panic!("the node stopped by itself: {}", server.stopped().await);
}
