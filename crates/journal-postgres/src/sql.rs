//! Every statement that is sent, in one place. Each is one autocommit statement: there is no transaction to be left open
//! by a paused node, and no COMMIT whose answer could be a ROLLBACK.

/// Creates what is missing, as one implicit transaction. The lock keeps two nodes from creating at the same time.
///
/// - `head` has one row for each cluster. It is updated at every commit: the fill factor leaves room to do that in place.
///   Everything that must change together with the epoch check is in this row, since its row lock is what serializes.
/// - `timeline` and `synchronous` are those of the engine at the last claim: see [`CLAIM`].
/// - Bodies are stored as they are: compressing them costs the append more than it saves.
pub(crate) const CREATE: &str = "
    SELECT pg_advisory_xact_lock(7420742074207420);
    CREATE SCHEMA IF NOT EXISTS leasehold;
    CREATE TABLE IF NOT EXISTS leasehold.head (
        name text PRIMARY KEY,
        format integer NOT NULL,
        stage smallint NOT NULL,
        cluster bytea NOT NULL,
        epoch bigint NOT NULL,
        nonce bytea NOT NULL,
        tail bigint NOT NULL,
        hash bytea NOT NULL,
        beat bigint NOT NULL,
        low bigint NOT NULL,
        snapshot_id bytea,
        snapshot_slot bigint NOT NULL,
        snapshot_at bytea,
        snapshot_chunks integer,
        snapshot_hash bytea,
        timeline integer,
        synchronous boolean
    ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
    CREATE TABLE IF NOT EXISTS leasehold.slots (
        name text NOT NULL,
        slot bigint NOT NULL,
        epoch bigint NOT NULL,
        batch_id bytea NOT NULL,
        prev bytea NOT NULL,
        hash bytea NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (name, slot)
    ) WITH (toast_tuple_target = 8160);
    ALTER TABLE leasehold.slots ALTER COLUMN body SET STORAGE EXTERNAL;
    CREATE TABLE IF NOT EXISTS leasehold.chunks (
        name text NOT NULL,
        slot bigint NOT NULL,
        id bytea NOT NULL,
        index integer NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (name, slot, id, index)
    );
    ALTER TABLE leasehold.chunks ALTER COLUMN body SET STORAGE EXTERNAL;
";

/// Whether anything has to be created: whoever may not create is not asked to when it is there.
pub(crate) const EXISTS: &str = "SELECT to_regclass('leasehold.head') IS NOT NULL
    AND to_regclass('leasehold.slots') IS NOT NULL AND to_regclass('leasehold.chunks') IS NOT NULL";

/// What every connection sets for itself, whatever the database's defaults are. A weaker `synchronous_commit` than `on`
/// is raised; `lock_timeout` keeps a claim from waiting for ever behind a row lock that somebody else holds.
pub(crate) const SESSION: &str = "
    SET default_transaction_isolation = 'read committed';
    SET default_transaction_deferrable = off;
    SET statement_timeout = 0;
    SET lock_timeout = '750ms';
    SET tcp_user_timeout = '2s';
    SET client_min_messages = warning;
    SET search_path = pg_catalog;
    SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply');
";

/// The engine as it is now: on which timeline it writes, and whether commits wait for a standby.
macro_rules! engine_now {
    () => {
        "(SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer AS timeline,
            current_setting('synchronous_standby_names') <> '' AS synchronous)"
    };
}

/// Makes the row of an empty journal: epoch 0, which no writer ever has. $1 name, $2 cluster, $3 nonce, $4 zero hash.
pub(crate) const FOUND: &str = "INSERT INTO leasehold.head
    (name, format, stage, cluster, epoch, nonce, tail, hash, beat, low, snapshot_slot)
    VALUES ($1, 1, 2, $2, 0, $3, 0, $4, 0, 0, 0) ON CONFLICT (name) DO NOTHING";

