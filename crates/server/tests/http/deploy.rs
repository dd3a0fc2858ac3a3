//! The files under `deploy/` are what the server and systemd understand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use leasehold_server::{JournalConfig, RawConfig};
use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// Stands for the directories of a real machine, with what the configurations refer to.
fn machine() -> TempDir {
    let dir = TempDir::new().unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["locks-1.example.net".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    for name in ["tls.crt", "ca.crt", "engine-ca.crt"] {
        fs::write(dir.path().join(name), &certificate).unwrap();
    }
    fs::write(dir.path().join("tls.key"), key.serialize_pem()).unwrap();
    fs::write(dir.path().join("journal-password"), "s3cret\n").unwrap();
    dir
}

#[test]
fn configurations_of_three_nodes_are_read_and_differ_where_they_must() {
    let machine = machine();
    let here = format!("{}/", machine.path().display());
    for engine in ["postgres", "etcd"] {
        let mut nodes = Vec::new();
        for number in 1..=3 {
            let file = deploy().join(engine).join(format!("locks-{number}.toml"));
            let text = fs::read_to_string(&file).unwrap();
            let text = text.replace("/etc/leasehold/", &here);
            let text = text.replace("/run/credentials/leasehold.service/", &here);
            let raw =
                RawConfig::from_toml(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let advertise = raw.advertise.clone().expect("other nodes must be told where it is");
            let config = raw.resolve().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let kind = match config.journal {
                JournalConfig::Postgres(_) => "postgres",
                JournalConfig::Etcd(_) => "etcd",
                other => panic!("{other:?}"),
            };
            assert_eq!(kind, engine);
            assert!(advertise.contains(&config.node) && !config.listen.ip().is_loopback());
            nodes.push((config.node, config.listen, text));
        }
        let others = |n: usize| (0..3).filter(move |other| *other != n);
        for (n, (node, listen, text)) in nodes.iter().enumerate() {
            assert!(others(n).all(|other| nodes[other].0 != *node && nodes[other].1 != *listen));
            let digit = (n + 1).to_string();
            let plain = |text: &str, digit: &str| {
                text.replace(&format!("locks-{digit}"), "").replace(&format!("10.0.0.{digit}:"), "")
            };
            let same = plain(&nodes[0].2, "1").replace("Node 1", "");
            assert_eq!(plain(text, &digit).replace(&format!("Node {digit}"), ""), same, "{node}");
        }
    }
}

#[test]
fn configurations_of_one_node_are_read() {
    let machine = machine();
    fs::create_dir(machine.path().join("tls")).unwrap();
    for name in ["tls.crt", "tls.key"] {
        fs::copy(machine.path().join(name), machine.path().join("tls").join(name)).unwrap();
    }
    for (folder, is_protected) in [("container", true), ("debian", false)] {
        let file = deploy().join(folder).join("leasehold.toml");
        let text = fs::read_to_string(&file).unwrap();
        let text = text.replace("/etc/leasehold/", &format!("{}/", machine.path().display()));
        let config = RawConfig::from_toml(&text).unwrap().resolve().unwrap();
        assert_eq!(config.data, Path::new("/var/lib/leasehold"), "{}", file.display());
        assert_eq!((config.protected, config.tls.is_some()), (is_protected, is_protected));
        assert_eq!(
            config.listen.ip().is_loopback(),
            !is_protected,
            "whoever is reached by others asks who they are"
        );
    }
}

/// What the package puts over the unit is understood too, and resets what it has to.
#[test]
fn systemd_has_nothing_to_say_against_the_unit_of_the_package() {
    let dir = TempDir::new().unwrap();
    let unit = fs::read_to_string(deploy().join("systemd/leasehold.service")).unwrap();
    let over = fs::read_to_string(deploy().join("debian/package.conf")).unwrap();
    let over = over.replace("User=leasehold", "User=root").replace("Group=leasehold", "Group=root");
    fs::write(dir.path().join("leasehold.service"), unit.replace("/usr/bin/leasehold", "/bin/true")).unwrap();
    fs::create_dir(dir.path().join("leasehold.service.d")).unwrap();
    fs::write(dir.path().join("leasehold.service.d/package.conf"), over).unwrap();
    nothing_to_say(&dir.path().join("leasehold.service"));
}

#[test]
fn systemd_has_nothing_to_say_against_the_unit() {
    let dir = TempDir::new().unwrap();
    let unit = fs::read_to_string(deploy().join("systemd/leasehold.service")).unwrap();
    assert!(unit.contains("RestartPreventExitStatus=78"), "a refusal to start is no crash");
    // The program is not installed on this machine; everything else is checked as it is.
    let program = "/usr/bin/leasehold";
    assert!(unit.contains(program));
    let here = dir.path().join("leasehold.service");
    fs::write(&here, unit.replace(program, "/bin/true")).unwrap();
    nothing_to_say(&here);
}

fn nothing_to_say(unit: &Path) {
    let checked = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(unit).output();
    let checked = checked.expect("systemd-analyze, of the Debian package systemd");
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    // What it says of other units of this machine is not ours.
    let ours: Vec<_> = said.lines().filter(|line| line.contains("leasehold")).collect();
    assert!(checked.status.success() && ours.is_empty(), "{said}");
}
