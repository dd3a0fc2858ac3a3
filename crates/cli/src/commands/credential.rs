//! `credential create`, `credential list`, `credential revoke`: who the callers of a protected server are.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use leasehold_api::{
    CreateCredentialAnswer, CreateCredentialRequest, CredentialRecord, CredentialsPage,
    RevokeCredentialAnswer,
};
use leasehold_types::{CredentialId, PrincipalName, Role, Scope, TenantName};
use serde::Serialize;

use crate::client::{Call, Client, with_query};
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out, or_dash};

#[derive(Subcommand, Debug)]
pub(crate) enum CredentialCommand {
    /// Let somebody in; the secret is shown once
    Create(Box<CreateArgs>),
    /// Who is let in, of every tenant
    #[command(visible_alias = "ls")]
    List,
    /// Let somebody in no more, at once
    Revoke(RevokeArgs),
}

#[derive(Args, Debug)]
pub(crate) struct CreateArgs {
    /// Whom it stands for; leases belong to the principal, whichever of its credentials it shows
    #[arg(value_name = "PRINCIPAL", value_parser = PrincipalName::new)]
    principal: PrincipalName,
    /// What it may do: client, observer, operator, admin
    #[arg(long, value_parser = role)]
    role: Role,
    /// Whose names it is about [default: your own tenant]
    #[arg(long, value_parser = TenantName::new)]
    tenant: Option<TenantName>,
    /// With which names, such as `orders/` or `acquire,read:orders/`; may be repeated [default: all of the tenant]
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<Scope>,
    /// For how long it is accepted, such as 720h [default: until it is revoked]
    #[arg(long, value_name = "DUR", value_parser = duration::parse)]
    expires_in: Option<Duration>,
    /// No secret, but a client certificate with this alternative name
    #[arg(long, value_name = "NAME", conflicts_with = "out")]
    san: Option<String>,
    /// Write the secret to this new file, which only you can read, instead of showing it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    why: WhyArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RevokeArgs {
    /// Which, as `credential list` shows it
    #[arg(value_name = "ID")]
    id: CredentialId,
    #[command(flatten)]
    why: WhyArgs,
}

/// For the audit log, which has the caller's name in any case.
#[derive(Args, Debug)]
struct WhyArgs {
    /// Who does it [default: the principal of your credential]
    #[arg(long)]
    actor: Option<String>,
    /// Why
    #[arg(long)]
    reason: Option<String>,
}

fn role(text: &str) -> Result<Role, String> {
    Role::parse(text).ok_or_else(|| "is none of client, observer, operator, admin".to_owned())
}

/// Does what was asked.
pub(crate) async fn credential(
    client: &Client,
    out: &mut Out,
    command: CredentialCommand,
) -> Result<Exit, Failure> {
    match command {
        CredentialCommand::Create(args) => create(client, out, *args).await,
        CredentialCommand::List => list(client, out).await,
        CredentialCommand::Revoke(args) => revoke(client, out, args).await,
    }
}

async fn create(client: &Client, out: &mut Out, args: CreateArgs) -> Result<Exit, Failure> {
    // Before anything is created: a secret that cannot be kept would be lost.
    let mut kept = args.out.as_deref().map(private_file).transpose()?;
    let request = CreateCredentialRequest {
        principal: args.principal,
        tenant: args.tenant,
        role: args.role,
        scopes: args.scopes,
        san: args.san,
        expires_in_seconds: args.expires_in.map(|length| length.as_secs()),
        actor_id: args.why.actor,
        reason: args.why.reason,
    };
    let answer = client
        .call(&Call::post(
            "/v1/credentials",
            &request,
            "look with `leasehold credential list`, and revoke it",
        ))
        .await?;
    let mut created: CreateCredentialAnswer = answer.read()?;
    if let (Some((path, file)), Some(secret)) = (&mut kept, &created.secret) {
        let failed = |error| Failure::Io { what: format!("cannot write {}", path.display()), error };
        writeln!(file, "{secret}").and_then(|()| file.sync_all()).map_err(failed)?;
        created.secret = None;
    }
    if out.format() == Format::Json {
        out.json(&created)?;
        return Ok(Exit::Done);
    }
    let credential = &created.credential;
    out.line(&format!(
        "created {} for {}, {}",
        credential.credential_id, credential.principal, credential.role
    ))?;
    match (&created.secret, &kept) {
        (Some(secret), _) => {
            out.line(secret)?;
            out.line("this is shown once; whoever has it is let in")?;
        }
        (None, Some((path, _))) => out.line(&format!("its secret is in {}", path.display()))?,
        (None, None) => out.line("it is shown by a client certificate")?,
    }
    Ok(Exit::Done)
}

fn private_file(path: &Path) -> Result<(PathBuf, std::fs::File), Failure> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let failed = |error| Failure::Io { what: format!("cannot make {}", path.display()), error };
    Ok((path.to_owned(), opened.map_err(failed)?))
}

/// All pages together.
#[derive(Serialize)]
struct Credentials {
    credentials: Vec<CredentialRecord>,
}

async fn list(client: &Client, out: &mut Out) -> Result<Exit, Failure> {
    let mut credentials = Vec::new();
    let mut cursor = None;
    loop {
        let path = with_query("/v1/credentials", &[("cursor", cursor)]);
        let page: CredentialsPage = client.call(&Call::get(path)).await?.read()?;
        credentials.extend(page.credentials);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    match out.format() {
        Format::Json => out.json(&Credentials { credentials })?,
        Format::Table => {
            let rows: Vec<_> = credentials.iter().map(row).collect();
            out.table(&["ID", "PRINCIPAL", "TENANT", "ROLE", "SCOPES", "CERTIFICATE", "EXPIRES"], &rows)?;
        }
    }
    Ok(Exit::Done)
}

fn row(credential: &CredentialRecord) -> Vec<String> {
    let scopes: Vec<String> = credential.scopes.iter().map(Scope::to_string).collect();
    vec![
        credential.credential_id.to_string(),
        credential.principal.to_string(),
        credential.tenant.to_string(),
        credential.role.to_string(),
        or_dash(Some(scopes.join(" ")).filter(|scopes| !scopes.is_empty())),
        or_dash(credential.san.as_deref()),
        or_dash(credential.expires_at.map(|at| at.to_string())),
    ]
}

async fn revoke(client: &Client, out: &mut Out, args: RevokeArgs) -> Result<Exit, Failure> {
    let path = with_query(
        &format!("/v1/credentials/{}", args.id),
        &[("actorId", args.why.actor), ("reason", args.why.reason)],
    );
    let answer = client.call(&Call::delete(path, "revoke it again; twice does no harm")).await?;
    if out.format() == Format::Json {
        out.line(&answer.text)?;
        return Ok(Exit::Done);
    }
    let revoked: RevokeCredentialAnswer = answer.read()?;
    out.line(&format!("revoked {} of {}", revoked.credential.credential_id, revoked.credential.principal))?;
    Ok(Exit::Done)
}
