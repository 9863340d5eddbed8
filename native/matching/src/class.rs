//! The classes of predicates by which the index finds queries.

/// The class of the predicate by which the index finds a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// No document matches it, and none is evaluated.
    Never,
    /// Every document matches it.
    Everything,
    /// A value equal to one of several, including null and missing.
    Equality,
    /// A value between bounds.
    Range,
    /// Text with a literal that a regular expression requires.
    Literal,
    /// A document with a term of a `$text`.
    Text,
    /// A geometry near a location.
    Geo,
    /// The existence, absence or type of a field.
    Existence,
    /// Several of these, one for each branch of an `$or`.
    Mixed,
    /// No predicate selects it: it is evaluated for every document.
    Residual,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 10] = [
        Self::Never,
        Self::Everything,
        Self::Equality,
        Self::Range,
        Self::Literal,
        Self::Text,
        Self::Geo,
        Self::Existence,
        Self::Mixed,
        Self::Residual,
    ];

    /// The name in `explain` and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Everything => "everything",
            Self::Equality => "equality",
            Self::Range => "range",
            Self::Literal => "literal",
            Self::Text => "text",
            Self::Geo => "geo",
            Self::Existence => "existence",
            Self::Mixed => "mixed",
            Self::Residual => "residual",
        }
    }
}
