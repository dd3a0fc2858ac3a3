//! TLS to an engine: only to the one whose certificate is trusted, and as whom it asks for.

use super::small_node::{SmallNode, fresh_claim};
use crate::{Journal, OpenError};

/// How the tests of an engine make journals on one that speaks TLS.
pub struct OverTls<J, U: Fn(&str, &str) -> String> {
    /// The engine's URL under this name, with these parameters.
    pub url: U,
    /// A journal that waits for a slow engine.
    pub patient: fn(&str) -> J,
    /// A journal that gives up as soon as that of a node does.
    pub hasty: fn(&str) -> J,
}

impl<J: Journal, U: Fn(&str, &str) -> String> OverTls<J, U> {
    /// An engine whose certificate, in the file `ours`, is for `localhost`, serves whoever trusts it; nobody takes it for
    /// one with the certificate in `other`, nor under another name, nor at `plain`, without TLS.
    ///
    /// # Panics
    /// When it does not, or somebody does.
    pub async fn only_a_trusted_engine_is_used(&self, ours: &str, other: &str, plain: &str) {
        let trusting = |host, ca| (self.url)(host, &format!("tls_ca={ca}"));
        self.works(&trusting("localhost", ours)).await;
        self.is_mistrusted("an unknown authority", &trusting("localhost", other)).await;
        self.is_mistrusted("another name", &trusting("127.0.0.1", ours)).await;
        self.is_refused("no TLS at all", plain).await;
    }

    /// An engine with the certificate in `ours` that asks who we are serves whoever shows the certificate and key in
    /// `known`; neither that of a stranger, nor none.
    ///
    /// # Panics
    /// When it does not, or serves another.
    pub async fn an_engine_that_asks_who_we_are_is_told(
        &self,
        ours: &str,
        known: &[String; 2],
        stranger: &[String; 2],
    ) {
        let showing = |[certificate, key]: &[String; 2]| {
            let query = format!("tls_ca={ours}&tls_cert={certificate}&tls_key={key}");
            (self.url)("localhost", &query)
        };
        self.works(&showing(known)).await;
        self.is_refused("a stranger", &showing(stranger)).await;
        self.is_refused("nobody", &(self.url)("localhost", &format!("tls_ca={ours}"))).await;
    }

    async fn works(&self, url: &str) {
        let mut node = SmallNode::open(&(self.patient)(url)).await;
        node.commit("encrypted").await;
        node.commit("again").await;
    }

    async fn is_mistrusted(&self, what: &str, url: &str) {
        let opened = (self.hasty)(url).open(fresh_claim()).await;
        assert!(matches!(opened, Err(OpenError::Refused(_))), "{what}: {opened:?}");
    }

    /// Some engines say why they end a connection, some just end it.
    async fn is_refused(&self, what: &str, url: &str) {
        let opened = (self.hasty)(url).open(fresh_claim()).await;
        let is_refused = matches!(opened, Err(OpenError::Unavailable(_) | OpenError::Refused(_)));
        assert!(is_refused, "{what}: {opened:?}");
    }
}
