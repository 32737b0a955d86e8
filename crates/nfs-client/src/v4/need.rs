//! What a recovery has to mend.

/// What is to be recovered: a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Need(u32);

impl Need {
    /// Some open files: those that are suspect.
    pub(super) const STATES: Self = Self(1);
    /// All stateids are to be tested.
    pub(super) const CHECK: Self = Self(2);
    /// The back channel of the session.
    pub(super) const BACK: Self = Self(4);
    pub(super) const SESSION: Self = Self(8);
    /// The old session is to be destroyed before.
    pub(super) const RESET: Self = Self(16);
    /// The client id, and all state.
    pub(super) const CLIENT: Self = Self(32);
    /// All state, though the client id is known.
    pub(super) const RECLAIM: Self = Self(64);

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether mending this mends `other` too. A session that is of no use is another matter than one that was lost:
    /// it may be the one just made.
    pub(super) fn covers(self, other: Self) -> bool {
        let covered = match self {
            all if all.has(Self::CLIENT) => !Self::RESET.0,
            some if some.has(Self::SESSION) => Self::SESSION.and(Self::BACK).0,
            _ => 0,
        };
        other.0 & !covered == 0
    }
}
