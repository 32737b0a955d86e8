//! Keys, as far as views know them.

/// A key that was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A printable character.
    Char(char),
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Back to the first.
    Home,
    /// On to the last.
    End,
    Escape,
}

/// What the owner of the terminal has to do after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Draw again.
    Draw,
    /// Take readings more often,
    Faster,
    /// or less often.
    Slower,
    Quit,
}
