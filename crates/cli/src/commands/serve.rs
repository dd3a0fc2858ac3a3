//! `serve`.

use leasehold_server::{Config, ConfigError, RawConfig, RawJournal, RawTls, ServeError, check_variables};

use crate::args::ServeArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::memory;

/// Serves until it is told to stop.
pub(crate) fn serve(args: &ServeArgs) -> Result<Exit, Failure> {
    memory::in_small_pages();
    memory::give_back().map_err(|error| Failure::Failed(format!("cannot start a thread: {error}")))?;
    match leasehold_server::serve(|| config(args)) {
        Ok(()) => Ok(Exit::Done),
        Err(error) if error.is_refusal() => Err(Failure::RefusedToStart(told(&error))),
        Err(error) if error.is_unavailable() => Err(Failure::Unavailable(told(&error))),
        Err(error) => Err(Failure::Failed(told(&error))),
    }
}

/// Defaults < file < environment < flags.
fn config(args: &ServeArgs) -> Result<Config, ConfigError> {
    let file = args.config.as_deref().map(RawConfig::from_file).transpose()?.unwrap_or_default();
    check_variables(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))?;
    let environment = RawConfig::from_env(|name| std::env::var(name).ok())?;
    let flags = RawConfig {
        listen: args.listen.clone(),
        data: args.data.clone(),
        insecure: args.insecure.then_some(true),
        auth: args.auth.then_some(true),
        tls: RawTls {
            cert: args.tls_cert.clone(),
            key: args.tls_key.clone(),
            client_ca: args.tls_client_ca.clone(),
            peer_ca: None,
        },
        advertise: args.advertise.clone(),
        cluster: args.cluster.clone(),
        journal: args.journal.as_deref().map(RawJournal::from_url).transpose()?,
        ..RawConfig::default()
    };
    file.under(environment).under(flags).resolve()
}

fn told(error: &ServeError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}