/// Takes the journal over (J4) and tells the tail in the same atomic step (J5). $1 name, $2 nonce, $3 floor, $4 expected,
/// $5 the least stage that will do.
///
/// PostgreSQL counts its own fail-overs and restores in the timeline, which also names its log files. On another timeline
/// than that of the last claim commits are missing, unless a synchronous standby was waited for then; a node that has not
/// seen them itself would not notice. Such a journal is claimed only with loss accepted ($6), and is then to be
/// recovered.
pub(crate) const CLAIM: &str = concat!(
    "UPDATE leasehold.head
    SET epoch = GREATEST(epoch, $3::bigint) + 1, nonce = $2, beat = 0,
        stage = CASE WHEN head.timeline <> now.timeline AND NOT head.synchronous THEN 1 ELSE stage END,
        timeline = now.timeline, synchronous = now.synchronous
    FROM ",
    engine_now!(),
    " now
    WHERE name = $1 AND stage >= $5 AND format = 1 AND ($4::bigint IS NULL OR epoch = $4::bigint)
        AND ($6 OR head.timeline IS NULL OR head.timeline = now.timeline OR head.synchronous)
    RETURNING cluster, epoch, tail, hash, head.timeline, head.synchronous"
);

/// On which timeline the engine writes.
pub(crate) const TIMELINE: &str = concat!("SELECT timeline FROM ", engine_now!(), " now");

/// Commits a batch (J1). The update takes the row lock that the claim takes, so one of the two is first; it checks
/// epoch, nonce, tail and chain again once it has the lock; and the slot exists only if the update happened. A journal
/// in which something was committed is recovered. The answer repeats the number of the question.
/// $1 name, $2 epoch, $3 nonce, $4 slot, $5 batch id, $6 hash before, $7 hash, $8 body, $9 question.
pub(crate) const APPEND: &str = "WITH ours AS (
        UPDATE leasehold.head SET tail = $4, hash = $7, stage = 2
        WHERE name = $1 AND epoch = $2 AND nonce = $3 AND tail = $4::bigint - 1 AND hash = $6
        RETURNING 1),
    done AS (
        INSERT INTO leasehold.slots (name, slot, epoch, batch_id, prev, hash, body)
        SELECT $1, $4, $2, $5::bytea, $6, $7, $8::bytea FROM ours RETURNING 1)
    SELECT $9::bigint, EXISTS (SELECT FROM done)";

/// What is in the way of an append that was not done. $1 name, $2 slot, $3 question.
pub(crate) const LOOK: &str =
    "SELECT $3::bigint, h.epoch, h.nonce, s.batch_id, s.hash, s.epoch, h.tail, h.hash
    FROM leasehold.head h LEFT JOIN leasehold.slots s ON s.name = h.name AND s.slot = $2 WHERE h.name = $1";

/// The sign of life, and the confirmation: a committed write, which a deposed primary cannot make (J7, J15).
/// Answers the tail, or nothing there. $1 name, $2 epoch, $3 nonce, $4 question.
pub(crate) const BEAT: &str = "WITH ours AS (
        UPDATE leasehold.head SET beat = beat + 1 WHERE name = $1 AND epoch = $2 AND nonce = $3
        RETURNING tail, hash)
    SELECT $4::bigint, ours.tail, ours.hash FROM (VALUES (1)) one LEFT JOIN ours ON true";

/// The head as standbys watch it. $1 name.
pub(crate) const HEAD: &str = "SELECT cluster, epoch, nonce, tail, hash, beat
    FROM leasehold.head WHERE name = $1 AND stage > 0";

/// Slots with the marks that say what should be there, as of one moment. $1 name, $2 from, $3 how many, $4 bytes.
/// The first slot is given however large it is.
pub(crate) const SLOTS: &str = "SELECT h.low, h.tail, s.slot, s.epoch, s.batch_id, s.prev, s.hash, s.body
    FROM leasehold.head h LEFT JOIN (
        SELECT *, sum(octet_length(body)) OVER (ORDER BY slot) - octet_length(body) AS before
        FROM (SELECT * FROM leasehold.slots WHERE name = $1 AND slot >= $2 ORDER BY slot LIMIT $3::bigint) few
    ) s ON s.before < $4::bigint
    WHERE h.name = $1 AND h.stage > 0 ORDER BY s.slot";

