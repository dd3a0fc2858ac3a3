//! Closed lists of words, spelled once and the same on every wire.

use std::fmt;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name {
            $($(#[$vdoc])* $variant),+
        }

        impl $name {
            /// Every word of the list.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word as it stands on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The word with this spelling.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

words! {
    /// How a resource is shared among holders.
    Mode {
        /// One holder.
        Exclusive = "exclusive",
        /// Any number of readers, no writer.
        Shared = "shared",
        /// At most `limit` holders, each with a permit.
        Semaphore = "semaphore",
    }
}

words! {
    /// What a lock is for.
    Class {
        /// Two holders at once would do damage: needs a journal that keeps tokens monotonic, and a fence.
        Correctness = "correctness",
        /// Two holders at once would waste work.
        Efficiency = "efficiency",
    }
}

words! {
    /// What a grant really guarantees.
    Guarantee {
        /// The journal can lose acknowledged grants, or the caller asked for the efficiency class.
        BestEffort = "best_effort",
        /// Durable and monotonic, but no fence is known: a paused holder can still write.
        LeaseOnly = "lease_only",
        /// Durable, and a fence is declared or reporting for this prefix.
        Fenced = "fenced",
    }
}

words! {
    /// Why a lease ended.
    EndReason {
        /// The holder gave it back.
        Released = "released",
        /// Its time ended, or its session's.
        Expired = "expired",
        /// An operator took it away.
        Forced = "forced",
        /// Its session was closed.
        SessionEnded = "session_ended",
        /// Nobody knows the lease id; it was closed so that a late first attempt cannot be granted.
        Unknown = "unknown",
    }
}

words! {
    /// What an acknowledged commit survives, as far as the journal can tell.
    Durability {
        /// Everything acknowledged survives a crash and the engine's own fail-over.
        Durable = "durable",
        /// A crash or fail-over of the engine can lose acknowledged commits.
        Lossy = "lossy",
        /// Nothing survives the process: for tests.
        Volatile = "volatile",
    }
}

impl Durability {
    /// Whether tokens stay monotonic across the journal's own failures, which a correctness lock needs.
    pub const fn keeps_tokens(self) -> bool {
        matches!(self, Self::Durable)
    }
}

words! {
    /// What a caller may do; see [`Role::may`].
    Role {
        /// Takes and gives back locks, and looks at what it may take.
        Client = "client",
        /// Looks at everything of its tenant and changes nothing.
        Observer = "observer",
        /// Both, and takes locks and sessions away from others.
        Operator = "operator",
        /// All of that, and decides who the callers are, of every tenant.
        Admin = "admin",
    }
}

words! {
    /// A kind of thing to do, for roles and scopes.
    Verb {
        /// Acquire, renew, release; sessions; campaigns.
        Acquire = "acquire",
        /// Look at named resources, and follow them.
        Read = "read",
        /// Look at what is not about one name: sessions, the audit log, the node.
        Inspect = "inspect",
        /// Take away what others hold.
        Operate = "operate",
        /// Create and revoke credentials.
        Administer = "administer",
    }
}

impl Role {
    /// Whether this role may do such things at all; scopes may narrow it further.
    pub const fn may(self, verb: Verb) -> bool {
        match self {
            Self::Client => matches!(verb, Verb::Acquire | Verb::Read),
            Self::Observer => matches!(verb, Verb::Read | Verb::Inspect),
            Self::Operator => !matches!(verb, Verb::Administer),
            Self::Admin => true,
        }
    }
}
