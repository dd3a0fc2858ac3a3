//! The keys between the blocks of an order, found by their heads.
//!
//! A head is sixteen bytes of a key as a number, those that come after what all bounds have in common. Heads stand side by side, and
//! where keys differ within them nothing else is looked at. Keys that are alike for longer cost what a search among whole keys does.

use leasehold_types::ResourceKey;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    keys: Vec<ResourceKey>,
    /// One for each key.
    heads: Vec<u128>,
    /// So many bytes at least are the same in all keys.
    common: usize,
}

impl Bounds {
    /// How many are not above this key: the number of the block that has it, or would have it.
    pub(super) fn not_above(&self, key: &ResourceKey) -> usize {
        let Some(first) = self.keys.first() else { return 0 };
        let (bytes, first) = (key.as_str().as_bytes(), &first.as_str().as_bytes()[..self.common]);
        let Some(rest) = bytes.strip_prefix(first) else {
            // It is before them all, or behind.
            return if bytes < first { 0 } else { self.keys.len() };
        };
        let head = head(rest);
        let below = self.heads.partition_point(|other| *other < head);
        if self.heads.get(below) != Some(&head) {
            return below;
        }
        let alike = self.heads[below..].partition_point(|other| *other == head);
        below + self.keys[below..below + alike].partition_point(|other| other <= key)
    }

    /// Adds one; so many are below it.
    pub(super) fn insert(&mut self, below: usize, key: ResourceKey) {
        self.keys.insert(below, key);
        let common = self.common_bytes();
        // Shorter when it must be, longer when that is worth it: every head is made anew then.
        if common < self.common || (common > self.common && self.keys.len().is_power_of_two()) {
            self.common = common;
            self.heads = self.keys.iter().map(|key| head_after(common, key)).collect();
        } else {
            self.heads.insert(below, head_after(self.common, &self.keys[below]));
        }
    }

    /// Those from this one on.
    pub(super) fn from(&self, number: usize) -> impl Iterator<Item = &ResourceKey> {
        self.keys.get(number..).unwrap_or_default().iter()
    }

    pub(super) fn remove(&mut self, number: usize) {
        self.keys.remove(number);
        self.heads.remove(number);
    }

    /// What the first and the last have in common, all between them have.
    fn common_bytes(&self) -> usize {
        let [Some(first), Some(last)] = [self.keys.first(), self.keys.last()] else { return 0 };
        first.as_str().bytes().zip(last.as_str().bytes()).take_while(|(one, other)| one == other).count()
    }
}

fn head_after(common: usize, key: &ResourceKey) -> u128 {
    head(&key.as_str().as_bytes()[common..])
}

/// The first bytes as a number that stands to others as they do; what is missing counts as nothing, so that equal heads say nothing.
fn head(bytes: &[u8]) -> u128 {
    let bytes = match bytes.first_chunk() {
        Some(head) => *head,
        None => {
            let mut head = [0; 16];
            head[..bytes.len()].copy_from_slice(bytes);
            head
        }
    };
    u128::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use leasehold_types::{ResourceName, TenantName};
    use proptest::prelude::*;

    use super::*;

    /// Alike for a while, or not at all; of every length.
    fn any_key() -> impl Strategy<Value = ResourceKey> {
        let place =
            prop_oneof![Just(""), Just("a"), Just("a/b/"), Just("a/b/a-name-that-is-alike-for-long/")];
        ("(default|other)", place, "[ab]{1,5}").prop_map(|(tenant, place, rest)| {
            let name = ResourceName::new(&format!("{place}{rest}")).expect("a name");
            ResourceKey::new(&TenantName::new(&tenant).expect("a tenant"), &name)
        })
    }

    proptest! {
        #[test]
        fn heads_say_what_keys_do(steps in prop::collection::vec((any_key(), 0u8..4), 0..300)) {
            let (mut bounds, mut model) = (Bounds::default(), Vec::<ResourceKey>::new());
            for (key, what) in steps {
                let not_above = model.partition_point(|other| *other <= key);
                prop_assert_eq!(bounds.not_above(&key), not_above, "{:?} among {:?}", key, model);
                if what == 0 && !model.is_empty() {
                    let number = not_above.min(model.len() - 1);
                    bounds.remove(number);
                    model.remove(number);
                } else if not_above == 0 || model[not_above - 1] != key {
                    bounds.insert(not_above, key.clone());
                    model.insert(not_above, key);
                }
            }
        }
    }

    /// What all have in common is left out of the heads again, once there are twice as many.
    #[test]
    fn heads_begin_where_keys_differ() {
        let mut bounds = Bounds::default();
        for number in 100..200 {
            let name = ResourceName::new(&format!("a/long/way/to/{number}")).expect("a name");
            bounds.insert(number - 100, ResourceKey::new(&TenantName::default_tenant(), &name));
        }
        assert_eq!(bounds.common, "default|a/long/way/to/1".len());
        assert!(bounds.heads.is_sorted_by(|one, next| one < next), "every head is another");
    }
}
