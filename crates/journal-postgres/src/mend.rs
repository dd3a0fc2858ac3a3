//! Looks at the end of the record when it is opened (J12), and cuts a damaged one where `recover` allows it.

use leasehold_journal::{OpenError, ReadError, Reader, Slots, Tail};
use leasehold_types::Slot;

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
        return check_tail(claimed, reader).await.map(|()| (claimed.tail, None));
    }
    let Some((whole, why)) = last_whole(claimed, reader).await? else {
        return Ok((claimed.tail, None));
    };
    let (epoch, nonce): (i64, &[u8]) = (number(claimed.holder.epoch.0), claimed.holder.nonce.as_bytes());
    let hash: &[u8] = &whole.hash.0;
    connection
        .execute(sql::CUT, &[&name, &epoch, &nonce, &number(whole.slot.0), &hash])
        .await
        .map_err(refuse)?;
    Ok((whole, Some(format!("slots {} to {}: {why}", whole.slot.next(), claimed.tail.slot))))
}

async fn check_tail(claimed: &Claimed, reader: &mut PostgresReader) -> Result<(), OpenError> {
    let Tail { slot, hash } = claimed.tail;
    if slot <= claimed.low {
        return Ok(());
    }
    match reader.slots(slot).await {
        Ok(Slots::Found(found)) if found.first().is_some_and(|last| last.hash == hash) => Ok(()),
        Ok(_) => {
            let detail = "the last slot is not the one that the head names".to_owned();
            Err(OpenError::Corrupt { place: format!("slot {slot}"), detail })
        }
        Err(ReadError::Corrupt { place, detail }) => Err(OpenError::Corrupt { place, detail }),
        Err(other) => Err(OpenError::Unavailable(other.to_string())),
    }
}

/// The last slot up to which everything is whole, and why not further; `None` if all is whole.
async fn last_whole(
    claimed: &Claimed,
    reader: &mut PostgresReader,
) -> Result<Option<(Tail, String)>, OpenError> {
    let unavailable = |error: ReadError| OpenError::Unavailable(error.to_string());
    let snapshot = reader.snapshot().await.map_err(unavailable)?;
    let mut whole = snapshot.map_or(Tail::default(), |info| info.at);
    while whole.slot < claimed.tail.slot {
        // One by one: a read of many fails as a whole.
        match reader.one(whole.slot.next()).await {
            Ok(Some(next)) if next.batch.prev_hash == whole.hash || whole.slot == Slot(0) => {
                whole = Tail { slot: next.batch.slot, hash: next.hash };
            }
            Ok(_) => return Ok(Some((whole, "missing, or not following the chain".to_owned()))),
            Err(ReadError::Corrupt { place, detail }) => {
                return Ok(Some((whole, format!("{place}: {detail}"))));
            }
            Err(other) => return Err(unavailable(other)),
        }
    }
    Ok(None)
}
