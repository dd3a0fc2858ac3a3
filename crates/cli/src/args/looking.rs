//! What looks at locks.

use std::time::Duration;

use clap::Args;

use crate::{duration, number};

#[derive(Args, Debug)]
pub(crate) struct LsArgs {
    /// Only resources whose names begin with this
    pub(crate) prefix: Option<String>,
    /// Only locks of this owner
    #[arg(long)]
    pub(crate) owner: Option<String>,
    /// Only locks of this session
    #[arg(long, value_name = "SESSION_ID")]
    pub(crate) session: Option<String>,
    /// Only locks whose holders reported missed renewals
    #[arg(long)]
    pub(crate) failing: bool,
    /// Only locks held at least this long
    #[arg(long, value_name = "DUR", value_parser = duration::parse)]
    pub(crate) held_longer_than: Option<Duration>,
}

#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// Only resources whose names begin with this
    pub(crate) prefix: Option<String>,
    /// Begin after this event instead of now
    #[arg(long, value_name = "EVENT_ID")]
    pub(crate) after: Option<String>,
    /// End after so many events
    #[arg(long, value_name = "N", value_parser = number::whole::<u64>)]
    pub(crate) count: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    /// Only resources whose names begin with this
    pub(crate) prefix: Option<String>,
    /// How often to look
    #[arg(long, value_name = "DUR", value_parser = duration::parse, default_value = "1s")]
    pub(crate) every: Duration,
    /// Print one frame and end; with --output json always
    #[arg(long)]
    pub(crate) once: bool,
}
