//! Which servers are meant, and how to prove there who one is.

use leasehold::Security;

use crate::args::AccessArgs;
use crate::client::Servers;
use crate::failure::Failure;

pub(crate) fn servers(named: &[String]) -> Result<Servers, Failure> {
    Servers::new(named, std::env::var("LEASEHOLD_SERVER").ok().filter(|list| !list.is_empty()))
}

/// The servers, and how to prove there who one is: as typed, or else as the environment says.
pub(super) fn access(args: &AccessArgs) -> Result<Servers, Failure> {
    let given = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut security = Security::from_lookup(given);
    if let Some(path) = &args.credential_file {
        security = security.credential_file(path);
    }
    if let Some(path) = &args.ca {
        security = security.ca_file(path);
    }
    if let (Some(certificate), Some(key)) = (&args.cert, &args.key) {
        security = security.identity_files(certificate, key);
    }
    Ok(servers(&args.server)?.with(security))
}

/// Those that were named, if any were.
pub(super) fn named_servers(args: &AccessArgs) -> Result<Option<Servers>, Failure> {
    let environment = std::env::var("LEASEHOLD_SERVER").is_ok_and(|list| !list.is_empty());
    (environment || !args.server.is_empty()).then(|| access(args)).transpose()
}
