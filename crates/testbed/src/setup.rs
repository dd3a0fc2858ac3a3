//! What a test may ask of an engine.

use crate::certificate::Certificate;

/// How to start an engine: durable and with its defaults, unless told otherwise.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    fsync_off: bool,
    settings: Vec<(String, String)>,
    tls: Option<TlsFiles>,
}

/// The files of a certificate, as engines want them.
#[derive(Debug, Clone)]
pub(crate) struct TlsFiles {
    pub certificate: String,
    pub key: String,
    /// Both in one file.
    pub both: String,
}

impl Setup {
    /// Lets the engine acknowledge before its data is on disk. For tests about something else than durability.
    /// Does nothing on etcd, whose Debian version has no such option.
    #[must_use]
    pub fn without_fsync(mut self) -> Self {
        self.fsync_off = true;
        self
    }

    /// Adds a setting of the engine, in the engine's own words. A later one overrides an earlier one.
    #[must_use]
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Has the engine speak TLS with this certificate, and nothing else, at its address. The certificate must outlive it.
    /// MariaDB is not asked to.
    #[must_use]
    pub fn with_tls(mut self, certificate: &Certificate) -> Self {
        let (file, key, both) = (certificate.file(), certificate.key(), certificate.both());
        self.tls = Some(TlsFiles { certificate: file, key, both });
        self
    }

    pub(crate) fn tls(&self) -> Option<&TlsFiles> {
        self.tls.as_ref()
    }

    pub(crate) fn fsync(&self) -> bool {
        !self.fsync_off
    }

    pub(crate) fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}
