//! `drill`, as meant.

use std::time::Duration;

use leasehold_types::{ResourceName, Ttl, TtlBounds};

use super::args::DrillArgs;
use super::crew::Environment;
use super::own::{Own, Zombie};
use super::protected::{Address, Place};
use super::story::Lag;
use crate::args::AccessArgs;
use crate::client::{Server, Servers};
use crate::duration::ms;
use crate::failure::Failure;
use crate::plan::resource_name;

/// Where `--fence` is found when it is not typed: an address may have a password in it.
const FENCE: &str = "LEASEHOLD_DRILL_FENCE";

/// What is drilled.
pub(crate) struct DrillPlan {
    /// `None`: a server of its own.
    pub(super) servers: Option<Servers>,
    /// How workers prove there who they are.
    pub(super) access: Environment,
    pub(super) ttl: Duration,
    pub(super) lag: Lag,
    pub(super) place: Place,
    /// Where the outcome is noted.
    pub(super) rollout: Option<String>,
    /// With a program of the user's own.
    pub(super) own: Option<Own>,
    /// The file of the drill's own, when nothing else was named.
    pub(super) scratch: Option<tempfile::TempDir>,
}

impl DrillPlan {
    /// Reads what was typed; `servers` are those that were named.
    ///
    /// # Errors
    /// [`Failure::Usage`], naming the argument.
    pub(crate) fn new(
        args: &DrillArgs,
        servers: Option<Servers>,
        access: &AccessArgs,
    ) -> Result<Self, Failure> {
        let named = args.fence.clone().or_else(|| std::env::var(FENCE).ok()).filter(|text| !text.is_empty());
        let own = own(args)?;
        let (address, scratch) = match named {
            _ if own.is_some() => (Address::Program, None),
            Some(text) => (Address::parse(&text)?, None),
            None => own_file().map(|(address, file)| (address, Some(file)))?,
        };
        ttl(args, servers.is_none())?;
        let id = fresh_id();
        let resource = resource(args, &address, &id)?;
        if servers.is_none() && args.table.is_some() {
            let why =
                "--table needs --server: the fence of your own table has seen tokens of your own server";
            return Err(Failure::Usage(why.into()));
        }
        if servers.is_none() && args.pid.is_some() {
            return Err(Failure::Usage(
                "--pid needs --server: the one that your program holds its lock at".into(),
            ));
        }
        let encrypted = servers.as_ref().is_some_and(|servers| servers.iter().any(Server::is_secure));
        if args.delay_write && encrypted {
            let why =
                "--delay-write: renewals to an https:// server are encrypted and cannot be held on their way";
            return Err(Failure::Usage(why.into()));
        }
        if args.delay_write && !address.can_be_held() {
            let why = "--delay-write: a write to that address is encrypted and cannot be held on its way";
            return Err(Failure::Usage(why.into()));
        }
        let place = Place {
            address,
            resource,
            table: args.table.clone(),
            statement: args.write.clone(),
            id,
            fenced: !args.without_fence,
            relay: None,
        };
        let lag = if args.delay_write { Lag::Delayed } else { Lag::Paused };
        Ok(Self {
            servers,
            access: environment(access),
            ttl: args.ttl,
            lag,
            place,
            rollout: args.rollout.clone(),
            own,
            scratch,
        })
    }
}

/// Whether leases can live so long: on a server of the drill's own between the usual bounds, on another as it says itself.
fn ttl(args: &DrillArgs, is_own_server: bool) -> Result<(), Failure> {
    let ttl_ms = ms(args.ttl);
    if ttl_ms == 0 && !is_own_server {
        return Err(Failure::Usage("--ttl: a lease must live for some time".into()));
    }
    if is_own_server {
        Ttl::new(ttl_ms, TtlBounds::default())
            .map_err(|invalid| Failure::Usage(format!("--ttl: {invalid}")))?;
    }
    Ok(())
}

/// As a worker looks for them.
fn environment(args: &AccessArgs) -> Environment {
    let named = [
        ("LEASEHOLD_CREDENTIAL_FILE", &args.credential_file),
        ("LEASEHOLD_CA", &args.ca),
        ("LEASEHOLD_CERT", &args.cert),
        ("LEASEHOLD_KEY", &args.key),
    ];
    named.into_iter().filter_map(|(name, path)| Some((name, path.clone()?))).collect()
}

fn own(args: &DrillArgs) -> Result<Option<Own>, Failure> {
    let needs = |what: &str| Failure::Usage(format!("--pid needs {what}"));
    let zombie = match (args.pid, args.worker.clone()) {
        (None, None) => return Ok(None),
        (None, Some(line)) => Zombie::Started(line),
        (Some(pid), worker) => {
            let successor = worker.ok_or_else(|| needs("--worker: the program that takes over"))?;
            if args.check.is_none() {
                return Err(needs("--check: nobody else can tell what the program wrote"));
            }
            Zombie::Running { pid, successor, settle: args.settle }
        }
    };
    Ok(Some(Own { zombie, check: args.check.clone() }))
}

fn resource(args: &DrillArgs, address: &Address, id: &str) -> Result<ResourceName, Failure> {
    if args.table.is_some() && !address.has_tables() {
        return Err(Failure::Usage("--table goes with PostgreSQL, MariaDB, MySQL and SQLite".into()));
    }
    match (&args.resource, &args.table) {
        (Some(named), _) => resource_name(named),
        (None, Some(table)) => resource_name(table),
        (None, None) => resource_name(&format!("drill/{id}")),
    }
}

fn own_file() -> Result<(Address, tempfile::TempDir), Failure> {
    let io = |error| Failure::Io { what: "cannot make a temporary directory".into(), error };
    let directory = tempfile::Builder::new().prefix("leasehold-drill-").tempdir().map_err(io)?;
    let path = directory.path().join("drill.db").to_string_lossy().into_owned();
    Ok((Address::Sqlite(path), directory))
}

/// Eight letters and digits that no other drill has.
fn fresh_id() -> String {
    leasehold_types::ids::random()[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}
