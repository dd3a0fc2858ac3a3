//! A TCP proxy that loses an answer on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Between a node and its engine.
pub(crate) struct Proxy {
    url: String,
    lose: Arc<AtomicBool>,
}

impl Proxy {
    /// A proxy in front of the engine at this endpoint.
    pub(crate) async fn before(endpoint: &str) -> Self {
        let target = endpoint.trim_end_matches('/');
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("zookeeper://{}", listener.local_addr().unwrap());
        let proxy = Self { url, lose: Arc::new(AtomicBool::new(false)) };
        let (target, lose) = (target.to_owned(), Arc::clone(&proxy.lose));
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(&target).await.unwrap();
                tokio::spawn(carry(near, far, Arc::clone(&lose)));
            }
        });
        proxy
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The next answer of the engine is lost, and its connection with it.
    pub(crate) fn lose_next_answer(&self) {
        self.lose.store(true, Ordering::SeqCst);
    }
}

async fn carry(near: TcpStream, far: TcpStream, lose: Arc<AtomicBool>) {
    let ((mut near_in, mut near_out), (mut far_in, mut far_out)) = (near.into_split(), far.into_split());
    let asking = tokio::spawn(async move { tokio::io::copy(&mut near_in, &mut far_out).await });
    let mut bytes = vec![0; 16 << 10];
    while let Ok(len @ 1..) = far_in.read(&mut bytes).await {
        if lose.swap(false, Ordering::SeqCst) || near_out.write_all(&bytes[..len]).await.is_err() {
            break;
        }
    }
    asking.abort();
}
