//! How a client proves who it is, and makes sure whom it speaks to.

use std::path::PathBuf;
use std::{fmt, io};

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};
use tonic::{Request, Status};

/// TLS and credential of a client. Files are read again for every new connection, so that rotated certificates and
/// credentials are taken up without a restart.
///
/// With an `https://` endpoint the server's certificate must be signed by an authority that this machine trusts, or by the
/// one given here. With `http://` a credential travels in the clear: for servers on the same machine.
#[derive(Clone, Debug, Default)]
pub struct Security {
    ca: Option<Source>,
    identity: Option<(Source, Source)>,
    credential: Option<Source>,
}

/// A secret or certificate, or where it lies.
#[derive(Clone)]
enum Source {
    Text(String),
    File(PathBuf),
}

/// A certificate or credential cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {error}", path.display())]
pub struct Unreadable {
    path: PathBuf,
    error: io::Error,
}

impl Security {
    /// The authorities that this machine trusts, and no credential.
    pub fn new() -> Self {
        Self::default()
    }

    /// From variables as the environment has them; see [`crate::ClientBuilder::from_env`].
    pub fn from_lookup(given: impl Fn(&str) -> Option<String>) -> Self {
        let mut security = Self::new();
        if let Some(path) = given("LEASEHOLD_CA") {
            security = security.ca_file(path);
        }
        if let (Some(certificate), Some(key)) = (given("LEASEHOLD_CERT"), given("LEASEHOLD_KEY")) {
            security = security.identity_files(certificate, key);
        }
        match (given("LEASEHOLD_CREDENTIAL_FILE"), given("LEASEHOLD_CREDENTIAL")) {
            (Some(path), _) => security.credential_file(path),
            (None, Some(credential)) => security.credential(credential),
            (None, None) => security,
        }
    }

    /// Trusts the certificate authorities in this PEM file, and no others.
    #[must_use]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca = Some(Source::File(path.into()));
        self
    }

    /// The same from text.
    #[must_use]
    pub fn ca_pem(mut self, pem: impl Into<String>) -> Self {
        self.ca = Some(Source::Text(pem.into()));
        self
    }

    /// Shows this certificate to the server (mTLS): two PEM files.
    #[must_use]
    pub fn identity_files(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.identity = Some((Source::File(certificate.into()), Source::File(key.into())));
        self
    }

    /// The same from text.
    #[must_use]
    pub fn identity_pem(mut self, certificate: impl Into<String>, key: impl Into<String>) -> Self {
        self.identity = Some((Source::Text(certificate.into()), Source::Text(key.into())));
        self
    }

    /// Sends this credential with every call.
    #[must_use]
    pub fn credential(mut self, credential: impl Into<String>) -> Self {
        self.credential = Some(Source::Text(credential.into()));
        self
    }

    /// Sends the credential in this file with every call; space around it does not count.
    #[must_use]
    pub fn credential_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.credential = Some(Source::File(path.into()));
        self
    }

    /// The certificate authorities to trust, as PEM; `None`: those of this machine.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_ca(&self) -> Result<Option<String>, Unreadable> {
        self.ca.as_ref().map(Source::read).transpose()
    }

    /// Certificate and key to show, as PEM.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read_identity(&self) -> Result<Option<(String, String)>, Unreadable> {
        let read = |(certificate, key): &(Source, Source)| Ok((certificate.read()?, key.read()?));
        self.identity.as_ref().map(read).transpose()
    }

    /// The credential.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_credential(&self) -> Result<Option<String>, Unreadable> {
        let credential = self.credential.as_ref().map(Source::read).transpose()?;
        Ok(credential.map(|text| text.trim().to_owned()))
    }

    /// For an `https://` endpoint.
    pub(crate) fn tls(&self) -> Result<ClientTlsConfig, Unreadable> {
        let tls = match self.read_ca()? {
            Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
            None => ClientTlsConfig::new().with_native_roots(),
        };
        Ok(match self.read_identity()? {
            Some((certificate, key)) => tls.identity(Identity::from_pem(certificate, key)),
            None => tls,
        })
    }

    /// What puts the credential on every call.
    pub(crate) fn authorize(&self) -> Result<Authorize, String> {
        let Some(credential) = self.read_credential().map_err(|error| error.to_string())? else {
            return Ok(Authorize(None));
        };
        let mut value: MetadataValue<Ascii> = format!("Bearer {credential}")
            .parse()
            .map_err(|_| "the credential has characters that no credential has".to_owned())?;
        value.set_sensitive(true);
        Ok(Authorize(Some(value)))
    }
}

impl Source {
    fn read(&self) -> Result<String, Unreadable> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => {
                std::fs::read_to_string(path).map_err(|error| Unreadable { path: path.clone(), error })
            }
        }
    }
}

impl fmt::Debug for Source {
    /// Never the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("(given)"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Puts the credential on a call.
#[derive(Clone, Debug)]
pub(crate) struct Authorize(Option<MetadataValue<Ascii>>);

impl Interceptor for Authorize {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert("authorization", value.clone());
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown_and_space_around_them_does_not_count() {
        let security = Security::new().credential("  s3cret\n").identity_pem("certificate", "private");
        let shown = format!("{security:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("private"), "{shown}");
        assert_eq!(security.read_credential().expect("text").as_deref(), Some("s3cret"));
        assert!(!format!("{:?}", security.authorize().expect("plain characters")).contains("s3cret"));
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = Security::new().credential_file("no/such/file").read_credential().expect_err("not there");
        assert!(error.to_string().starts_with("cannot read no/such/file: "), "{error}");
    }
}
