//! The side-by-side benchmark: Leasehold on each of its journals, and the lock recipes of the engines themselves, in
//! one run, turn by turn, on one machine.
//!
//! It starts every engine by the testbed and every Leasehold server from the release binary, runs each workload for a
//! short time on one contestant after the other, several rounds, and reports medians, spreads and ratios. Contestants
//! take turns in groups, one for each journal, and only what a group needs runs meanwhile. It changes nothing about
//! durability: what an engine acknowledges is on disk, unless a contestant's name says otherwise.
//!
//! `cargo xtask bench-peers` builds everything and runs it; `--page` puts the figures into the project's page, part by
//! part; `--smoke` takes less than a minute and checks loose floors.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command for people prints")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

mod args;
mod contest;
mod contestant;
mod disk;
mod engines;
mod figures;
mod floors;
mod group;
mod growth;
mod held;
mod http;
mod instructions;
mod lockers;
mod measured;
mod processes;
mod report;
mod served;
mod shield;
mod snapshot;
mod summary;
mod workload;

use std::process::ExitCode;

use clap::Parser as _;

use args::Args;
use figures::{Figures, Part};
use tokio::runtime::Builder;

/// That of the binary: the load shares the cores with what is measured, whoever the contestant is.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(piece) = args.instructions {
        instructions::work(piece);
        return Ok(ExitCode::SUCCESS);
    }
    let plan = args.plan();
    let is_smoke = plan.smoke;
    let kept = args.page.as_deref().map(report::figures_of).transpose()?;
    let (mut all, mut measured) = (kept.unwrap_or_default(), Figures::default());
    let mut keep = |part: Part| {
        measured.add(part.clone());
        all.add(part);
        // After each part: whatever happens to the next one, this one is kept.
        args.page.as_deref().map_or(Ok(()), |page| report::write_page(page, &all))
    };
    let mut wrong = Vec::new();
    for (load_threads, plan) in plan.by_load_threads() {
        let runtime = Builder::new_multi_thread().worker_threads(load_threads).enable_all().build()?;
        wrong.extend(runtime.block_on(contest::run(&plan, &mut keep))?);
    }
    println!("{}", report::markdown(&measured));
    if is_smoke {
        wrong.extend(floors::check(&measured).into_iter().chain(instructions::check()?));
    }
    wrong.iter().for_each(|line| eprintln!("bench: {line}"));
    Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
