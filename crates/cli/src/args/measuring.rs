//! What measures and judges.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::{duration, number};

#[derive(Args, Debug)]
pub(crate) struct CheckHistoryArgs {
    /// The history: one JSON object a line
    pub(crate) file: PathBuf,
    /// Clocks ran faster or slower than one per cent: do not judge what rests on that (S9, S10)
    #[arg(long)]
    pub(crate) wide_clocks: bool,
}

#[derive(Args, Debug)]
pub(crate) struct AdviseArgs {
    /// How long to measure
    #[arg(long = "for", value_name = "DUR", value_parser = duration::parse, default_value = "5s")]
    pub(crate) measure_for: Duration,
    /// How long others may wait for the lock of a holder that died
    #[arg(long, value_name = "DUR", value_parser = duration::parse, default_value = "30s")]
    pub(crate) recovery: Duration,
    /// Judge this ttl instead of proposing one
    #[arg(long, value_name = "DUR", value_parser = duration::parse)]
    pub(crate) ttl: Option<Duration>,
}

#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// What each client does
    #[arg(value_enum, default_value_t)]
    pub(crate) workload: crate::bench::Workload,
    /// How clients reach the server
    #[arg(long, value_enum, default_value_t)]
    pub(crate) transport: crate::bench::Transport,
    /// Connections, or tasks on one gRPC stream, each with one request under way
    #[arg(long, value_name = "N", value_parser = number::whole::<usize>, default_value_t = 64)]
    pub(crate) clients: usize,
    /// How long to measure
    #[arg(long, value_name = "DUR", value_parser = duration::parse, default_value = "10s")]
    pub(crate) duration: Duration,
    /// Begin so many operations a second, instead of as many as possible
    #[arg(long, value_name = "N", value_parser = number::whole::<u64>)]
    pub(crate) rate: Option<u64>,
    /// Measure a server of its own, started on a temporary directory and stopped afterwards
    #[arg(long)]
    pub(crate) own_server: bool,
}