/// The current snapshot. $1 name.
pub(crate) const SNAPSHOT: &str = "SELECT snapshot_slot, snapshot_at, snapshot_chunks, snapshot_hash
    FROM leasehold.head WHERE name = $1 AND stage > 0 AND snapshot_id IS NOT NULL";

/// A chunk of the current snapshot, if the snapshot is this one. $1 name, $2 slot, $3 whole hash, $4 index.
pub(crate) const CHUNK: &str = "SELECT c.body FROM leasehold.head h LEFT JOIN leasehold.chunks c
    ON c.name = h.name AND c.slot = h.snapshot_slot AND c.id = h.snapshot_id AND c.index = $4
    WHERE h.name = $1 AND h.stage > 0 AND h.snapshot_slot = $2 AND h.snapshot_hash = $3";

/// What a snapshot at a slot must agree with. $1 name, $2 slot.
pub(crate) const BEFORE_SNAPSHOT: &str = "SELECT h.tail, h.hash, h.snapshot_slot, s.hash
    FROM leasehold.head h LEFT JOIN leasehold.slots s ON s.name = h.name AND s.slot = $2 WHERE h.name = $1";

/// Stores a chunk. The epoch is looked at only so that a replaced node stops early; what fences is the switch.
/// $1 name, $2 epoch, $3 nonce, $4 slot, $5 id, $6 index, $7 body.
pub(crate) const STORE_CHUNK: &str = "INSERT INTO leasehold.chunks (name, slot, id, index, body)
    SELECT $1, $4::bigint, $5::bytea, $6::integer, $7::bytea FROM leasehold.head WHERE name = $1 AND epoch = $2 AND nonce = $3
    ON CONFLICT (name, slot, id, index) DO UPDATE SET body = excluded.body";

/// Makes a snapshot current and advances the low-water mark with it, fenced (J8, J13). $1 name, $2 epoch, $3 nonce,
/// $4 slot, $5 id, $6 hash at the slot, $7 chunks, $8 whole hash, $9 the mark.
pub(crate) const SWITCH: &str = "UPDATE leasehold.head
    SET snapshot_id = $5, snapshot_slot = $4, snapshot_at = $6, snapshot_chunks = $7, snapshot_hash = $8,
        low = GREATEST(low, LEAST($9::bigint, $4::bigint))
    WHERE name = $1 AND epoch = $2 AND nonce = $3 AND tail >= $4 AND snapshot_slot <= $4
        AND $7::integer = (SELECT count(*) FROM leasehold.chunks WHERE name = $1 AND slot = $4 AND id = $5)
    RETURNING low";

/// Removes some slots below the durable mark, which no one can move back: this needs no fence. $1 name, $2 how many.
pub(crate) const TRUNCATE: &str = "DELETE FROM leasehold.slots s USING leasehold.head h
    WHERE h.name = $1 AND s.name = $1 AND s.slot <= h.low
        AND s.slot < (SELECT min(slot) FROM leasehold.slots WHERE name = $1) + $2::bigint";

/// Removes the chunks of replaced and given up snapshots. $1 name.
pub(crate) const DROP_CHUNKS: &str = "DELETE FROM leasehold.chunks c USING leasehold.head h
    WHERE h.name = $1 AND c.name = $1 AND c.slot <= h.snapshot_slot AND c.id <> h.snapshot_id";

/// Ends what is left of an older writer's statement and its row lock: connections of this cluster and this role that
/// have been inside one statement for long. Their outcome becomes unknown to them, and then `Fenced`.
/// $1 application name.
pub(crate) const END_STUCK: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE application_name = $1 AND usename = current_user AND datname = current_database()
        AND pid <> pg_backend_pid() AND xact_start < now() - interval '500 milliseconds'";

/// Removes a scratch journal. $1 name.
pub(crate) const REMOVE: &str = "WITH gone AS (DELETE FROM leasehold.slots WHERE name = $1)
    DELETE FROM leasehold.head WHERE name = $1";

