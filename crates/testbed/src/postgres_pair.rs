//! PostgreSQL with a standby that follows it.

use rustix::process::Signal;

use crate::member::{Launch, unprivileged};
use crate::port::free_port;
use crate::proxy::{Passage, Proxy};
use crate::server::{self, Plan, Server, directory, prepare, text};
use crate::{Setup, find, postgres_with, psql};

/// A primary and a hot standby, which follows through a link that can be cut.
///
/// Synchronous: the primary acknowledges a commit only once the standby has it. Asynchronous: it does not wait, and a
/// standby that is promoted may lack what was acknowledged.
#[derive(Debug)]
pub struct PostgresPair {
    /// Declared first: it ends before the one that it follows.
    pub standby: Server,
    /// The one that takes writes at the beginning.
    pub primary: Server,
    link: Proxy,
}

/// What the standby calls itself, and the primary waits for.
const NAME: &str = "second";

impl PostgresPair {
    /// Starts both; the standby follows.
    pub fn start(synchronous: bool) -> Self {
        let primary = postgres_with(&Setup::default());
        let link = Proxy::before(primary.addresses()[0]);
        let standby = server::start("PostgreSQL standby", || standby(&primary, &link));
        let pair = Self { standby, primary, link };
        pair.until_streaming();
        if synchronous {
            pair.sql(&pair.primary, &format!("ALTER SYSTEM SET synchronous_standby_names = '{NAME}'"));
            pair.sql(&pair.primary, "SELECT pg_reload_conf()");
            pair.until("SELECT sync_state = 'sync' FROM pg_stat_replication");
        }
        pair
    }

    /// Cuts the standby off: from now on it gets nothing more, and does not know.
    pub fn cut_off(&self) {
        self.link.set(Passage::Closed);
    }

    /// Makes the standby a primary; the old one is not told. Returns once it takes writes.
    pub fn promote(&self) {
        self.sql(&self.standby, "SELECT pg_promote(true, 60)");
    }

    /// Waits until the standby has everything that was committed before.
    pub fn until_caught_up(&self) {
        self.until("SELECT bool_and(flush_lsn >= pg_current_wal_lsn()) FROM pg_stat_replication");
    }

    /// Waits until the standby follows.
    fn until_streaming(&self) {
        self.until("SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'");
    }

    /// Asks the primary until it says yes.
    fn until(&self, question: &str) {
        let yes = (0..600).any(|_| {
            let answer = self.sql(&self.primary, question);
            std::thread::park_timeout(std::time::Duration::from_millis(50));
            answer.trim() == "t"
        });
        assert!(yes, "the primary never said yes to: {question}");
    }

    /// Runs one statement on one of the two, and gives the first column of what it says.
    ///
    /// # Panics
    /// When it fails.
    pub fn sql(&self, on: &Server, statement: &str) -> String {
        psql(on.url(), &["-c", statement])
    }
}

/// A copy of the primary that follows it through the link.
fn standby(primary: &Server, link: &Proxy) -> Plan {
    let (dir, port, bin) = (directory("postgres-standby"), free_port(), find::postgres_programs());
    let data = text(&dir.path().join("data"));
    let [direct, through] = [primary.addresses()[0], link.address()];
    let mut copy = unprivileged(&bin.join("pg_basebackup"), None);
    copy.args(["--no-sync", "--wal-method=stream", "--checkpoint=fast", "--username=postgres"]);
    copy.args(["-h", "127.0.0.1", "-p", &direct.port().to_string(), "--write-recovery-conf", "-D", &data]);
    prepare(copy);
    let conninfo = format!("host=127.0.0.1 port={} user=postgres application_name={NAME}", through.port());
    let mut args =
        vec!["-D".to_owned(), data, "-p".into(), port.to_string(), "-h".into(), "127.0.0.1".into()];
    args.extend(["-k".to_owned(), text(dir.path())]);
    for setting in [format!("primary_conninfo={conninfo}"), "wal_retrieve_retry_interval=100ms".into()] {
        args.extend(["-c".to_owned(), setting]);
    }
    let ready = "database system is ready to accept read-only connections";
    let leftover = Some(dir.path().join("data/postmaster.pid"));
    let member = Launch { program: bin.join("postgres"), args, ready, stop: Signal::QUIT, leftover };
    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
    Plan { dir, members: vec![member], endpoints: vec![url.clone()], url }
}
