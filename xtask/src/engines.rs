//! Drills on real engines, with options: which engine, how often, from which seed.

use std::process::ExitCode;

use crate::parts::Parts;
use crate::run::Line;
use crate::test::{release, whole};

/// Drills that wait more than they work: more of them side by side than there are cores.
const SIDE_BY_SIDE: &str = "4";

/// One of them; its tests are in the module of its name in `tests/engines`.
struct Drill {
    name: &'static str,
    about: &'static str,
    engines: &'static str,
}

const DRILLS: &[Drill] = &[
    Drill {
        name: "kill-active",
        about: "kill -9 of the active node under load",
        engines: "postgres etcd etcd3 zookeeper redis",
    },
    Drill {
        name: "rolling",
        about: "restarts of three nodes in order, one after the other, under load of the Rust client",
        engines: "postgres etcd",
    },
    Drill {
        name: "zombie-node",
        about: "SIGSTOP of the active node until another has taken over (F6)",
        engines: "postgres etcd zookeeper redis",
    },
    Drill {
        name: "unknown",
        about: "a fault proxy between nodes and engine (F7)",
        engines: "postgres etcd zookeeper redis",
    },
    Drill {
        name: "partitions",
        about: "packets dropped between network namespaces (F8); --topology node-engine, node-client, bridge, \
                one-way or flapping",
        engines: "postgres etcd",
    },
    Drill {
        name: "fail-over",
        about: "the engine fails over by itself, with and without loss (F9)",
        engines: "postgres-async postgres-sync postgres-alone postgres-beside postgres-hung etcd3 etcd-emptied \
                  zookeeper3",
    },
    Drill {
        name: "engine-away",
        about: "the engine is frozen or dead for ten seconds",
        engines: "postgres-frozen postgres-dead etcd-frozen etcd-dead redis-frozen redis-dead \
                  zookeeper-frozen zookeeper-dead",
    },
];

/// What was asked for.
#[derive(Default, Debug, PartialEq, Eq)]
struct Options {
    engine: Option<String>,
    topology: Option<String>,
    times: Option<String>,
    seed: Option<String>,
}

/// The part of `cargo xtask test`.
pub(crate) fn floor() -> Line {
    whole("engines", &["--test-threads".into(), SIDE_BY_SIDE.into()])
}

/// Prints what there is.
pub(crate) fn list() {
    eprintln!("\non engines: NAME [--engine E] [--times N | --cuts N] [--seed N]\n");
    for Drill { name, about, engines } in DRILLS {
        eprintln!("  {name:<20} {about}\n  {:<20} engines: {engines}", "");
    }
}

/// Runs a drill on engines; `None` if there is none of this name.
pub(crate) fn drill(args: &[String]) -> Option<ExitCode> {
    let (name, options) = args.split_first()?;
    let drill = DRILLS.iter().find(|drill| drill.name == name)?;
    let options = match parse(options) {
        Ok(options) => options,
        Err(why) => {
            eprintln!("{why}");
            list();
            return Some(ExitCode::from(64));
        }
    };
    let mut parts = Parts::new();
    if release(&mut parts) {
        parts.tests(&format!("drill {name}"), &line(drill, &options));
    }
    Some(parts.finish())
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options::default();
    for pair in args.chunks(2) {
        let [name, value] = pair else { return Err(format!("`{}` needs a value", pair[0])) };
        let place = match name.as_str() {
            "--engine" => &mut options.engine,
            "--topology" => &mut options.topology,
            "--times" | "--cuts" => &mut options.times,
            "--seed" => &mut options.seed,
            other => return Err(format!("no option `{other}`")),
        };
        *place = Some(value.clone());
    }
    Ok(options)
}

/// By hand every measurement is held to what is promised, see `tests/engines/drill.rs`.
fn line(drill: &Drill, options: &Options) -> Line {
    let names = [Some(drill.name), options.engine.as_deref(), options.topology.as_deref()];
    let test = names.into_iter().flatten().collect::<Vec<_>>().join("::").replace('-', "_");
    let is_whole = options.engine.is_some() && (options.topology.is_some() || drill.name != "partitions");
    let mut args = vec![test];
    args.extend(is_whole.then(|| "--exact".to_owned()));
    let line = whole("engines", &args).env("LEASEHOLD_STRICT", "1");
    let variables = [("LEASEHOLD_TIMES", &options.times), ("LEASEHOLD_SEED", &options.seed)];
    variables.into_iter().fold(line, |line, (name, value)| match value {
        Some(value) => line.env(name, value),
        None => line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let args: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let drill = DRILLS.iter().find(|drill| drill.name == args[0]).unwrap();
        line(drill, &parse(&args[1..]).unwrap()).shown()
    }

    #[test]
    fn options_name_the_test_and_its_environment() {
        let unknown = shown("unknown --engine etcd --cuts 500 --seed 7");
        assert!(unknown.ends_with("--nocapture unknown::etcd --exact"), "{unknown}");
        assert!(unknown.contains("LEASEHOLD_TIMES=500") && unknown.contains("LEASEHOLD_SEED=7"), "{unknown}");
        let partitions = shown("partitions --engine etcd --topology one-way");
        assert!(partitions.ends_with("partitions::etcd::one_way --exact"), "{partitions}");
        assert!(shown("fail-over --engine postgres-async").ends_with("fail_over::postgres_async --exact"));
        assert!(shown("kill-active").ends_with("kill_active"));
        assert!(parse(&["--often".into(), "1".into()]).is_err());
    }
}
