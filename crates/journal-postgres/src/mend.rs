//! Looks at the end of the record when it is opened (J12), and cuts a damaged one where `recover` allows it.

use leasehold_journal::remote::{check_tail, last_whole};
use leasehold_journal::{OpenError, Tail};

use crate::claim::{Claimed, refuse};
use crate::connection::Connection;
use crate::reader::PostgresReader;
use crate::row::number;
use crate::sql;

/// Checks that the tail is where the head says. With `accept_loss` the whole record is read, and cut after its last
/// whole slot; the words say what was lost.
pub(crate) async fn check(
    connection: &Connection,
    name: &str,
    claimed: &Claimed,
    reader: &mut PostgresReader,
    accept_loss: bool,
) -> Result<(Tail, Option<String>), OpenError> {
    if !accept_loss {
        return check_tail(reader, claimed.tail).await.map(|()| (claimed.tail, None));
    }
    let Some((whole, why)) = last_whole(reader, claimed.tail).await? else {
        return Ok((claimed.tail, None));
    };
    let (epoch, nonce): (i64, &[u8]) = (number(claimed.holder.epoch.0), claimed.holder.nonce.as_bytes());
    let hash: &[u8] = &whole.hash.0;
    let slot = number(whole.slot.0);
    connection.execute(sql::CUT, &[&name, &epoch, &nonce, &slot, &hash]).await.map_err(refuse)?;
    Ok((whole, Some(format!("slots {} to {}: {why}", whole.slot.next(), claimed.tail.slot))))
}
