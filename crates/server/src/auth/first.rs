//! The first credential of a protected server: somebody has to be able to create the others.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use leasehold_core::{AddCredential, Command, Credential, Operator, Proof, Reply};
use leasehold_node::{Call, Clock, Handle, Role as NodeRole};
use leasehold_types::{PrincipalName, Role, TenantName, WallTime};
use tracing::{error, info};

use super::bearer::Bearer;

/// The file in the data directory; only its owner may read it.
const FILE: &str = "admin-credential";

/// Creates an admin's credential if this node is active and there is none that is accepted, and writes it to a file that
/// only the server's user can read. It is never logged.
pub(crate) async fn make_first(handle: &Handle, clock: &dyn Clock, data: &Path, is_shared: bool) {
    if handle.status().role != NodeRole::Active || has_admin(handle, clock.read().wall) {
        return;
    }
    match make(handle, data, is_shared).await {
        Ok(path) => info!(
            event = "first_credential",
            path = %path.display(),
            "there was no admin: the credential of one is in {}",
            path.display()
        ),
        Err(why) => error!(event = "first_credential", %why, "there is no admin, and none could be made"),
    }
}

fn has_admin(handle: &Handle, now: WallTime) -> bool {
    let is_accepted = |credential: &Credential| credential.expires_at.is_none_or(|at| now < at);
    let credentials = handle.credentials();
    let mut admins = credentials.iter().filter(|credential| credential.role == Role::Admin);
    admins.any(is_accepted)
}

async fn make(handle: &Handle, data: &Path, is_shared: bool) -> Result<PathBuf, String> {
    let operator =
        || Operator { actor: "leasehold".into(), reason: "first start of a protected server".into() };
    // Alone on its journal a node knows that no older one is alive (N10).
    if !is_shared && handle.status().format < 2 {
        handle.raise_format(operator(), None).await.map_err(|error| error.to_string())?;
    }
    let bearer = Bearer::new(Bearer::new_id());
    let credential = Credential {
        id: bearer.id(),
        principal: PrincipalName::new("admin").expect("a lawful name"),
        tenant: TenantName::default_tenant(),
        role: Role::Admin,
        scopes: Vec::new(),
        proof: Proof::Secret(bearer.hash()),
        created_at: WallTime(0),
        expires_at: None,
    };
    // Written first: a secret that nobody can read would be an admin that nobody is.
    let path = write(data, &bearer).map_err(|error| format!("{}: {error}", data.join(FILE).display()))?;
    let command =
        Command::AddCredential(AddCredential { credential: Box::new(credential), operator: operator() });
    let call = Call { tenant: TenantName::default_tenant(), identity: None, key: None, command };
    match handle.submit(call).await.map(leasehold_node::Durable::into_inner) {
        Ok(Reply::CredentialAdded { .. }) => Ok(path),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) => Err(error.to_string()),
    }
}

fn write(data: &Path, bearer: &Bearer) -> io::Result<PathBuf> {
    let path = data.join(FILE);
    let new = data.join(format!("{FILE}.new"));
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    writeln!(file, "{}", bearer.reveal())?;
    file.sync_all()?;
    std::fs::rename(&new, &path)?;
    File::open(data)?.sync_all()?;
    Ok(path)
}
