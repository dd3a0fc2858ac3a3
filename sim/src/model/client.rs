//! A client of the model.

/// What a client does and believes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Client {
    /// How often it has asked.
    pub(crate) asks: u8,
    pub(crate) stage: Stage,
    /// It is believed to be held until then, under this token.
    pub(crate) held: Option<(u8, u8)>,
    /// Answers on their way.
    pub(crate) answer: Option<Answer>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) enum Stage {
    #[default]
    Idle,
    /// It waits in the queue for as long as it takes.
    Asking {
        sent: u8,
    },
    Renewing {
        sent: u8,
    },
    Releasing,
}

/// An answer on its way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Answer {
    Granted { token: u8, sent: u8 },
    Renewed { sent: u8 },
    Released,
}
