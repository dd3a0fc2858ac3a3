//! Every bound of the system in one place, with its reason.

/// A resource name is at most this long, so that a name fits in a metric line, a URL and a database key.
pub const NAME_BYTES: usize = 512;
/// An owner is `user@host:pid` or the like; longer text belongs in labels.
pub const OWNER_BYTES: usize = 256;
/// A tenant is part of every key in memory: short.
pub const TENANT_BYTES: usize = 64;
/// Longest name of a principal.
pub const PRINCIPAL_BYTES: usize = 128;
/// Longest name in a certificate that a credential may stand for.
pub const SAN_BYTES: usize = 256;
/// Scopes of one credential.
pub const SCOPES: usize = 32;
/// Credentials of all tenants together: they are held in memory by every node.
pub const CREDENTIALS: usize = 10_000;
/// `Idempotency-Key` length.
pub const REQUEST_KEY_BYTES: usize = 128;
/// Labels of one lease or session.
pub const LABELS: usize = 16;
/// Bytes of one label key or value.
pub const LABEL_BYTES: usize = 256;
/// Actor and reason of an operator's action: a sentence, not a document.
pub const REASON_BYTES: usize = 1024;
/// The value that a leader proclaims: an address or a small document.
pub const VALUE_BYTES: usize = 4096;
/// Text of a client's last error, as it reports it with a renewal.
pub const ERROR_TEXT_BYTES: usize = 256;

/// Default time to live of a lease.
pub const TTL_DEFAULT_MS: u64 = 15_000;
/// Shortest ttl by default: below this, ordinary scheduling pauses end leases.
pub const TTL_MIN_MS: u64 = 1_000;
/// Longest ttl by default: a dead holder blocks everyone for this long.
pub const TTL_MAX_MS: u64 = 3_600_000;
/// Below this a grant warns: one pause of a garbage collector may end the lease.
pub const TTL_WARN_BELOW_MS: u64 = 5_000;
/// Above this a grant warns: recovery from a crash of the holder takes this long.
pub const TTL_WARN_ABOVE_MS: u64 = 300_000;
/// Longest wait of one acquire.
pub const WAIT_MAX_MS: u64 = 600_000;
/// Longest lock delay.
pub const LOCK_DELAY_MAX_MS: u64 = 3_600_000;
/// Longest max hold: thirty days.
pub const MAX_HOLD_MAX_MS: u64 = 30 * 24 * 3_600_000;
/// Largest limit of a semaphore.
pub const SEMAPHORE_LIMIT: u32 = 10_000;

/// Tokens stay below 2^53, so that JSON readers with double-precision numbers read them exactly.
pub const TOKEN_MAX: u64 = (1 << 53) - 1;
/// `recover` raises tokens and epochs by this much above everything known: more than could have been given out unseen.
pub const RECOVERY_STEP: u64 = 1 << 40;

/// The clock of the server and that of a client may differ in rate by this many per cent (rho).
pub const CLOCK_DRIFT_PERCENT: u64 = 1;

/// Endings of leases and keyed outcomes are remembered this long for retries.
pub const OUTCOME_MS: u64 = 600_000;
/// At most this many remembered outcomes for a tenant, oldest forgotten first.
pub const OUTCOMES_PER_TENANT: usize = 100_000;
/// Endings kept for people, for each resource.
pub const ENDINGS_PER_RESOURCE: usize = 8;
/// Resources whose endings are kept, most recently used first.
pub const RESOURCES_WITH_ENDINGS: usize = 100_000;
/// Audit entries kept in the table; older ones by export.
pub const AUDIT_ENTRIES: usize = 100_000;

/// Leases at least this long have their remaining time noted in the journal, every quarter of their ttl, so that a
/// crash loop of the server cannot make a dead client's lease immortal.
pub const NOTE_FROM_TTL_MS: u64 = 60_000;

/// Records in one page of a listing.
pub const PAGE_SIZE: usize = 1_000;
/// Records that one listing command may look at before it answers with a shorter page and a cursor.
pub const PAGE_SCAN: usize = 20_000;
/// Holders named in the answer to an acquire that was not granted; the rest are found by listing.
pub const HOLDERS_SHOWN: usize = 100;
