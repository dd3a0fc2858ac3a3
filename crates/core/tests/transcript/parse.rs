//! From a line of a transcript to a command.

use leasehold_core::{
    Acquire, ClusterSecret, Command, ForceRelease, ForceTarget, LockCursor, LockFilter, OpenSession,
    Operator, Query, RaiseFormat, Recover, Renew, RenewSession, RenewalReport, Request, Sharing, Ticket,
};
use leasehold_types::{
    Class, FencingToken, Labels, OwnerId, Permit, RequestKey, ResourceName, TenantName, Ttl, limits,
};

use crate::support::ids;

/// A command as written: its word, and the rest in words.
pub(crate) struct Line<'a> {
    pub(crate) word: &'a str,
    rest: Vec<&'a str>,
}

impl<'a> Line<'a> {
    pub(crate) fn parse(command: &'a str) -> Result<Self, String> {
        let mut words = command.split_whitespace();
        let word = words.next().ok_or("an empty command")?;
        Ok(Self { word, rest: words.collect() })
    }

    /// What the command is about: its first word without a `=`.
    pub(crate) fn about(&self) -> &'a str {
        self.rest
            .iter()
            .find(|word| !word.contains('='))
            .unwrap_or_else(|| panic!("{}: about what?", self.word))
    }

    pub(crate) fn has(&self, word: &str) -> bool {
        self.rest.contains(&word)
    }

    fn value(&self, name: &str) -> Option<&'a str> {
        self.rest.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.value(name).map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
    }

    fn ms(&self, name: &str) -> Option<u64> {
        self.value(name).map(|text| duration(text).unwrap_or_else(|| panic!("{name}={text} is no duration")))
    }

    fn ttl(&self) -> Option<Ttl> {
        self.ms("ttl").map(|ms| Ttl::from_journal(ms).expect("a ttl is more than nothing"))
    }

    fn owner(&self) -> Option<OwnerId> {
        self.value("owner").map(|text| OwnerId::new(text).unwrap())
    }

    fn resource(&self) -> ResourceName {
        ResourceName::new(self.about()).unwrap()
    }

    fn operator(&self) -> Option<Operator> {
        let actor = self.value("by")?.into();
        Some(Operator { actor, reason: self.value("reason").unwrap_or("because").into() })
    }

    fn labels(&self) -> Labels {
        let pairs = self.value("labels").unwrap_or("");
        Labels::new(pairs.split(',').filter_map(|pair| pair.split_once(':'))).unwrap()
    }

    fn report(&self) -> RenewalReport {
        RenewalReport {
            missed: self.number("missed").map_or(0, |missed| u32::try_from(missed).unwrap()),
            last_error: self.value("error").map(Into::into),
            max_gap_ms: self.ms("gap").unwrap_or(0),
        }
    }

    pub(crate) fn request(&self, ticket: u64) -> Request {
        Request {
            ticket: Ticket(ticket),
            tenant: TenantName::new(self.value("tenant").unwrap_or("default")).unwrap(),
            identity: self.value("identity").map(Into::into),
            key: self.value("key").map(|key| RequestKey::new(key).unwrap()),
            command: self.command(ticket),
        }
    }

    fn command(&self, ticket: u64) -> Command {
        match self.word {
            "acquire" => Command::Acquire(self.acquire(ticket)),
            "renew" => Command::Renew(Renew {
                lease_id: ids::lease(self.about()),
                ttl: self.ttl(),
                report: self.report(),
                lists_locks: !self.has("unlisted"),
            }),
            "release" => Command::Release { lease_id: ids::lease(self.about()) },
            "resign" => Command::Resign {
                lease_id: ids::lease(self.about()),
                to: self.value("to").map(|owner| OwnerId::new(owner).unwrap()),
            },
            "proclaim" => Command::Proclaim {
                lease_id: ids::lease(self.about()),
                value: self.value("value").expect("a value").into(),
            },
            "withdraw" => Command::Withdraw { waiter: Ticket(self.about().parse().unwrap()) },
            "open" => Command::OpenSession(OpenSession {
                session_id: ids::session(self.about()),
                owner: self.owner().expect("a session has an owner"),
                ttl: self.ttl().expect("a session has a ttl"),
                labels: self.labels(),
            }),
            "keep" => Command::RenewSession(RenewSession {
                session_id: ids::session(self.about()),
                ttl: self.ttl(),
                seen_ended: self
                    .value("seen")
                    .into_iter()
                    .flat_map(|ids| ids.split(','))
                    .map(ids::lease)
                    .collect(),
                report: self.report(),
            }),
            "close" => {
                Command::CloseSession { session_id: ids::session(self.about()), by_operator: self.operator() }
            }
            "force" => Command::ForceRelease(ForceRelease {
                resource: self.resource(),
                target: match self.number("token") {
                    Some(token) => ForceTarget::Token(FencingToken::new(token).unwrap()),
                    None => ForceTarget::All,
                },
                skip_lock_delay: self.has("skip"),
                operator: self.operator().expect("an operator has a name"),
            }),
            "recover" => Command::Recover(Recover {
                token_floor: self.number("floor").expect("a floor"),
                operator: self.operator().expect("an operator has a name"),
            }),
            "raise-format" => Command::RaiseFormat(RaiseFormat {
                format: self.number("to").expect("a format").try_into().expect("a small number"),
                secret: ClusterSecret::from_bytes([7; 32]),
                operator: self.operator().expect("an operator has a name"),
            }),
            "backup" => Command::NoteBackup(self.operator().expect("an operator has a name")),
            _ => Command::Query(self.query()),
        }
    }

    fn acquire(&self, ticket: u64) -> Acquire {
        let sharing = match self.number("semaphore") {
            Some(limit) => Sharing::Semaphore { limit: u32::try_from(limit).unwrap() },
            None if self.has("shared") => Sharing::Shared,
            None => Sharing::Exclusive,
        };
        let drawn = format!("drawn{ticket}");
        Acquire {
            resource: self.resource(),
            owner: self.owner(),
            ttl: self.ttl(),
            wait_ms: self.ms("wait").unwrap_or(0),
            sharing,
            class: if self.has("efficiency") { Class::Efficiency } else { Class::Correctness },
            session: self.value("session").map(ids::session),
            renews_session: self.has("renews"),
            lease_id: ids::lease(self.value("lease").unwrap_or(&drawn)),
            lease_id_chosen: self.value("lease").is_some(),
            lock_delay_ms: self.ms("delay").unwrap_or(0),
            max_hold_ms: self.ms("hold"),
            labels: self.labels(),
            value: self.value("value").map(Into::into),
        }
    }

    fn query(&self) -> Query {
        let page_size = self.number("page").map_or(limits::PAGE_SIZE, |size| usize::try_from(size).unwrap());
        match self.word {
            "show" => Query::Lease(ids::lease(self.about())),
            "successor" => Query::Successor(ids::lease(self.about())),
            "explain" => Query::Explain(self.resource()),
            "session" => Query::Session(ids::session(self.about())),
            "sessions" => Query::Sessions { after: self.value("after").map(ids::session), page_size },
            "verify" => Query::AuditVerify,
            "audit" => Query::Audit {
                resource: self.value("resource").map(|name| ResourceName::new(name).unwrap()),
                after: self.number("after").unwrap_or(0),
                page_size,
            },
            "validate" => Query::Validate {
                resource: self.resource(),
                token: FencingToken::new(self.number("token").expect("a token")).unwrap(),
                permit: self.number("permit").map(|permit| Permit(u32::try_from(permit).unwrap())),
            },
            "ls" => Query::Locks(LockFilter {
                prefix: self.value("prefix").map(Into::into),
                owner: self.owner(),
                session: self.value("session").map(ids::session),
                held_longer_than_ms: self.ms("held"),
                missed_at_least: self.number("missed").map(|missed| u32::try_from(missed).unwrap()),
                cursor: self.value("after").map(|last| {
                    let (resource, token) = last.rsplit_once('#').expect("a resource and a token");
                    LockCursor {
                        resource: ResourceName::new(resource).unwrap(),
                        token: token.parse().unwrap(),
                    }
                }),
                page_size,
            }),
            word => panic!("no such command: {word}"),
        }
    }
}

/// `15s`, `500ms`, `10m`, `2h`, `1.5s`.
pub(crate) fn duration(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    match number.split_once('.') {
        None => Some(number.parse::<u64>().ok()? * unit_ms),
        Some((whole, part)) => {
            let scale = 10_u64.pow(u32::try_from(part.len()).ok()?);
            Some(whole.parse::<u64>().ok()? * unit_ms + part.parse::<u64>().ok()? * unit_ms / scale)
        }
    }
}
