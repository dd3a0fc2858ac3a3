//! Which condition admits an ask, so that check and advance are one statement.

use crate::{Ask, Fence, Policy};

/// The condition on a row that is there, besides its guard; `token` and `writes` are the row's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// token <= presented
    Again,
    /// token < presented, or equal with no write yet
    Once,
    /// token = presented, and exactly this many writes
    Next { after: i64 },
    /// None: the answer is no, whatever the row says.
    Never,
}

impl Form {
    /// The form of an ask. It admits exactly when [`decide`](crate::decide) does, for a row with the right guard.
    pub(crate) fn of(fence: &Fence, ask: &Ask) -> Self {
        if !fence.fences(ask.grant()) {
            return Self::Never;
        }
        match (fence.policy(), ask.step().map(std::num::NonZeroU64::get)) {
            (Policy::Monotonic, None) => Self::Again,
            (_, None | Some(1)) => Self::Once,
            (Policy::Monotonic, Some(step)) => {
                i64::try_from(step - 1).map_or(Self::Never, |after| Self::Next { after })
            }
            (Policy::Strict, Some(_)) => Self::Never,
        }
    }

    /// Whether a row that is not there yet is admitted too.
    #[cfg(any(feature = "postgres", feature = "sqlx", test))]
    pub(crate) fn admits_first(self) -> bool {
        matches!(self, Self::Again | Self::Once)
    }

    /// The condition as SQL over columns named so, and the presented token as it stands there.
    #[cfg(feature = "_sql")]
    pub(crate) fn condition(self, token: &str, writes: &str, presented: &str) -> String {
        match self {
            Self::Again => format!("{token} <= {presented}"),
            Self::Once => format!("({token} < {presented} OR ({token} = {presented} AND {writes} = 0))"),
            Self::Next { after } => format!("({token} = {presented} AND {writes} = {after})"),
            Self::Never => "1 = 0".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use leasehold_types::{FencingToken, ResourceName};

    use super::*;
    use crate::{Grant, Row, Verdict, decide};

    fn admits(form: Form, row: Option<(i64, i64)>, presented: i64) -> bool {
        match (form, row) {
            (_, None) => form.admits_first(),
            (Form::Again, Some((token, _))) => token <= presented,
            (Form::Once, Some((token, writes))) => token < presented || (token == presented && writes == 0),
            (Form::Next { after }, Some((token, writes))) => token == presented && writes == after,
            (Form::Never, _) => false,
        }
    }

    #[test]
    fn a_form_admits_exactly_what_the_contract_admits() {
        let name = ResourceName::new("r").unwrap();
        for fence in [Fence::of(&name), Fence::of(&name).strict()] {
            for (token, writes, presented, step) in every_small_case() {
                let row = (token >= 0).then(|| Row::from_numbers("r", token, writes).unwrap());
                let grant = Grant::exclusive(name.clone(), FencingToken::new(presented).unwrap());
                let ask = NonZeroU64::new(step).map_or(grant.write(), |step| grant.step(step).unwrap());
                let wanted = matches!(decide(&fence, row.as_ref(), Some(&ask)), Verdict::Admitted(_));
                let found = admits(Form::of(&fence, &ask), row.map(|_| (token, writes)), presented as i64);
                // A new token with a later step is out of order, with a row or without.
                assert_eq!(found, wanted, "{fence:?} row ({token}, {writes}) {ask:?}");
            }
        }
    }

    /// Row token (-1: no row, 0: no token yet), its writes, presented token, step (0: none).
    fn every_small_case() -> impl Iterator<Item = (i64, i64, u64, u64)> {
        let rows =
            (-1..4).flat_map(|token| (0..4).map(move |writes| (token, if token < 1 { 0 } else { writes })));
        rows.flat_map(|(token, writes)| {
            (1..5).flat_map(move |presented| (0..5).map(move |step| (token, writes, presented, step)))
        })
    }
}
