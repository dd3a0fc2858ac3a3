//! Cuts a damaged record where `recover` allows it.

use leasehold_journal::{OpenError, Tail};

use crate::claim::{Claimed, refuse};
use crate::connection::Connection;
use crate::row::number;
use crate::sql;

/// Cuts the record after its last whole slot.
pub(crate) async fn cut(
    connection: &Connection,
    name: &str,
    claimed: &Claimed,
    whole: Tail,
) -> Result<(), OpenError> {
    let (epoch, nonce): (i64, &[u8]) = (number(claimed.holder.epoch.0), claimed.holder.nonce.as_bytes());
    let (slot, hash): (i64, &[u8]) = (number(whole.slot.0), &whole.hash.0);
    connection.execute(sql::CUT, &[&name, &epoch, &nonce, &slot, &hash]).await.map(drop).map_err(refuse)
}