/// Cuts a damaged record after its last whole slot, for `recover` alone. $1 name, $2 epoch, $3 nonce, $4 slot, $5 hash.
pub(crate) const CUT: &str = "WITH ours AS (
        UPDATE leasehold.head SET tail = $4, hash = $5, stage = 1
        WHERE name = $1 AND epoch = $2 AND nonce = $3 RETURNING 1)
    DELETE FROM leasehold.slots USING ours WHERE name = $1 AND slot > $4";

/// The settings that decide what a commit survives.
pub(crate) const SETTINGS: &str = "SELECT
    current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
    current_setting('synchronous_standby_names'),
    (SELECT count(*) FROM pg_stat_replication r WHERE coalesce(r.state, 'streaming') <> 'backup'
        AND NOT EXISTS (SELECT 1 FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical'))
    + (SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'physical' AND NOT active AND NOT temporary)";

/// Begins to fill an empty journal; what an unfinished attempt left is overwritten. $1 name, $2 cluster, $3 nonce,
/// $4 zero hash.
pub(crate) const BEGIN_FILL: &str = "INSERT INTO leasehold.head AS h
    (name, format, stage, cluster, epoch, nonce, tail, hash, beat, low, snapshot_slot)
    VALUES ($1, 1, 0, $2, 0, $3, 0, $4, 0, 0, 0)
    ON CONFLICT (name) DO UPDATE SET cluster = $2, nonce = $3, epoch = 0, tail = 0, hash = $4, low = 0,
        snapshot_id = NULL, snapshot_slot = 0 WHERE h.stage = 0";

/// Removes what an unfinished attempt to fill left. $1 name, $2 nonce.
pub(crate) const CLEAR_SLOTS: &str = "DELETE FROM leasehold.slots s USING leasehold.head h
    WHERE h.name = $1 AND s.name = $1 AND h.stage = 0 AND h.nonce = $2";

/// As [`CLEAR_SLOTS`], for chunks. $1 name, $2 nonce.
pub(crate) const CLEAR_CHUNKS: &str = "DELETE FROM leasehold.chunks c USING leasehold.head h
    WHERE h.name = $1 AND c.name = $1 AND h.stage = 0 AND h.nonce = $2";

/// Fills in many slots at once. $1 name, $2 nonce, $3 last slot, $4 last hash, then one array a column.
pub(crate) const FILL: &str = "WITH ours AS (
        UPDATE leasehold.head SET tail = $3, hash = $4 WHERE name = $1 AND nonce = $2 AND stage = 0 RETURNING 1)
    INSERT INTO leasehold.slots (name, slot, epoch, batch_id, prev, hash, body)
    SELECT $1, columns.* FROM ours,
        unnest($5::bigint[], $6::bigint[], $7::bytea[], $8::bytea[], $9::bytea[], $10::bytea[]) columns";

/// Places the start of what is filled in behind its snapshot. $1 name, $2 nonce, $3 slot, $4 hash at the slot,
/// $5 snapshot id, $6 chunks, $7 whole hash.
pub(crate) const FILL_SNAPSHOT: &str = "UPDATE leasehold.head
    SET tail = $3, hash = $4, low = $3, snapshot_id = $5, snapshot_slot = $3, snapshot_at = $4,
        snapshot_chunks = $6, snapshot_hash = $7
    WHERE name = $1 AND nonce = $2 AND stage = 0";

/// Makes what was filled in a journal, to be recovered. $1 name, $2 nonce, $3 epoch, $4 the nonce to leave there.
pub(crate) const END_FILL: &str = "UPDATE leasehold.head SET stage = 1, epoch = $3, nonce = $4
    WHERE name = $1 AND nonce = $2 AND stage = 0";

/// Why there is no head to claim. $1 name.
pub(crate) const WHY_NOT: &str = concat!(
    "SELECT format, stage, epoch, coalesce(head.timeline <> now.timeline AND NOT head.synchronous, false)
    FROM leasehold.head, ",
    engine_now!(),
    " now WHERE name = $1"
);
