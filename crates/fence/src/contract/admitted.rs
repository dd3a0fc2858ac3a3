//! The proof that a check was made.

use std::ops::{Deref, DerefMut};

use leasehold_types::FencingToken;

use super::grant::Ask;

/// Proof that the fence admitted a write, bound to the open transaction in which it did.
///
/// 1. Only an adapter of this crate makes one, and only after the fence has admitted the ask in this transaction.
/// 2. It borrows the transaction, so it is gone when the transaction ends.
///
/// A write path that takes `&Admitted` cannot be called without a check:
///
/// ```
/// use leasehold_fence::Admitted;
/// # struct Transaction;
/// # impl Transaction { fn execute(&self, _: &str) {} }
/// fn close_books(admitted: &Admitted<'_, Transaction>) {
///     admitted.execute("UPDATE books SET closed = true");
/// }
/// ```
///
/// A bare transaction is not accepted:
///
/// ```compile_fail,E0308
/// use leasehold_fence::Admitted;
/// # struct Transaction;
/// fn close_books(admitted: &Admitted<'_, Transaction>) {}
/// let unchecked = Transaction;
/// close_books(&unchecked);
/// ```
///
/// Nobody outside makes one:
///
/// ```compile_fail,E0451
/// # use leasehold_fence::Admitted;
/// # struct Transaction;
/// # fn forge(ask: leasehold_fence::Ask) {
/// let unchecked = Transaction;
/// let forged = Admitted { transaction: &unchecked, ask };
/// # }
/// ```
///
/// And it does not outlive its transaction:
///
/// ```compile_fail,E0505
/// # use leasehold_fence::Admitted;
/// # struct Transaction;
/// # fn write(admitted: &Admitted<'_, Transaction>) {}
/// fn commit_first(transaction: Transaction, admit: fn(&Transaction) -> Admitted<'_, Transaction>) {
///     let admitted = admit(&transaction);
///     drop(transaction); // commit
///     write(&admitted);
/// }
/// ```
#[derive(Debug)]
#[must_use = "the check was made; the write that it admits belongs into the same transaction"]
pub struct Admitted<'tx, T: ?Sized> {
    transaction: &'tx T,
    ask: Ask,
}

impl<'tx, T: ?Sized> Admitted<'tx, T> {
    /// Called by adapters, after the fence has admitted the ask in this transaction.
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    pub(crate) fn new(transaction: &'tx T, ask: &Ask) -> Self {
        Self { transaction, ask: ask.clone() }
    }

    /// The transaction in which the write belongs.
    pub fn transaction(&self) -> &'tx T {
        self.transaction
    }

    /// What was admitted.
    pub fn ask(&self) -> &Ask {
        &self.ask
    }

    /// The token that was admitted.
    pub fn token(&self) -> FencingToken {
        self.ask.token()
    }
}

impl<T: ?Sized> Deref for Admitted<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.transaction
    }
}

/// [`Admitted`] for drivers whose transactions are used by `&mut`.
#[derive(Debug)]
#[must_use = "the check was made; the write that it admits belongs into the same transaction"]
pub struct AdmittedMut<'tx, T: ?Sized> {
    transaction: &'tx mut T,
    ask: Ask,
}

impl<'tx, T: ?Sized> AdmittedMut<'tx, T> {
    /// Called by adapters, after the fence has admitted the ask in this transaction.
    #[cfg(any(feature = "mariadb", feature = "sqlx"))]
    pub(crate) fn new(transaction: &'tx mut T, ask: &Ask) -> Self {
        Self { transaction, ask: ask.clone() }
    }

    /// What was admitted.
    pub fn ask(&self) -> &Ask {
        &self.ask
    }

    /// The token that was admitted.
    pub fn token(&self) -> FencingToken {
        self.ask.token()
    }
}

impl<T: ?Sized> Deref for AdmittedMut<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.transaction
    }
}

impl<T: ?Sized> DerefMut for AdmittedMut<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.transaction
    }
}
